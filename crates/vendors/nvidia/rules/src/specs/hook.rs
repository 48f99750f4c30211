//! Hooks of a spec: calls of NVIDIA's toolkit on the host that make links in a container, update
//! its loader's cache, and the like. Without the toolkit on the host a spec has no hooks.

use std::path::Path;

use config::NvidiaCdi;
use model::{DriverFile, DriverFiles, Platform};

use rules::{Hook, join_root};

use super::layout::{container_links, loader_folders};

/// Stage of the container's start in which all hooks run.
const WHEN: &str = "createContainer";
/// Program of the toolkit with subcommands; hooks are below `hook`.
const CTK: &str = "nvidia-ctk";
/// Program of the toolkit that has hooks only.
const CDI_HOOK: &str = "nvidia-cdi-hook";

pub(super) const SYMLINKS: &str = "create-symlinks";
const COMPAT: &str = "enable-cuda-compat";
pub(super) const LDCACHE: &str = "update-ldcache";
const NODES: &str = "disable-device-node-modification";

/// Hooks that the config can leave out, by NVIDIA's names. `chmod` and `update-application-profile`
/// are never made, because NVIDIA's device plugin does not make them.
pub(super) const NAMES: [&str; 7] = [
    "all",
    "chmod",
    "update-application-profile",
    SYMLINKS,
    COMPAT,
    LDCACHE,
    NODES,
];

/// Program for hooks, and the hooks that are left out.
#[derive(Clone, Debug)]
pub(super) struct Hooks<'a> {
    program: Option<String>,
    disabled: &'a [String],
}

// === impl Hooks ===

impl<'a> Hooks<'a> {
    pub(super) fn new(cdi: &'a NvidiaCdi, files: &DriverFiles) -> Self {
        Self {
            program: find_hook_program(cdi, files),
            disabled: &cdi.disable_hooks,
        }
    }

    /// Returns true if there is a program for hooks.
    pub(super) fn possible(&self) -> bool {
        self.program.is_some()
    }

    /// Returns true if a hook is made.
    pub(super) fn makes_hook(&self, name: &str) -> bool {
        let off = |disabled: &String| disabled == name || disabled == "all";
        self.possible() && !self.disabled.iter().any(off)
    }

    /// Returns the hooks of every container on such a machine. `compat` has the arguments of the
    /// hook for a newer CUDA; `None` leaves it out.
    pub(super) fn common(
        &self,
        files: &[&DriverFile],
        platform: Platform,
        compat: Option<Vec<String>>,
    ) -> Vec<Hook> {
        let links: Vec<String> = container_links(files)
            .iter()
            .map(|(path, link)| format!("{}::{path}", link.target))
            .collect();
        let folders = loader_folders(files);
        let calls = [
            (
                SYMLINKS,
                !links.is_empty(),
                flag_before_each("--link", links),
            ),
            (COMPAT, compat.is_some(), compat.unwrap_or_default()),
            (
                LDCACHE,
                !folders.is_empty(),
                flag_before_each("--folder", folders),
            ),
            // Only the usual driver makes device nodes itself (ModifyDeviceFiles in
            // /proc/driver/nvidia/params).
            (NODES, platform.is_usual(), Vec::new()),
        ];
        calls
            .into_iter()
            .filter(|(_, needed, _)| *needed)
            .filter_map(|(name, _, args)| self.build_hook(name, args))
            .collect()
    }

    /// Returns the hook that makes links, each as `target::link`; `None` without links.
    pub(super) fn link_hook(&self, links: Vec<String>) -> Option<Hook> {
        match links.is_empty() {
            true => None,
            false => self.build_hook(SYMLINKS, flag_before_each("--link", links)),
        }
    }

    /// Returns the call of a hook; `None` if it is left out.
    fn build_hook(&self, name: &str, args: Vec<String>) -> Option<Hook> {
        let path = self.program.as_deref().filter(|_| self.makes_hook(name))?;
        let own = path.rsplit('/').next().unwrap_or(path);
        // The arguments begin with the program's name, as NVIDIA's toolkit writes them: `nvidia-ctk
        // hook NAME` or `nvidia-cdi-hook NAME`.
        let word = (own == CTK).then_some("hook");
        let begin = [own].into_iter().chain(word).chain([name]);
        Some(Hook {
            hook_name: WHEN.to_owned(),
            path: path.to_owned(),
            args: begin.map(str::to_owned).chain(args).collect(),
            env: vec!["NVIDIA_CTK_DEBUG=false".to_owned()],
            timeout: None,
        })
    }
}

/// Returns the values, each after the flag.
fn flag_before_each(
    flag: &str,
    values: impl IntoIterator<Item = impl Into<String>>,
) -> Vec<String> {
    let values = values.into_iter();
    values
        .flat_map(|value| [flag.to_owned(), value.into()])
        .collect()
}

/// Returns the path of the program on the host: the one in the config if it is not the default, or
/// else one that was found under the driver root.
fn find_hook_program(cdi: &NvidiaCdi, files: &DriverFiles) -> Option<String> {
    let wanted = cdi.hook_path.to_str()?;
    if wanted != NvidiaCdi::HOOK_PATH && !wanted.is_empty() {
        return Some(wanted.to_owned());
    }
    let found = |name: &str| {
        let mut hooks = files.hooks.iter();
        hooks.find(|hook| Path::new(hook).file_name().is_some_and(|own| own == name))
    };
    let usual = files.hooks.iter().find(|hook| *hook == wanted);
    let hook = usual.or_else(|| found(CDI_HOOK)).or_else(|| found(CTK))?;
    Some(join_root(&cdi.driver_root, hook))
}
