//! Waiting for changes of the node's folder, without polling.

use std::{os::fd::OwnedFd, path::Path, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, WatchFlags},
};

#[expect(
    clippy::disallowed_types,
    reason = "this is synchronous C ABI code; there is no tokio clock in the caller's process"
)]
type DeadlineInstant = std::time::Instant;

/// Polling interval if the kernel gives no notifications.
const SLICE: Duration = Duration::from_millis(50);

/// Notifications of a folder, starting when the value is created.
#[derive(Debug)]
pub(super) struct FolderWatch {
    notices: Option<OwnedFd>,
}

/// Point in time to wait until; `None` is never.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitDeadline(Option<DeadlineInstant>);

// === impl WaitDeadline ===

impl WaitDeadline {
    /// Deadline after `millis` milliseconds; never for `None`.
    pub(super) fn after(millis: Option<u64>) -> Self {
        let later = |millis| DeadlineInstant::now().checked_add(Duration::from_millis(millis));
        Self(millis.and_then(later))
    }

    /// Time left; `None` for ever.
    fn time_left(self) -> Option<Duration> {
        self.0
            .map(|end| end.saturating_duration_since(DeadlineInstant::now()))
    }

    /// True if the deadline has passed.
    pub(super) fn over(self) -> bool {
        self.time_left().is_some_and(|left| left.is_zero())
    }
}

// === impl FolderWatch ===

impl FolderWatch {
    /// Starts notifications. If the kernel has no more inotify watches
    /// (`fs.inotify.max_user_watches`), [`FolderWatch::wait_change`] polls.
    pub(super) fn new(folder: &Path) -> Self {
        let make = || {
            let notices = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let what = WatchFlags::MODIFY
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF;
            inotify::add_watch(&notices, folder, what)?;
            Ok::<_, rustix::io::Errno>(notices)
        };
        Self {
            notices: make().ok(),
        }
    }

    /// Returns after a change, at the deadline, or shortly before either. The caller checks again.
    pub(super) fn wait_change(&self, deadline: WaitDeadline) {
        let left = deadline.time_left();
        let Some(notices) = &self.notices else {
            std::thread::sleep(left.unwrap_or(SLICE).min(SLICE));
            return;
        };
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = [PollFd::new(notices, PollFlags::IN)];
        if poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0) {
            let mut buffer = [0_u8; 4096];
            while rustix::io::read(notices, &mut buffer).is_ok_and(|read| read > 0) {}
        }
    }
}
