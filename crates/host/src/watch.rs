//! A folder that tells when something in it changed.
//!
//! Events are only a way to be fast: inotify instances run out on busy nodes, some file systems
//! send none, and a folder may not exist yet. So [`Folder::changed`] also returns after
//! a while without any event, and callers compare what they find with what they knew.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt;
use inotify::{Event, EventMask, EventStream, Inotify, WatchMask};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// How long events are gathered before they count as one change.
const SETTLE: Duration = Duration::from_millis(5);

/// Whether inotify may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Events {
    /// Use it where it works.
    #[default]
    Inotify,
    /// Look again after every pause only.
    Poll,
}

/// A watched folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    events: Events,
    pause: Duration,
    stream: Option<EventStream<Vec<u8>>>,
    /// An event came that was not told yet: when it counts as a change.
    settled: Option<Instant>,
    warned: bool,
}

// === impl Folder ===

impl Folder {
    /// Watches `path`, which need not exist yet, and looks at it every `pause` in any case.
    pub fn new(path: &Path, events: Events, pause: Duration) -> Self {
        let mut folder = Self {
            path: path.to_owned(),
            events,
            pause,
            stream: None,
            settled: None,
            warned: false,
        };
        folder.open();
        folder
    }

    /// Waits until something in the folder may have changed. Cancel safe.
    pub async fn changed(&mut self) {
        if self.settled.is_none() {
            if self.stream.is_none() {
                self.open();
            }
            let Some(stream) = &mut self.stream else {
                sleep(self.pause).await;
                return;
            };
            let Ok(event) = timeout(self.pause, stream.next()).await else {
                return;
            };
            self.settled = Some(Instant::now() + SETTLE);
            self.hear(event.as_ref());
        }
        while let (Some(settled), Some(stream)) = (self.settled, &mut self.stream) {
            match timeout_at(settled, stream.next()).await {
                Ok(event) => self.hear(event.as_ref()),
                Err(_settled) => self.settled = None,
            }
        }
        // A folder that keeps failing costs nothing.
        if let Some(settled) = self.settled {
            sleep_until(settled).await;
            self.settled = None;
        }
    }

    /// After the end of the folder itself, or of inotify, the next call begins anew.
    fn hear<T>(&mut self, event: Option<&std::io::Result<Event<T>>>) {
        if !is_live(event) {
            self.stream = None;
        }
    }

    fn open(&mut self) {
        if self.events == Events::Poll {
            return;
        }
        match open(&self.path) {
            Ok(stream) => self.stream = Some(stream),
            Err(error) if !self.warned && error.kind() != std::io::ErrorKind::NotFound => {
                self.warned = true;
                tracing::warn!(
                    path = %self.path.display(), %error, pause = ?self.pause,
                    "cannot watch the folder, looking at it regularly instead"
                );
            }
            Err(_) => {}
        }
    }
}

/// Whether more events can follow this one.
fn is_live<T>(event: Option<&std::io::Result<Event<T>>>) -> bool {
    matches!(event, Some(Ok(event)) if !event.mask.contains(EventMask::IGNORED))
}

fn open(path: &Path) -> std::io::Result<EventStream<Vec<u8>>> {
    let inotify = Inotify::init()?;
    inotify.watches().add(
        path,
        WatchMask::CREATE
            | WatchMask::DELETE
            | WatchMask::MOVED_FROM
            | WatchMask::MOVED_TO
            | WatchMask::CLOSE_WRITE
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF,
    )?;
    inotify.into_event_stream(vec![0; 4096])
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use rstest::rstest;

    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn tells_of_a_new_file_long_before_the_pause_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = Folder::new(folder.path(), Events::Inotify, LONG);
        fs_err::write(folder.path().join("x"), "").unwrap();
        timeout(LONG / 3, watched.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn a_change_outlives_a_wait_that_was_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = Folder::new(folder.path(), Events::Inotify, LONG);
        fs_err::write(folder.path().join("x"), "").unwrap();
        for _ in 0..50 {
            if watched.changed().now_or_never().is_some() {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
        timeout(LONG / 3, watched.changed()).await.unwrap();
    }

    #[rstest]
    #[case::without_events(Events::Poll, true)]
    #[case::before_the_folder_exists(Events::Inotify, false)]
    #[tokio::test]
    async fn returns_after_the_pause(#[case] events: Events, #[case] exists: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub");
        if exists {
            fs_err::create_dir(&path).unwrap();
        }
        let mut watched = Folder::new(&path, events, SHORT);
        timeout(LONG / 3, watched.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn finds_the_folder_again_after_it_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub");
        fs_err::create_dir(&path).unwrap();
        let mut watched = Folder::new(&path, Events::Inotify, SHORT);
        fs_err::remove_dir(&path).unwrap();
        timeout(LONG / 3, watched.changed()).await.unwrap();
        fs_err::create_dir(&path).unwrap();
        for _ in 0..3 {
            timeout(LONG / 3, watched.changed()).await.unwrap();
        }
        watched.pause = LONG;
        fs_err::write(path.join("x"), "").unwrap();
        timeout(LONG / 3, watched.changed()).await.unwrap();
    }
}
