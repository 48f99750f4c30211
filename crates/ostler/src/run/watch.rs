//! Notices when the config file is another one: written anew, replaced, or reached through a link
//! that points elsewhere now, as a ConfigMap's does.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use host::{
    FileIdentity,
    watch::{Events, Folder},
};
use tokio::time::{Instant, sleep_until, timeout_at};

/// How often the file is looked at in any case: a link may lead out of the watched folder.
const PAUSE: Duration = Duration::from_secs(2);

/// How long a writer gets to finish.
const SETTLE: Duration = Duration::from_millis(200);

/// A config file under watch.
#[derive(Debug)]
pub(super) struct Watch {
    file: Option<(PathBuf, Folder)>,
    seen: Option<FileIdentity>,
    /// When the file is looked at in any case. A wait that was given up does not put it off.
    due: Instant,
    /// When a writer that was noticed has had its time.
    settled: Option<Instant>,
}

// === impl Watch ===

impl Watch {
    /// Watches a file from now on. Without one, nothing ever changes.
    pub(super) fn new(path: Option<&Path>) -> Self {
        let file = path.map(|path| {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            let folder = parent.unwrap_or(Path::new("."));
            let folder = Folder::new(folder, Events::Inotify, PAUSE);
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

    /// Waits until the file is another one than at the last return. Cancel safe.
    pub(super) async fn changed(&mut self) {
        let Some((path, folder)) = &mut self.file else {
            return std::future::pending().await;
        };
        loop {
            if let Some(settled) = self.settled {
                sleep_until(settled).await;
                self.settled = None;
                let now = FileIdentity::of_inode(path);
                // A file that is gone for a moment is being replaced; one that stays away is told
                // of by who reads it.
                if now != self.seen {
                    self.seen = now;
                    return;
                }
            }
            // In time or not, the file is looked at.
            let _ = timeout_at(self.due, folder.changed()).await;
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
        let mut watch = Watch::new(Some(&path));
        fs_err::write(&path, "bb").unwrap();
        timeout(LONG, watch.changed()).await.unwrap();
        fs_err::write(folder.path().join("other"), "x").unwrap();
        let more = timeout(Duration::from_millis(400), watch.changed()).await;
        assert!(more.is_err(), "another file is none of ours");
    }

    /// A ConfigMap: the file is a link through `..data`, which is swapped.
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
        // And a second folder with a link to it, as the config manager makes one.
        let far = tempfile::tempdir().unwrap();
        let link = far.path().join("config.yaml");
        symlink(at("config.yaml"), &link).unwrap();
        let (mut near, mut far) = (
            Watch::new(Some(&at("config.yaml"))),
            Watch::new(Some(&link)),
        );
        symlink("..2", at("..new")).unwrap();
        fs_err::rename(at("..new"), at("..data")).unwrap();
        timeout(LONG, near.changed()).await.unwrap();
        timeout(LONG, far.changed()).await.unwrap();
    }

    /// As in a loop with other things to wait for, which come first again and again.
    #[tokio::test]
    async fn waits_that_are_given_up_put_nothing_off() {
        let (near, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, file) = (near.path().join("ostler.yaml"), far.path().join("file"));
        fs_err::write(&file, "a").unwrap();
        symlink(&file, &link).unwrap();
        // No event comes from the folder that is watched.
        let mut watch = Watch::new(Some(&link));
        fs_err::write(&file, "bb").unwrap();
        let noticed = async {
            let short = Duration::from_millis(50);
            while timeout(short, watch.changed()).await.is_err() {}
        };
        timeout(LONG, noticed).await.unwrap();
    }

    #[tokio::test]
    async fn tells_of_a_file_that_comes_later_and_of_one_that_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ostler.yaml");
        let mut watch = Watch::new(Some(&path));
        fs_err::write(&path, "a").unwrap();
        timeout(LONG, watch.changed()).await.unwrap();
        fs_err::remove_file(&path).unwrap();
        timeout(LONG, watch.changed()).await.unwrap();
    }
}
