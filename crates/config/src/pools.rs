//! What is offered, under which name, shared how, and how it is handed over: the resolved pools.
//! The native file and NVIDIA's v1 file both end here; below, there is one path.

mod handover;
mod placement;
mod selector;
mod sharing;

use std::fmt;

use model::ResourceName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    handover::{Handover, IdStrategy, ListStrategy},
    placement::{Placement, Policy, Weights},
    selector::{KindName, Selector},
    sharing::{Distinct, Method, Sharing},
};
use crate::{Needs, PreStart, PreStartMode, UnknownAs, source::Word};

/// Every pool of the node, and what is kept out of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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
    #[serde(skip)]
    pub needs: Needs,
    /// What the kubelet is told of a device that cannot be judged.
    #[serde(skip)]
    pub unknown: UnknownAs,
}

/// Devices under one resource name, or under one name for each shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    /// What people call it; unique.
    pub name: String,
    /// Which devices it takes. A device that any of them matches is in; none at all takes all.
    #[serde(rename = "select")]
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
    #[serde(flatten)]
    pub pre_start: PreStart,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Template(pub String);

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

    /// Whether some pool asks who uses a device before a container starts on it.
    pub fn asks_who(&self) -> bool {
        let asks = |pool: &Pool| pool.pre_start.mode != PreStartMode::Off;
        self.pools.iter().any(asks)
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

// === impl Mig ===

impl Word for Mig {}

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
