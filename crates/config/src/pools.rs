//! What is offered, under which name, shared how, and how it is handed over: the resolved pools.
//! The native file and NVIDIA's v1 file both end here; below, there is one path.

use std::{fmt, path::PathBuf};

use model::ResourceName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Needs, PreStart, PreStartMode, UnknownAs};

/// Every pool of the node, and what is kept out of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pools {
    /// What becomes of cards in MIG mode.
    pub mig: Mig,
    /// If there are any, only devices that one of them matches are offered.
    pub include: Vec<Selector>,
    /// Devices that one of them matches are not offered.
    pub exclude: Vec<Selector>,
    /// In the order of the config: the first whose selector matches takes the device.
    pub pools: Vec<Pool>,
    /// What must be there before units are handed out.
    pub needs: Needs,
    /// What the kubelet is told of a device that cannot be judged.
    pub unknown: UnknownAs,
}

/// Devices under one resource name, or under one name for each shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// What people call it; unique.
    pub name: String,
    /// Which devices it takes. A device that any of them matches is in; none at all takes all.
    pub selectors: Vec<Selector>,
    /// Of the devices it takes, those that are never offered.
    pub reserved: Vec<Selector>,
    /// How many devices it takes at most, the first in the order of the driver's indices; the
    /// others are left to the pools after it.
    pub limit: Option<u32>,
    /// The resource name, or how it is made.
    pub resource: Template,
    /// How a device is shared.
    pub sharing: Sharing,
    /// Which units are best together.
    pub placement: Placement,
    /// What a container is given.
    pub handover: Handover,
    /// What is done with a device before a container starts on it.
    pub pre_start: PreStart,
}

/// Which devices. What is said must hold all together; what is not said holds for all. Texts are
/// patterns: `*` stands for any text, the rest for itself, and all of the value must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selector {
    /// The vendor, e.g. `nvidia`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub vendor: Vec<String>,
    /// The product name, e.g. `NVIDIA A100-*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub model: Vec<String>,
    /// The device's id, or its card's: `GPU-…`, `MIG-…`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub uuid: Vec<String>,
    /// The driver's index, `3` (the card and its partitions) or `3:0` (one partition).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<crate::file::Index>")]
    pub index: Vec<String>,
    /// The PCI address, e.g. `0000:3b:00.0`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub pci: Vec<String>,
    /// Memory, in bytes: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_memory: Option<crate::Size>,
    /// Memory, in bytes: at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<crate::Size>,
    /// The MIG profile, e.g. `1g.5gb`, `3g.*`; whole cards have none and never match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::file::OneOrMany<String>")]
    pub mig_profile: Vec<String>,
    /// Whole cards (`card`) or partitions (`partition`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<KindName>,
    /// Whether a display is attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<bool>,
}

/// Whole card or partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    /// A whole card.
    Card,
    /// A MIG device.
    Partition,
}

/// What becomes of cards in MIG mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mig {
    /// MIG is not looked at: every card is offered whole.
    None,
    /// MIG devices, all of one shape, are offered as if they were cards.
    Single,
    /// MIG devices are offered by shape, cards that are not in MIG mode whole.
    Mixed,
}

/// A resource name with places to fill in: `{profile}` (MIG profile with `+` as `.`), `{model}`
/// (product name as lower-case words with `-`), `{memory}` (`40gb`), `{vendor}`, `{index}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Template(pub String);

/// How a device is shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sharing {
    /// By which means.
    pub method: Method,
    /// How many units a device becomes; 1 where it is not shared.
    pub replicas: u32,
    /// Whether a container may have only one of them.
    pub one_per_request: bool,
    /// Whether the units of one container must be on different cards.
    pub distinct: Distinct,
}

/// By which means a device is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Not at all.
    None,
    /// Containers take turns; nothing keeps them from each other's memory.
    TimeSlicing,
    /// Through the MPS control daemon.
    Mps,
    /// MPS where card and daemon can, else time-slicing.
    Auto,
}

