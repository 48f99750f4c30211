//! What a supervisor keeps running, and how patient it is.

use std::time::Duration;

use model::NodePattern;

use super::{children::Children, orders::Orders, process::Program};
use crate::protocol::Configure;

/// What a supervisor keeps running, and how patiently.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The backend's name: `nvidia`.
    pub name: String,
    /// How its probe is started.
    pub program: Program,
    /// Device nodes that the probe may name; absent for a probe of this program.
    pub allow: Option<Vec<NodePattern>>,
    /// Settings of its processes. Each has its own cards, and goes without what hangs.
    pub configure: Configure,
    /// How patient to be.
    pub limits: Limits,
    /// Where its processes are written down.
    pub children: Children,
    /// How it is told what to do.
    pub orders: Orders,
}

/// How patient a supervisor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A call on a card that takes longer is stuck; any call that takes longer is named.
    pub call: Duration,
    /// A call that concerns the whole driver is given up after this.
    pub driver_call: Duration,
    /// A probe that says nothing for this long is stuck.
    pub silence: Duration,
    /// The pause before the second try; it doubles with each further one.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// At most this many processes that were given up and are still there.
    pub stuck_processes: usize,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(10),
            driver_call: Duration::from_secs(60),
            silence: Duration::from_secs(10),
            pause: Duration::from_secs(5),
            longest_pause: Duration::from_secs(300),
            stuck_processes: 2,
        }
    }
}

impl Limits {
    /// The pause after `tries` earlier ones.
    pub(super) fn pause(&self, tries: u32) -> Duration {
        let factor = 2u32.saturating_pow(tries);
        let longest = self.longest_pause.max(self.pause);
        self.pause.saturating_mul(factor).min(longest)
    }
}
