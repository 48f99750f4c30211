//! A folder that stands for the host's `/`.

use std::path::{Path, PathBuf};

/// Where the host's `/sys`, `/proc` and `/dev` are, as this process sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

// === impl Root ===

impl Root {
    /// The host's root is found at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where the host's absolute `path` is for us.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether the host has something at `path`. Unreadable counts as absent.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// A small text file of the host, trimmed; `None` when it is absent or unreadable.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs_err::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }
}

impl Default for Root {
    fn default() -> Self {
        Self::new("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_below_its_folder() {
        let root = Root::new("/host");
        assert_eq!(root.path("/dev/nvidia0"), Path::new("/host/dev/nvidia0"));
        assert_eq!(root.path("dev/nvidia0"), Path::new("/host/dev/nvidia0"));
    }

    #[test]
    fn an_absent_file_has_no_text() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        assert_eq!(root.text("/sys/nothing"), None);
        fs_err::write(folder.path().join("numa_node"), "3\n").unwrap();
        assert_eq!(root.text("/numa_node").as_deref(), Some("3"));
    }
}
