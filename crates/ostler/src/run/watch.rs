//! Watches the config file: it is written, replaced, or reached through a link that changes its
//! target, as in a ConfigMap volume.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use host::{
    FileIdentity,
    watch::{WatchMode, WatchedFolder},
};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Interval of checks without an event: a link may lead out of the watched folder.
const PAUSE: Duration = Duration::from_secs(2);

/// Time that a writer gets to finish before the change is reported.
const SETTLE: Duration = Duration::from_millis(200);

/// Watch of a config file.
#[derive(Debug)]
pub(super) struct ConfigWatch {
    file: Option<(PathBuf, WatchedFolder)>,
    seen: Option<FileIdentity>,
    /// Time of the next check without an event. A cancelled wait does not postpone it.
    due: Instant,
    /// Time at which a change that was noticed is reported.
    settled: Option<Instant>,
}

// === impl ConfigWatch ===

impl ConfigWatch {
    /// Begins to watch a file. Without a path, no change is ever reported.
    pub(super) fn new(path: Option<&Path>) -> Self {
        let file = path.map(|path| {
            // The folder, not the file: the kubelet swaps the link `..data` of a ConfigMap volume by
            // rename (pkg/volume/util/atomic_writer.go, Write), and the old file never changes.
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            // The parent of a bare file name is an empty path, and not `.`.
            let folder = parent.unwrap_or(Path::new("."));
            let folder = WatchedFolder::new(folder, WatchMode::Inotify, PAUSE);
            (path.to_owned(), folder)
        });
        Self {
            seen: file
                .as_ref()
                .and_then(|(path, _)| FileIdentity::of_inode(path)),
            file,
            due: Instant::now() + PAUSE,
            settled: None,
        }
    }

    /// Waits until the file's identity differs from that at the last return. Cancel safe.
    pub(super) async fn wait_for_change(&mut self) {
        let Some((path, folder)) = &mut self.file else {
            return std::future::pending().await;
        };
        loop {
            if let Some(settled) = self.settled {
                sleep_until(settled).await;
                self.settled = None;
                let now = FileIdentity::of_inode(path);
                // A file that is missing for a moment is being replaced. If it stays away, the reload
                // reports that.
                if now != self.seen {
                    self.seen = now;
                    return;
                }
            }
            // The file is checked after an event and after the timeout alike.
            let _ = timeout_at(self.due, folder.wait_for_change()).await;
            let now = Instant::now();
            self.due = now + PAUSE;
            self.settled = (FileIdentity::of_inode(path) != self.seen).then_some(now + SETTLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn tells_of_a_file_that_was_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ostler.yaml");
        fs_err::write(&path, "a").unwrap();
        let mut watch = ConfigWatch::new(Some(&path));
        fs_err::write(&path, "bb").unwrap();
        timeout(LONG, watch.wait_for_change()).await.unwrap();
        fs_err::write(folder.path().join("other"), "x").unwrap();
        let more = timeout(Duration::from_millis(400), watch.wait_for_change()).await;
        assert!(more.is_err(), "another file is none of ours");
    }

    /// In a ConfigMap volume the file is a link through `..data`, which the kubelet replaces.
    #[tokio::test]
    async fn tells_of_a_config_map_that_was_swapped() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (version, text) in [("..1", "a"), ("..2", "b")] {
            fs_err::create_dir(at(version)).unwrap();
            fs_err::write(at(version).join("config.yaml"), text).unwrap();
        }
        symlink("..1", at("..data")).unwrap();
        symlink("..data/config.yaml", at("config.yaml")).unwrap();
        // NVIDIA's config-manager makes a link to it in a second folder (k8s-device-plugin,
        // cmd/config-manager/main.go).
        let far = tempfile::tempdir().unwrap();
        let link = far.path().join("config.yaml");
        symlink(at("config.yaml"), &link).unwrap();
        let (mut near, mut far) = (
            ConfigWatch::new(Some(&at("config.yaml"))),
            ConfigWatch::new(Some(&link)),
        );
        symlink("..2", at("..new")).unwrap();
        fs_err::rename(at("..new"), at("..data")).unwrap();
        timeout(LONG, near.wait_for_change()).await.unwrap();
        timeout(LONG, far.wait_for_change()).await.unwrap();
    }

    /// A `select!` loop cancels the wait again and again.
    #[tokio::test]
    async fn waits_that_are_given_up_put_nothing_off() {
        let (near, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, file) = (near.path().join("ostler.yaml"), far.path().join("file"));
        fs_err::write(&file, "a").unwrap();
        symlink(&file, &link).unwrap();
        // The watched folder has the link only: no event comes from there.
        let mut watch = ConfigWatch::new(Some(&link));
        fs_err::write(&file, "bb").unwrap();
        let noticed = async {
            let short = Duration::from_millis(50);
            while timeout(short, watch.wait_for_change()).await.is_err() {}
        };
        timeout(LONG, noticed).await.unwrap();
    }

    #[tokio::test]
    async fn tells_of_a_file_that_comes_later_and_of_one_that_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ostler.yaml");
        let mut watch = ConfigWatch::new(Some(&path));
        fs_err::write(&path, "a").unwrap();
        timeout(LONG, watch.wait_for_change()).await.unwrap();
        fs_err::remove_file(&path).unwrap();
        timeout(LONG, watch.wait_for_change()).await.unwrap();
    }
}
