//! Settings and time limits of a supervisor.

use std::time::Duration;

use model::NodePattern;

use super::{children::ChildRegistry, orders::Orders, process::Program};
use crate::protocol::Configure;

/// Settings of a supervisor.
#[derive(Clone, Debug)]
pub struct SupervisorSettings {
    /// Name of the backend: `nvidia`.
    pub name: String,
    /// Command line of the probe.
    pub program: Program,
    /// Device nodes that the probe may name; `None` for a built-in probe, which may name any.
    pub allow: Option<Vec<NodePattern>>,
    /// Settings of the probe processes. The supervisor changes the cards for each process, and
    /// turns events and links off while their calls are stuck.
    pub configure: Configure,
    /// Time limits.
    pub limits: Limits,
    /// Registry of child processes, shared by the whole agent.
    pub children: ChildRegistry,
    /// Orders to this supervisor.
    pub orders: Orders,
}

/// Time limits of a supervisor, and the limit of abandoned processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time after which a call on one card is stuck. Any call that takes longer is logged and
    /// shown. Default 10 s.
    pub call: Duration,
    /// Time after which a call that concerns the whole driver is stuck. Default 60 s.
    pub driver_call: Duration,
    /// Time without a line after which a probe process counts as hanging. Default 10 s.
    pub silence: Duration,
    /// Pause before the second try; doubles with each further try. Default 5 s.
    pub pause: Duration,
    /// Longest pause between two tries. Default 5 min.
    pub longest_pause: Duration,
    /// Limit of abandoned processes that still exist: at this number no further process is started.
    /// Default 2.
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
    /// Returns the pause after `tries` earlier tries.
    pub(super) fn pause(&self, tries: u32) -> Duration {
        let factor = 2u32.saturating_pow(tries);
        let longest = self.longest_pause.max(self.pause);
        self.pause.saturating_mul(factor).min(longest)
    }
}