/// Whether the units of one container must be on different cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distinct {
    /// They must; a request that cannot be met so is refused.
    Require,
    /// Where that is possible.
    #[default]
    Prefer,
    /// It does not matter.
    Off,
}

/// Which units are best together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The rule.
    pub policy: Policy,
    /// For [`Policy::Weighted`]: what counts how much.
    pub weights: Weights,
}

/// How units are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The best connected, with the rest left as well connected as can be.
    Topology,
    /// Cards that are in use already, before others.
    Packed,
    /// Cards that are used least, before others.
    Spread,
    /// The first in the order of their ids.
    FirstFit,
    /// The fullest card that still fits the request.
    BestFit,
    /// The least recently granted.
    RoundRobin,
    /// By the user's weights.
    Weighted,
}

/// What counts how much when units are chosen. Whole numbers; 0 does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Weights {
    /// Links between the cards.
    pub link: u32,
    /// The same NUMA node.
    pub numa: u32,
    /// Few other units in use on the card.
    pub load: u32,
    /// A cool card.
    pub temperature: u32,
    /// A card that draws little power.
    pub power: u32,
}

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

// === impl Template ===

impl Template {
    /// The name itself, where there is nothing to fill in.
    pub fn plain(&self) -> Option<ResourceName> {
        self.0.parse().ok()
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Sharing ===

impl Sharing {
    /// The most units a device can become. A list with many more is too long for the kubelet.
    pub const MOST: u32 = 4096;
    /// The most units a device can become that is shared through MPS: no card has more clients.
    pub const MOST_MPS: u32 = 48;
}

impl Default for Sharing {
    /// Not shared.
    fn default() -> Self {
        Self {
            method: Method::None,
            replicas: 1,
            one_per_request: false,
            distinct: Distinct::default(),
        }
    }
}

// === impl Placement ===

impl Default for Placement {
    /// The best connected.
    fn default() -> Self {
        Self {
            policy: Policy::Topology,
            weights: Weights::default(),
        }
    }
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

// === impl Pool ===

impl Pool {
    /// A pool that takes all devices, with every default.
    pub fn all(name: &str, resource: &str) -> Self {
        Self {
            name: name.to_owned(),
            selectors: Vec::new(),
            reserved: Vec::new(),
            limit: None,
            resource: Template(resource.to_owned()),
            sharing: Sharing::default(),
            placement: Placement::default(),
            handover: Handover::default(),
            pre_start: PreStart::default(),
        }
    }
}

// === impl Pools ===

impl Default for Pools {
    /// Those of [`Mig::Mixed`].
    fn default() -> Self {
        Self::of(Mig::Mixed)
    }
}

impl Pools {
    /// The pools of a node whose config names none: whole NVIDIA cards as `nvidia.com/gpu`, MIG
    /// devices as `nvidia.com/mig-<profile>`, or as `nvidia.com/gpu` too under [`Mig::Single`].
    pub fn of(mig: Mig) -> Self {
        let partitions = match mig {
            Mig::Single => "nvidia.com/gpu",
            Mig::None | Mig::Mixed => "nvidia.com/mig-{profile}",
        };
        let of = |kind, pool| {
            let selectors = vec![Selector {
                vendor: vec!["nvidia".to_owned()],
                kind: Some(kind),
                ..Selector::default()
            }];
            Pool { selectors, ..pool }
        };
        Self {
            mig,
            include: Vec::new(),
            exclude: Vec::new(),
            pools: vec![
                of(KindName::Card, Pool::all("gpu", "nvidia.com/gpu")),
                of(KindName::Partition, Pool::all("mig", partitions)),
            ],
            needs: Needs::default(),
            unknown: UnknownAs::default(),
        }
    }
}

impl Pools {
    /// Whether some pool asks who uses a device before a container starts on it.
    pub fn asks_who(&self) -> bool {
        let asks = |pool: &Pool| pool.pre_start.mode != PreStartMode::Off;
        self.pools.iter().any(asks)
    }
}
