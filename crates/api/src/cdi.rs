//! The state of CDI on the page [`STATUS`](crate::STATUS).

use std::path::PathBuf;

use model::ResourceName;
use serde::{Deserialize, Serialize};

/// State of the CDI specs, and what is known of those who read them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdiStatus {
    /// The folder of the specs.
    pub dir: PathBuf,
    /// The files that are there or should be.
    pub files: Vec<CdiFile>,
    /// Number of containers in the kubelet's record that were started with names of the specs.
    pub containers: usize,
    /// Sentences on what containers will miss.
    pub notes: Vec<String>,
    /// Evidence on the container runtime.
    pub runtime: CdiEvidence,
    /// Evidence on the kubelet.
    pub kubelet: CdiEvidence,
    /// The list strategies of each resource that may use CDI.
    pub lists: Vec<CdiLists>,
}

/// One spec file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdiFile {
    /// The CDI class of its devices.
    pub class: String,
    /// The file.
    pub path: PathBuf,
    /// Number of device names in it.
    pub names: usize,
    /// The reason it is not as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Evidence that somebody takes CDI names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdiEvidence {
    /// True if CDI names are known to be taken.
    pub supported: bool,
    /// The evidence, or what is missing.
    pub reason: String,
}

/// The way in which a resource's devices are named to the container runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdiLists {
    /// The resource.
    pub resource: ResourceName,
    /// The strategies in force, as the config spells them, e.g. `cdi-cri`.
    pub strategies: Vec<String>,
    /// The reason, for programs, e.g. `no-spec`.
    pub reason: String,
    /// The reason, for a person.
    pub why: String,
}
