//! State of the CDI stage, for `/v1/status` and the log.

use std::path::PathBuf;

use api::{CdiEvidence, CdiFile, CdiLists, CdiStatus, serialized_word};
use cdi::{SupportEvidence, store::FileStatus};
use model::ResourceName;
use rules::ResolvedLists;

/// State of the CDI stage after one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CdiStageStatus {
    /// Folder of the specs.
    pub dir: PathBuf,
    /// Spec files that exist or are wanted.
    pub files: Vec<FileStatus>,
    /// Number of containers in the kubelet's checkpoint that were started with CDI names of ours.
    pub containers: usize,
    /// Notes for the operator, for example on files of the driver that a container will not get.
    pub notes: Vec<String>,
    /// Evidence on the container runtime.
    pub runtime: SupportEvidence,
    /// Evidence on the kubelet.
    pub kubelet: SupportEvidence,
    /// Device list strategies of each resource that may use CDI.
    pub lists: Vec<ListStatus>,
}

/// Device list strategies of one resource, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListStatus {
    /// Name of the resource.
    pub resource: ResourceName,
    /// Strategies in force, the same as in the offer.
    pub lists: ResolvedLists,
    /// Reason for the strategies, with the evidence, for an operator.
    pub why: String,
}

// === impl CdiStageStatus ===

impl CdiStageStatus {
    /// Writes one log line for each difference from the status before.
    pub(super) fn log_changes(&self, old: &Self) {
        for file in self.files.iter().filter(|file| !old.files.contains(file)) {
            let (path, names) = (file.path.display(), file.names);
            match &file.problem {
                Some(problem) => tracing::error!(%path, "{problem}"),
                None => tracing::info!(%path, names, "the CDI spec is in place"),
            }
        }
        for file in &old.files {
            if !self.files.iter().any(|new| new.key == file.key) {
                tracing::info!(path = %file.path.display(), "the CDI spec is not needed any more");
            }
        }
        for note in self.notes.iter().filter(|note| !old.notes.contains(note)) {
            tracing::warn!("CDI: {note}");
        }
        for list in self.lists.iter().filter(|list| !old.lists.contains(list)) {
            let (resource, lists) = (&list.resource, &list.lists.strategies);
            tracing::info!(%resource, ?lists, why = list.why, "containers are told of devices");
        }
    }
}

impl From<&CdiStageStatus> for CdiStatus {
    fn from(status: &CdiStageStatus) -> Self {
        let file = |file: &FileStatus| CdiFile {
            class: class_of(file.key.cdi_kind()).to_owned(),
            path: file.path.clone(),
            names: file.names,
            problem: file.problem.clone(),
        };
        let lists = |lists: &ListStatus| CdiLists {
            resource: lists.resource.clone(),
            strategies: lists.lists.strategies.iter().map(serialized_word).collect(),
            reason: serialized_word(lists.lists.reason),
            why: lists.why.clone(),
        };
        let evidence = |evidence: &SupportEvidence| CdiEvidence {
            supported: evidence.supported,
            reason: evidence.reason.clone(),
        };
        Self {
            dir: status.dir.clone(),
            files: status.files.iter().map(file).collect(),
            containers: status.containers,
            notes: status.notes.clone(),
            runtime: evidence(&status.runtime),
            kubelet: evidence(&status.kubelet),
            lists: status.lists.iter().map(lists).collect(),
        }
    }
}

/// Class of a CDI kind: the part after the slash.
fn class_of(kind: &str) -> &str {
    kind.split_once('/').map_or(kind, |(_vendor, class)| class)
}
