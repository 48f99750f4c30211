//! The agent's own state, as the control socket tells it.

use std::path::PathBuf;

use inventory::Keeping;
use jiff::Timestamp;
use kubelet::Resource;
use serde::Serialize;

use super::offers::Made;

/// What `/v1/status` says.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Status {
    pub(super) version: &'static str,
    pub(super) pid: u32,
    pub(super) started: Timestamp,
    pub(super) config: ConfigStatus,
    /// One row for each resource, filled in when it is asked for.
    pub(super) resources: Vec<Resource>,
    /// What is not offered and why, and the like; filled in when it is asked for.
    #[serde(flatten)]
    pub(super) offers: Made,
    /// How it goes with CDI specs; filled in when it is asked for.
    pub(super) cdi: kubelet::cdi::Status,
    /// How it goes with the state file; filled in when it is asked for.
    pub(super) state: Keeping,
}

/// Which config is at work.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ConfigStatus {
    /// The file, if there is one.
    pub(super) file: Option<PathBuf>,
    /// When the config at work was read.
    pub(super) loaded: Timestamp,
    /// Why the newest one is not at work.
    pub(super) problem: Option<String>,
}

// === impl Status ===

impl Status {
    /// The state of an agent that starts now.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        let now = Timestamp::now();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            started: now,
            config: ConfigStatus {
                file,
                loaded: now,
                problem: None,
            },
            resources: Vec::new(),
            offers: Made::default(),
            cdi: kubelet::cdi::Status::default(),
            state: Keeping::default(),
        }
    }
}
