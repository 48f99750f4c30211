//! What a container is given for its devices.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::Word;

/// What a container is given for its devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Handover {
    /// How the container runtime is told which devices; sorted, each once. Empty: not at all.
    pub lists: Vec<ListStrategy>,
    /// By which ids.
    pub ids: IdStrategy,
    /// Whether device nodes are handed over through the kubelet.
    pub device_nodes: bool,
    /// The folder on the host under which `/dev/nvidia*` are; `/` where they are at home.
    pub dev_root: PathBuf,
    /// The beginning of the CDI annotation's key.
    pub annotation_prefix: String,
    /// `NVIDIA_DRIVER_CAPABILITIES`, if it is to be set.
    pub capabilities: Option<String>,
    /// GPUDirect Storage.
    pub gds: bool,
    /// GDRCopy.
    pub gdrcopy: bool,
    /// MOFED: RDMA devices.
    pub mofed: bool,
    /// IMEX channels.
    pub imex: Vec<u32>,
    /// The folder on the host with the MPS daemon's files.
    pub mps_root: Option<PathBuf>,
}

/// How the container runtime is told which devices.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ListStrategy {
    /// The best that the runtime is known to support.
    Auto,
    /// `NVIDIA_VISIBLE_DEVICES` with the ids.
    Envvar,
    /// Mounts under `/var/run/nvidia-container-devices`.
    VolumeMounts,
    /// CDI names in an annotation.
    CdiAnnotations,
    /// CDI names through the CRI.
    CdiCri,
}

/// By which ids a container's devices are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdStrategy {
    /// UUIDs.
    Uuid,
    /// The driver's indices.
    Index,
}

// === impl Handover ===

impl Default for Handover {
    /// The variable with UUIDs, and the device nodes.
    fn default() -> Self {
        Self {
            lists: vec![ListStrategy::Envvar],
            ids: IdStrategy::Uuid,
            device_nodes: true,
            dev_root: PathBuf::from("/"),
            annotation_prefix: "cdi.k8s.io/".to_owned(),
            capabilities: None,
            gds: false,
            gdrcopy: false,
            mofed: false,
            imex: Vec::new(),
            mps_root: None,
        }
    }
}

// === impl ListStrategy ===

impl Word for ListStrategy {}

// === impl IdStrategy ===

impl Word for IdStrategy {}
