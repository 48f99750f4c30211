//! Support of CDI names by the container runtime: by evidence, or by the word of the config.
//!
//! The evidence is the runtime's own config, where the agent can see it. containerd has CDI on since 2.0, whose
//! config files have version 3; before, only where `enable_cdi` says so. CRI-O has it on. A file that says
//! nothing, or that is not understood, is no evidence.

mod containerd;
mod crio;

use std::path::{Path, PathBuf};

use config::{Cdi, RuntimeSupport};
use host::small::{self, Error};
use serde::{Deserialize, de::DeserializeOwned};

use crate::TEXT_LIMIT;

/// Knowledge of somebody on the way from a CDI name to a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// True if names are known to be taken, or passed on.
    pub supported: bool,
    /// The way in which that is known, or why it is not, for a person.
    pub reason: String,
}

/// The keys of a runtime's config that matter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CdiKeys {
    enable_cdi: Option<bool>,
    cdi_spec_dirs: Option<Vec<String>>,
}

/// Reads what is known of the runtime of the host under `root`. It blocks, and never fails: what cannot be read
/// is no evidence, with the reason.
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
    let judged = containerd::PATHS
        .iter()
        .filter_map(|path| containerd::judge(dir, root, path))
        .chain(crio::judge(dir, root));
    let mut found: Vec<Evidence> = judged
        .map(|judged| judged.unwrap_or_else(|why| Evidence::new(false, why)))
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

/// Reads a TOML file of at most 4 MiB; `None` where there is none.
///
/// # Errors
/// The reason why it cannot be read or is not understood, with its name.
fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let name = path.display();
    let text = match small::read_text(path, TEXT_LIMIT) {
        Ok(text) => text,
        Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{name} cannot be read: {error}")),
    };
    toml::from_str(&text).map(Some).map_err(|error| {
        // The first line says what; the others show where.
        let place = error.span().map(|span| line(&text, span.start));
        let place = place.map_or(String::new(), |line| format!(" in line {line}"));
        format!("{name} is not understood{place}: {}", error.message())
    })
}

/// The number of the line at an offset.
fn line(text: &str, offset: usize) -> usize {
    let before = text.bytes().take(offset);
    1 + before.filter(|byte| *byte == b'\n').count()
}

/// The files of a folder with an ending, sorted; none where there is no folder.
fn files(folder: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let fitting = entries.filter(|entry| entry.file_name().to_str().is_some_and(&fits));
    let mut paths: Vec<PathBuf> = fitting.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// An absolute path of the host as the agent sees it.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

// === impl Evidence ===

impl Evidence {
    /// Something that is known, or not, with the reason.
    pub fn new(supported: bool, reason: impl Into<String>) -> Self {
        Self {
            supported,
            reason: reason.into(),
        }
    }
}

// === impl CdiKeys ===

impl CdiKeys {
    /// Takes over what a later file says.
    fn override_by(&mut self, later: Self) {
        self.enable_cdi = later.enable_cdi.or(self.enable_cdi);
        self.cdi_spec_dirs = later.cdi_spec_dirs.or(self.cdi_spec_dirs.take());
    }

    /// The evidence against names, if the runtime does not read this folder. `/run` and `/var/run` are one.
    fn passes_over(&self, dir: &Path, name: &str) -> Option<Evidence> {
        let short = |path: &str| {
            let path = path.replacen("/var/run/", "/run/", 1);
            path.trim_end_matches('/').to_owned()
        };
        let own = short(&dir.to_string_lossy());
        let mut dirs = self.cdi_spec_dirs.as_ref()?.iter();
        let is_there = dirs.any(|path| short(path) == own);
        (!is_there).then(|| {
            let dir = dir.display();
            Evidence::new(
                false,
                format!("cdi_spec_dirs in {name} does not have {dir}"),
            )
        })
    }
}

#[cfg(test)]
mod tests;
