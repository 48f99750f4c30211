//! State of CDI on the page [`STATUS`](crate::STATUS).

use std::path::PathBuf;

use model::ResourceName;
use serde::{Deserialize, Serialize};

/// State of the CDI specs, and the evidence that the runtime and the kubelet use them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdiStatus {
    /// Folder of the spec files.
    pub dir: PathBuf,
    /// Spec files that exist or should exist.
    pub files: Vec<CdiFile>,
    /// Number of containers in the kubelet's record that were started with names of these specs.
    pub containers: usize,
    /// Sentences on devices or files that containers will not get.
    pub notes: Vec<String>,
    /// Evidence that the container runtime resolves CDI names.
    pub runtime: CdiEvidence,
    /// Evidence that the kubelet passes CDI names on.
    pub kubelet: CdiEvidence,
    /// List strategies of each resource that may use CDI.
    pub lists: Vec<CdiLists>,
}

/// One spec file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdiFile {
    /// CDI class of the devices in it, such as `gpu`.
    pub class: String,
    /// Path of the file.
    pub path: PathBuf,
    /// Number of device names in the file.
    pub names: usize,
    /// Reason that the file is missing or outdated; absent if it is as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Evidence that a program supports CDI names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdiEvidence {
    /// True if the program is known to support CDI names.
    pub supported: bool,
    /// The evidence, or the evidence that is missing.
    pub reason: String,
}

/// List strategies by which the devices of a resource are named to the container runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdiLists {
    /// Name of the resource.
    pub resource: ResourceName,
    /// Strategies in force, as the config spells them, such as `cdi-cri`.
    pub strategies: Vec<String>,
    /// Reason, for programs, such as `no-spec`. New reasons may be added.
    pub reason: String,
    /// Reason, for people.
    pub why: String,
}
