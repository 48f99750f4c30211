//! The page `/v1/status` of the control socket: the agent's own state.

use std::path::PathBuf;

use api::{
    AgentStatus, CdiStatus, ConfigStatus, NotOffered, PoolNote, Resource, StateFile,
    serialized_word,
};
use inventory::StateFileStatus;
use jiff::Timestamp;
use pool::{DeviceNotOffered, PlanNote};

use super::offers::PlanReport;

/// Inputs of [`AgentStatus`], borrowed from their channels for one request.
#[derive(Clone, Debug)]
pub(super) struct StatusParts<'a> {
    pub(super) config: &'a ConfigStatus,
    pub(super) resources: &'a [Resource],
    pub(super) made: &'a PlanReport,
    pub(super) cdi: &'a kubelet::cdi::CdiStageStatus,
    pub(super) keeping: &'a StateFileStatus,
}

/// State of the config when the agent starts: read now, without a problem.
pub(super) fn fresh_config(file: Option<PathBuf>) -> ConfigStatus {
    ConfigStatus {
        file,
        loaded: Timestamp::now(),
        problem: None,
    }
}

// === impl StatusParts ===

impl StatusParts<'_> {
    /// Makes the page. `started` is the start of the agent.
    pub(super) fn make_status(&self, started: Timestamp) -> AgentStatus {
        AgentStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started,
            config: self.config.clone(),
            resources: self.resources.to_vec(),
            aside: self.made.aside.iter().map(not_offered).collect(),
            notes: self.made.notes.iter().map(pool_note).collect(),
            handover: self.made.handover.clone(),
            cdi: CdiStatus::from(self.cdi),
            state: StateFile {
                file: self.keeping.file.clone(),
                problem: self.keeping.problem.clone(),
            },
        }
    }
}

fn not_offered(aside: &DeviceNotOffered) -> NotOffered {
    NotOffered {
        device: aside.device.clone(),
        pool: aside.pool.clone(),
        kind: serialized_word(aside.kind),
        reason: aside.reason.clone(),
    }
}

fn pool_note(note: &PlanNote) -> PoolNote {
    PoolNote {
        pool: note.pool.clone(),
        resource: note.resource.clone(),
        kind: serialized_word(note.kind),
        text: note.text.clone(),
    }
}
