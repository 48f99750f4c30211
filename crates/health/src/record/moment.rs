//! A moment on the clock that never jumps, which a restart of the agent does not set back.

use std::time::Duration;

use crate::Now;

/// A moment of this agent, or of one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    uptime: Duration,
    /// How long ago it was already at `uptime`.
    before: Duration,
}

// === impl Moment ===

impl Moment {
    /// This moment.
    pub(super) fn new(now: Now) -> Self {
        Self::earlier(Duration::ZERO, now)
    }

    /// A moment that long ago.
    pub(super) fn earlier(ago: Duration, now: Now) -> Self {
        Self {
            uptime: now.uptime,
            before: ago,
        }
    }

    /// How long ago it was.
    pub(super) fn ago(self, now: Now) -> Duration {
        self.before
            .saturating_add(now.uptime.saturating_sub(self.uptime))
    }
}
