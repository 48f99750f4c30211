//! A point in time on the monotonic clock. It survives a restart of the agent, which sets that
//! clock to zero.

use std::time::Duration;

use crate::Now;

/// A point in time, in the run of this agent or of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MonotonicMoment {
    /// Uptime of this agent when the point was stored.
    uptime: Duration,
    /// Age that the point already had at `uptime`; zero for a point in this agent's run.
    before: Duration,
}

// === impl MonotonicMoment ===

impl MonotonicMoment {
    /// Returns the present point in time.
    pub(super) fn new(now: Now) -> Self {
        Self::before_now(Duration::ZERO, now)
    }

    /// Returns the point that lies `ago` before `now`.
    pub(super) fn before_now(ago: Duration, now: Now) -> Self {
        Self {
            uptime: now.uptime,
            before: ago,
        }
    }

    /// Returns the age of the point.
    pub(super) fn ago(self, now: Now) -> Duration {
        self.before
            .saturating_add(now.uptime.saturating_sub(self.uptime))
    }
}
