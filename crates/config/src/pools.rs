//! The pools: devices that are offered, under which name, shared how, and how they are handed over.
//! The native file and NVIDIA's v1 file both end here; below, there is one path.

mod check;
mod extra;
mod handover;
mod placement;
mod selector;
mod sharing;

use std::fmt;

use model::ResourceName;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::{
    extra::{ExtraMount, InvalidTemplate, ValueTemplate},
    handover::{Handover, IdStrategy, ListStrategy},
    placement::{Placement, Policy, Weights},
    selector::{KindName, Selector},
    sharing::{Distinct, Method, Sharing},
};
use crate::{
    Backends, PreStart, PreStartMode,
    schema::{OneOrMany, WordOr},
    source::{At, Section, number},
};

/// Every pool of the node, and what is kept out of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pools {
    /// If there are any, only devices that one of them matches are offered.
    #[schemars(with = "OneOrMany<Selector>")]
    pub include: Vec<Selector>,
    /// Devices that one of them matches are not offered.
    #[schemars(with = "OneOrMany<Selector>")]
    pub exclude: Vec<Selector>,
    /// The pools, in the order of the config: the first whose selector matches takes the device.
    pub pools: Vec<Pool>,
}

/// Devices under one resource name, or under one name for each shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pool {
    /// The name that people call it by; unique.
    pub name: String,
    /// Selectors of the devices that it takes: any that one of these matches. Without one, it takes
    /// all.
    #[serde(rename = "select", default)]
    #[schemars(with = "OneOrMany<Selector>")]
    pub selectors: Vec<Selector>,
    /// Of the devices that it takes, those that are never offered.
    #[serde(default)]
    #[schemars(with = "OneOrMany<Selector>")]
    pub reserved: Vec<Selector>,
    /// The largest number of devices that it takes, the first by the driver's index; the others are
    /// left to the pools after it.
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// The resource name, or how it is made.
    pub resource: Template,
    /// The sharing of a device: a method, or a map.
    #[serde(default)]
    #[schemars(with = "WordOr<Method, Sharing>")]
    pub sharing: Sharing,
    /// The rule by which units are chosen: a policy, or a map.
    #[serde(default)]
    #[schemars(with = "WordOr<Policy, Placement>")]
    pub placement: Placement,
    /// The parts that a container is given, where they differ from `handover` of the whole file.
    #[serde(default)]
    pub handover: Handover,
    /// The action before a container starts on a device.
    #[serde(flatten)]
    pub pre_start: PreStart,
}

/// A resource name with places to fill in: `{profile}` (MIG profile with `+` as `.`), `{model}`
/// (product name as lower-case words with `-`), `{memory}` (`40gb`), `{vendor}`, `{index}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Template(pub String);

// === impl Pools ===

impl Default for Pools {
    /// Those of every vendor's defaults.
    fn default() -> Self {
        Self {
            include: Vec::new(),
            exclude: Vec::new(),
            pools: Backends::default().pools(),
        }
    }
}

impl Pools {
    /// Reads the pools, each over the handover of the whole file. Where the file has none, they are
    /// those of the backends.
    pub(crate) fn read(&mut self, backends: &Backends, handover: &Handover, at: &mut At<'_>) {
        at.set("include", &mut self.include);
        at.set("exclude", &mut self.exclude);
        if self.exclude.contains(&Selector::default()) {
            let help = "say which devices, or write `pools: []` to offer nothing";
            at.error("exclude", "an empty selector excludes every device", help);
        }
        let defaults = Pool {
            handover: handover.clone(),
            ..Pool::all("", "")
        };
        if let Some(pools) = at.sections("pools", &defaults) {
            self.pools = pools;
            check::pools(&self.pools, at);
            return;
        }
        self.pools = backends.pools();
        for pool in &mut self.pools {
            pool.handover.clone_from(handover);
        }
    }

    /// Returns true if some pool asks who uses a device before a container starts on it.
    pub fn asks_who(&self) -> bool {
        let asks = |pool: &Pool| pool.pre_start.mode != PreStartMode::Off;
        self.pools.iter().any(asks)
    }
}

// === impl Pool ===

impl Section for Pool {
    fn read(&mut self, at: &mut At<'_>) {
        at.require("name", &mut self.name, "every pool needs a name of its own");
        at.set("select", &mut self.selectors);
        at.set("reserved", &mut self.reserved);
        at.set_by("limit", &mut self.limit, |item, notes| {
            number(1..=u32::MAX)(item, notes).map(Some)
        });
        let help = "name the resource, e.g. `resource: example.com/gpu`";
        at.require("resource", &mut self.resource, help);
        at.section_or("sharing", &mut self.sharing, "method", |sharing| {
            &mut sharing.method
        });
        let word = at.section_or("placement", &mut self.placement, "policy", |placement| {
            &mut placement.policy
        });
        if word && self.placement.policy == Policy::Weighted {
            let (message, help) = (Placement::LACKS_WEIGHTS, Placement::ADD_WEIGHTS);
            at.error("placement.policy", message, help);
        }
        at.section("handover", &mut self.handover);
        self.pre_start.read(at);
        check::pool(self, at);
    }
}

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

// === impl Template ===

impl From<String> for Template {
    fn from(text: String) -> Self {
        Self(text)
    }
}

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
