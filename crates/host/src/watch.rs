//! Watched folder.
//!
//! inotify only makes it fast. Its instances run out on busy nodes (`fs.inotify.max_user_instances` is
//! 128 by default), some file systems send no events, and a folder may not exist yet. So
//! [`WatchedFolder::wait_for_change`] also returns after a pause without events, and callers compare the files with
//! those they knew.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt;
use inotify::{Event, EventMask, EventStream, Inotify, WatchMask};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// Time in which events are collected and count as one change.
const SETTLE: Duration = Duration::from_millis(5);

/// Source of events for a watched folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchMode {
    /// inotify if possible, and the pause in any case.
    #[default]
    Inotify,
    /// The pause only.
    Poll,
}

/// A watched folder.
#[derive(Debug)]
pub struct WatchedFolder {
    path: PathBuf,
    events: WatchMode,
    pause: Duration,
    stream: Option<EventStream<Vec<u8>>>,
    /// Time at which an event that came already counts as a change.
    settled: Option<Instant>,
    warned: bool,
}

// === impl WatchedFolder ===

impl WatchedFolder {
    /// Watches `path`, which need not exist yet. [`WatchedFolder::wait_for_change`] returns after `pause` at the
    /// latest.
    pub fn new(path: &Path, events: WatchMode, pause: Duration) -> Self {
        let mut folder = Self {
            path: path.to_owned(),
            events,
            pause,
            stream: None,
            settled: None,
            warned: false,
        };
        folder.open_watch();
        folder
    }

    /// Waits until something in the folder may have changed. Cancel safe: an event of a dropped wait is
    /// kept for the next one.
    pub async fn wait_for_change(&mut self) {
        if self.settled.is_none() {
            if self.stream.is_none() {
                self.open_watch();
            }
            let Some(stream) = &mut self.stream else {
                sleep(self.pause).await;
                return;
            };
            let Ok(event) = timeout(self.pause, stream.next()).await else {
                return;
            };
            self.settled = Some(Instant::now() + SETTLE);
            self.handle_event(event.as_ref());
        }
        while let (Some(settled), Some(stream)) = (self.settled, &mut self.stream) {
            match timeout_at(settled, stream.next()).await {
                Ok(event) => self.handle_event(event.as_ref()),
                Err(_settled) => self.settled = None,
            }
        }
        // The stream has ended. Without this wait a folder that fails again and again would be a busy
        // loop.
        if let Some(settled) = self.settled {
            sleep_until(settled).await;
            self.settled = None;
        }
    }

    /// Handles one event. If the folder was removed or inotify failed, the next call opens a new watch.
    fn handle_event<T>(&mut self, event: Option<&std::io::Result<Event<T>>>) {
        if !is_live(event) {
            self.stream = None;
        }
    }

    fn open_watch(&mut self) {
        if self.events == WatchMode::Poll {
            return;
        }
        match open_inotify(&self.path) {
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

/// True if more events can follow this one. `IN_IGNORED` is the last event of a watch (inotify(7)).
fn is_live<T>(event: Option<&std::io::Result<Event<T>>>) -> bool {
    matches!(event, Some(Ok(event)) if !event.mask.contains(EventMask::IGNORED))
}

fn open_inotify(path: &Path) -> std::io::Result<EventStream<Vec<u8>>> {
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
        let mut watched = WatchedFolder::new(folder.path(), WatchMode::Inotify, LONG);
        fs_err::write(folder.path().join("x"), "").unwrap();
        timeout(LONG / 3, watched.wait_for_change()).await.unwrap();
    }

    #[tokio::test]
    async fn a_change_outlives_a_wait_that_was_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = WatchedFolder::new(folder.path(), WatchMode::Inotify, LONG);
        fs_err::write(folder.path().join("x"), "").unwrap();
        for _ in 0..50 {
            if watched.wait_for_change().now_or_never().is_some() {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
        timeout(LONG / 3, watched.wait_for_change()).await.unwrap();
    }

    #[rstest]
    #[case::without_events(WatchMode::Poll, true)]
    #[case::before_the_folder_exists(WatchMode::Inotify, false)]
    #[tokio::test]
    async fn returns_after_the_pause(#[case] events: WatchMode, #[case] exists: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub");
        if exists {
            fs_err::create_dir(&path).unwrap();
        }
        let mut watched = WatchedFolder::new(&path, events, SHORT);
        timeout(LONG / 3, watched.wait_for_change()).await.unwrap();
    }

    #[tokio::test]
    async fn finds_the_folder_again_after_it_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub");
        fs_err::create_dir(&path).unwrap();
        let mut watched = WatchedFolder::new(&path, WatchMode::Inotify, SHORT);
        fs_err::remove_dir(&path).unwrap();
        timeout(LONG / 3, watched.wait_for_change()).await.unwrap();
        fs_err::create_dir(&path).unwrap();
        for _ in 0..3 {
            timeout(LONG / 3, watched.wait_for_change()).await.unwrap();
        }
        watched.pause = LONG;
        fs_err::write(path.join("x"), "").unwrap();
        timeout(LONG / 3, watched.wait_for_change()).await.unwrap();
    }
}
