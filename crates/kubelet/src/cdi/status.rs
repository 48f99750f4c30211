//! How it goes with CDI, for a person.

use std::path::PathBuf;

use api::{CdiEvidence, CdiFile, CdiLists, CdiStatus, word};
use cdi::{Evidence, store::FileStatus};
use model::ResourceName;
use rules::Lists;

/// How it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The folder of the specs.
    pub dir: PathBuf,
    /// The files that are there or should be.
    pub files: Vec<FileStatus>,
    /// How many containers the kubelet has in its record that were started with names of them.
    pub containers: usize,
    /// What containers will miss, and the like.
    pub notes: Vec<String>,
    /// What is known of the container runtime.
    pub runtime: Evidence,
    /// What is known of the kubelet.
    pub kubelet: Evidence,
    /// How the runtime is told which devices, for each resource that may use CDI.
    pub lists: Vec<ListStatus>,
}

/// How the runtime is told which devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListStatus {
    /// Of which resource.
    pub resource: ResourceName,
    /// The strategies in force, as the offer has them.
    pub lists: Lists,
    /// The reason in words, with the evidence.
    pub why: String,
}

// === impl Status ===

impl Status {
    /// One line for everything that the one before did not say.
    pub(super) fn log(&self, old: &Self) {
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

impl From<&Status> for CdiStatus {
    fn from(status: &Status) -> Self {
        let file = |file: &FileStatus| CdiFile {
            class: class_of(file.key.kind()).to_owned(),
            path: file.path.clone(),
            names: file.names,
            problem: file.problem.clone(),
        };
        let lists = |lists: &ListStatus| CdiLists {
            resource: lists.resource.clone(),
            strategies: lists.lists.strategies.iter().map(word).collect(),
            reason: word(lists.lists.reason),
            why: lists.why.clone(),
        };
        let evidence = |evidence: &Evidence| CdiEvidence {
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

/// The part of a kind after the slash.
fn class_of(kind: &str) -> &str {
    kind.split_once('/').map_or(kind, |(_vendor, class)| class)
}
