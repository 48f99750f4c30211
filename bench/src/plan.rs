//! How thoroughly to measure.

use std::{path::PathBuf, time::Duration};

/// What every measurement takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// A short run that writes no files
    #[arg(long)]
    pub(crate) quick: bool,

    /// How often each program is started [default: 20, quick: 5]
    #[arg(long, value_name = "N")]
    starts: Option<usize>,

    /// How often it is started before that, without being measured
    #[arg(long, value_name = "N", default_value_t = 3)]
    warmups: usize,

    /// How often each call is made, at most [default: 2000, quick: 200]
    #[arg(long, value_name = "N")]
    calls: Option<usize>,

    /// For how many seconds each idle program is watched [default: 60, quick: 10]
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,

    /// How many cards are broken in each way, 1 to 8 [default: 5, quick: 1]
    #[arg(long, value_name = "N")]
    faults: Option<usize>,

    /// After how many seconds a verdict that has not come counts as never [default: 60, quick: 40]
    #[arg(long, value_name = "SECONDS")]
    never: Option<u64>,

    /// Measure only these; nothing is written unless --output is given
    #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<Part>,

    /// The agent to measure [default: the one that `cargo build --release` makes]
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,

    /// Where the results go; with --quick or --only nothing is written unless this is given
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Start and end
    Starts,
    /// Allocate
    Calls,
    /// Cards that break, and a driver that reports no events
    Faults,
    /// Memory, and CPU time while nobody asks anything
    Idle,
    /// GetPreferredAllocation
    Prefer,
    /// Feature discovery
    Labels,
    /// The functions behind the calls
    Functions,
}

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How often each program is started.
    pub(crate) starts: usize,
    /// How often before that.
    pub(crate) warmups: usize,
    /// How often each call is made at most.
    pub(crate) calls: usize,
    /// How long the idle programs are watched.
    pub(crate) idle: Duration,
    /// How many cards are broken in each way.
    pub(crate) faults: usize,
    /// When a verdict is no longer waited for.
    pub(crate) never: Duration,
    /// How long one question may take.
    pub(crate) deadline: Duration,
    /// How often a slow question is asked at least.
    pub(crate) least: usize,
    /// After how long a slow question is not asked again.
    pub(crate) budget: Duration,
}

// === impl Args ===

impl Args {
    /// Whether this part is to be measured.
    pub(crate) fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// What these arguments say.
    pub(crate) fn plan(&self) -> Plan {
        let quick = |short, long| if self.quick { short } else { long };
        let seconds = |short, long| Duration::from_secs(if self.quick { short } else { long });
        let given = |seconds: Option<u64>| seconds.map(|given| Duration::from_secs(given.max(1)));
        Plan {
            starts: self.starts.unwrap_or(quick(5, 20)).max(1),
            warmups: self.warmups,
            calls: self.calls.unwrap_or(quick(200, 2000)).max(1),
            idle: given(self.idle).unwrap_or(seconds(10, 60)),
            faults: self.faults.unwrap_or(quick(1, 5)).clamp(1, 8),
            never: given(self.never).unwrap_or(seconds(40, 60)),
            deadline: seconds(20, 60),
            least: quick(1, 3),
            budget: seconds(1, 3),
        }
    }
}
