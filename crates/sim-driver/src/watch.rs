//! Waiting for the node's folder to change, without polling it.

use std::{os::fd::OwnedFd, path::Path, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, WatchFlags},
};

#[expect(
    clippy::disallowed_types,
    reason = "this is synchronous C ABI code; there is no tokio clock in the caller's process"
)]
type Moment = std::time::Instant;

/// How often to look where the kernel gives no notices.
const SLICE: Duration = Duration::from_millis(50);

/// Notices of a folder, from its making on.
#[derive(Debug)]
pub(super) struct Watch {
    notices: Option<OwnedFd>,
}

/// A moment to wait until, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<Moment>);

// === impl Deadline ===

impl Deadline {
    /// After so many milliseconds; never without.
    pub(super) fn after(millis: Option<u64>) -> Self {
        let later = |millis| Moment::now().checked_add(Duration::from_millis(millis));
        Self(millis.and_then(later))
    }

    /// What is left; `None` is for ever.
    fn left(self) -> Option<Duration> {
        self.0
            .map(|end| end.saturating_duration_since(Moment::now()))
    }

    /// Whether it has come.
    pub(super) fn over(self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }
}

// === impl Watch ===

impl Watch {
    /// Notices from now on. Where the kernel has no more watches to give, waiting looks again
    /// every little while.
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

    /// Returns when something changed, or at the deadline, or a little before either.
    pub(super) fn wait(&self, deadline: Deadline) {
        let left = deadline.left();
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
