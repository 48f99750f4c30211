//! Whether the container runtime takes CDI names: by evidence, or by the word of the config.
//!
//! The evidence is the runtime's own config file, where the agent can see it. containerd has CDI on
//! since 2.0, whose config files have version 3; before, only where `enable_cdi` says so. CRI-O has
//! it on. A file that says nothing is no evidence.

use std::path::{Path, PathBuf};

use config::{Cdi, RuntimeSupport};
use host::small;

use super::TEXT_LIMIT;

/// Where containerd's config is: its own, k3s's and RKE2's.
const CONTAINERD: [&str; 3] = [
    "etc/containerd/config.toml",
    "var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "var/lib/rancher/rke2/agent/etc/containerd/config.toml",
];
/// Where CRI-O's config is, and the folder with more of it.
const CRIO: &str = "etc/crio/crio.conf";
const CRIO_MORE: &str = "etc/crio/crio.conf.d";
/// The folder with more of containerd's config, beside the file.
const CONTAINERD_MORE: &str = "conf.d";
/// The version of containerd's config files since 2.0.
const CONTAINERD_2: &str = "3";

/// What is known of the container runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Whether it is known to take CDI names and to read our folder.
    pub supported: bool,
    /// How that is known, or why it is not.
    pub reason: String,
}

/// What a config file says.
#[derive(Debug, Default)]
struct Said {
    enable: Option<bool>,
    version: Option<String>,
    dirs: Option<String>,
}

/// What is known of the runtime of the host under `root`.
pub fn evidence(cdi: &Cdi, root: &Path) -> Evidence {
    match cdi.runtime {
        RuntimeSupport::Supported => Evidence::new(true, "the config says `supported`"),
        RuntimeSupport::Unsupported => Evidence::new(false, "the config says `unsupported`"),
        RuntimeSupport::Auto => {
            // The folder as the runtime names it.
            let dir = cdi.dir.strip_prefix(root).unwrap_or(&cdi.dir);
            look(&Path::new("/").join(dir), root)
        }
    }
}

fn look(dir: &Path, root: &Path) -> Evidence {
    let mut found: Vec<Evidence> = CONTAINERD
        .iter()
        .filter_map(|path| containerd(dir, &root.join(path)))
        .chain(crio(dir, root))
        .collect();
    // Two runtimes: which of them the kubelet uses is not known, so both must do.
    let against = found.iter().position(|evidence| !evidence.supported);
    match against {
        Some(at) => found.swap_remove(at),
        None => found.pop().unwrap_or_else(|| {
            Evidence::new(
                false,
                "no config file of containerd or CRI-O is visible under hostRoot; set cdi.runtime \
                 if it is known",
            )
        }),
    }
}

fn containerd(dir: &Path, path: &Path) -> Option<Evidence> {
    let mut said = Said::default();
    said.read(&small::read_text(path, TEXT_LIMIT).ok()?);
    for more in files(&path.with_file_name(CONTAINERD_MORE), "toml") {
        said.read(&small::read_text(&more, TEXT_LIMIT).unwrap_or_default());
    }
    let name = path.display();
    Some(match (said.enable, said.version.as_deref()) {
        _ if said.passes_over(dir) => Evidence::new(
            false,
            format!("cdi_spec_dirs in {name} does not have {}", dir.display()),
        ),
        (Some(true), _) => Evidence::new(true, format!("{name} has enable_cdi = true")),
        (Some(false), _) => Evidence::new(false, format!("{name} has enable_cdi = false")),
        (None, Some(CONTAINERD_2)) => Evidence::new(
            true,
            format!("{name} is one of containerd 2, which takes CDI names"),
        ),
        (None, _) => Evidence::new(
            false,
            format!("{name} does not say enable_cdi, and may be of a containerd that has it off"),
        ),
    })
}

fn crio(dir: &Path, root: &Path) -> Option<Evidence> {
    let mut paths: Vec<PathBuf> = vec![root.join(CRIO)];
    paths.extend(files(&root.join(CRIO_MORE), "conf"));
    let texts: Vec<String> = paths
        .iter()
        .filter_map(|path| small::read_text(path, TEXT_LIMIT).ok())
        .collect();
    if texts.is_empty() {
        return None;
    }
    let mut said = Said::default();
    texts.iter().for_each(|text| said.read(text));
    let name = root.join("etc/crio");
    let name = name.display();
    Some(match said {
        _ if said.passes_over(dir) => Evidence::new(
            false,
            format!("cdi_spec_dirs in {name} does not have {}", dir.display()),
        ),
        Said {
            enable: Some(false),
            ..
        } => Evidence::new(false, format!("{name} has enable_cdi = false")),
        _ => Evidence::new(true, format!("{name} is of CRI-O, which takes CDI names")),
    })
}

/// The files of a folder with an ending, sorted; none where there is no folder.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|own| own == ending))
        .collect();
    paths.sort();
    paths
}

// === impl Evidence ===

impl Evidence {
    pub(super) fn new(supported: bool, reason: impl Into<String>) -> Self {
        Self {
            supported,
            reason: reason.into(),
        }
    }
}

// === impl Said ===

impl Said {
    /// Takes the few lines of a TOML file that matter; what comes later wins.
    fn read(&mut self, text: &str) {
        let mut lines = text.lines().map(|line| {
            let line = line.split('#').next().unwrap_or(line);
            line.trim()
        });
        while let Some(line) = lines.next() {
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let value = value.trim();
            match key.trim().trim_matches('"') {
                "enable_cdi" => self.enable = value.parse().ok(),
                "version" => self.version = Some(value.to_owned()),
                "cdi_spec_dirs" => {
                    let mut dirs = value.to_owned();
                    while !dirs.contains(']') {
                        let Some(more) = lines.next() else { break };
                        dirs += more;
                    }
                    self.dirs = Some(dirs);
                }
                _ => {}
            }
        }
    }

    /// Whether it reads some folders and not this one. `/run` and `/var/run` are one.
    fn passes_over(&self, dir: &Path) -> bool {
        let short = |path: &str| path.replacen("/var/run/", "/run/", 1);
        let Some(dirs) = &self.dirs else {
            return false;
        };
        let mut dirs = dirs.split(['"', '\'']).skip(1).step_by(2).map(short);
        let dir = short(&dir.to_string_lossy());
        !dirs.any(|own| own.trim_end_matches('/') == dir.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests;
