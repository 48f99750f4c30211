//! Support of CDI names by the container runtime: by evidence, or by the setting `cdi.runtime`.
//!
//! The evidence is the runtime's own config, if the agent can see it. containerd has CDI on by default since 2.0,
//! whose config files have version 3; containerd 1.7 needs `enable_cdi = true`. CRI-O has CDI on by default. A
//! file without the key, or one that cannot be parsed, is no evidence. With CDI off, containerd 1.7 ignores the
//! names and starts the container without its devices, so a wrong guess is not noticed.

mod containerd;
mod crio;

use std::path::{Path, PathBuf};

use config::{Cdi, RuntimeSupport};
use host::small::{self, Error};
use serde::{Deserialize, de::DeserializeOwned};

use crate::TEXT_LIMIT;

/// Evidence on CDI support of the container runtime or the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupportEvidence {
    /// True if the program is known to use CDI names or to pass them on.
    pub supported: bool,
    /// Source of the evidence, or the reason why there is none, for an operator.
    pub reason: String,
}

/// Keys of a runtime's config that concern CDI.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CdiKeys {
    enable_cdi: Option<bool>,
    cdi_spec_dirs: Option<Vec<String>>,
}

/// Reads the evidence on the container runtime of the host under `root`. The call blocks. It never fails: a file
/// that cannot be read is no evidence, and the reason says so.
pub fn find_runtime_support(cdi: &Cdi, root: &Path) -> SupportEvidence {
    match cdi.runtime {
        RuntimeSupport::Supported => SupportEvidence::new(true, "the config says `supported`"),
        RuntimeSupport::Unsupported => SupportEvidence::new(false, "the config says `unsupported`"),
        RuntimeSupport::Auto => {
            // The runtime's config has paths of the host, without the agent's root.
            let dir = cdi.dir.strip_prefix(root).unwrap_or(&cdi.dir);
            judge_configs(&Path::new("/").join(dir), root)
        }
    }
}

fn judge_configs(dir: &Path, root: &Path) -> SupportEvidence {
    let judged = containerd::PATHS
        .iter()
        .filter_map(|path| containerd::judge_containerd(dir, root, path))
        .chain(crio::judge_crio(dir, root));
    let mut found: Vec<SupportEvidence> = judged
        .map(|judged| judged.unwrap_or_else(|why| SupportEvidence::new(false, why)))
        .collect();
    // If two runtimes are installed, it is unknown which one the kubelet uses. Both must support CDI.
    let against = found.iter().position(|evidence| !evidence.supported);
    match against {
        Some(at) => found.swap_remove(at),
        None => found.pop().unwrap_or_else(|| {
            SupportEvidence::new(
                false,
                "no config file of containerd or CRI-O is visible under hostRoot; set cdi.runtime \
                 if it is known",
            )
        }),
    }
}

/// Reads a TOML file of at most 4 MiB; `None` if there is none.
///
/// # Errors
/// The file cannot be read or parsed; the text has its path.
fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let name = path.display();
    let text = match small::read_text(path, TEXT_LIMIT) {
        Ok(text) => text,
        Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{name} cannot be read: {error}")),
    };
    toml::from_str(&text).map(Some).map_err(|error| {
        // `message` is one line. The error's `Display` adds an excerpt of the file on more lines.
        let place = error.span().map(|span| line_number(&text, span.start));
        let place = place.map_or(String::new(), |line| format!(" in line {line}"));
        format!("{name} is not understood{place}: {}", error.message())
    })
}

/// Number of the line at a byte offset, from 1.
fn line_number(text: &str, offset: usize) -> usize {
    let before = text.bytes().take(offset);
    1 + before.filter(|byte| *byte == b'\n').count()
}

/// Lists the files of a folder whose names fit, sorted; none if there is no folder.
fn list_files(folder: &Path, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let fitting = entries.filter(|entry| entry.file_name().to_str().is_some_and(&fits));
    let mut paths: Vec<PathBuf> = fitting.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Path at which the agent sees an absolute path of the host.
fn path_below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

// === impl SupportEvidence ===

impl SupportEvidence {
    /// Makes evidence with its reason.
    pub fn new(supported: bool, reason: impl Into<String>) -> Self {
        Self {
            supported,
            reason: reason.into(),
        }
    }
}

// === impl CdiKeys ===

impl CdiKeys {
    /// Replaces the keys that a later file sets.
    fn override_by(&mut self, later: Self) {
        self.enable_cdi = later.enable_cdi.or(self.enable_cdi);
        self.cdi_spec_dirs = later.cdi_spec_dirs.or(self.cdi_spec_dirs.take());
    }

    /// Returns evidence against CDI names if the runtime is configured not to read this folder.
    fn passes_over(&self, dir: &Path, name: &str) -> Option<SupportEvidence> {
        // `/var/run` is a link to `/run` on every host with systemd.
        let short = |path: &str| {
            let path = path.replacen("/var/run/", "/run/", 1);
            path.trim_end_matches('/').to_owned()
        };
        let own = short(&dir.to_string_lossy());
        let mut dirs = self.cdi_spec_dirs.as_ref()?.iter();
        let is_there = dirs.any(|path| short(path) == own);
        (!is_there).then(|| {
            let dir = dir.display();
            SupportEvidence::new(
                false,
                format!("cdi_spec_dirs in {name} does not have {dir}"),
            )
        })
    }
}

#[cfg(test)]
mod tests;
