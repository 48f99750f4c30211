//! Pools: groups of devices with a resource name, sharing, placement and handover. `ostler.yaml`
//! and NVIDIA's v1 file both result in these types; everything after them is the same for both.

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
    source::{Section, SectionReader, number_within},
};

/// Every pool of the node, and the selectors that hold for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pools {
    /// Selectors of the devices that may be offered. Without one, every device may be offered.
    #[schemars(with = "OneOrMany<Selector>")]
    pub include: Vec<Selector>,
    /// Selectors of devices that are not offered.
    #[schemars(with = "OneOrMany<Selector>")]
    pub exclude: Vec<Selector>,
    /// Pools in the order of the file. The first one whose selector matches takes the device.
    pub pools: Vec<Pool>,
}

/// Devices under one resource name, or under names that a template makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pool {
    /// Name of the pool in messages and in the status. Unique.
    pub name: String,
    /// Selectors of the devices that the pool takes. Without one, it takes every device.
    #[serde(rename = "select", default)]
    #[schemars(with = "OneOrMany<Selector>")]
    pub selectors: Vec<Selector>,
    /// Selectors of devices that the pool takes and never offers.
    #[serde(default)]
    #[schemars(with = "OneOrMany<Selector>")]
    pub reserved: Vec<Selector>,
    /// Largest number of devices that the pool takes, the first by the driver's index. The others
    /// are left to the pools after it.
    #[schemars(range(min = 1))]
    pub limit: Option<u32>,
    /// Resource name, or a template for it.
    pub resource: Template,
    /// Sharing of a device: a method, or a map.
    #[serde(default)]
    #[schemars(with = "WordOr<Method, Sharing>")]
    pub sharing: Sharing,
    /// Rule by which units are chosen: a policy, or a map.
    #[serde(default)]
    #[schemars(with = "WordOr<Policy, Placement>")]
    pub placement: Placement,
    /// Parts that a container is given, where they differ from the file's `handover`.
    #[serde(default)]
    pub handover: Handover,
    /// Action before a container starts on a device.
    #[serde(flatten)]
    pub pre_start: PreStart,
}

/// Resource name with placeholders: `{profile}` (MIG profile with `+` as `.`), `{model}` (product
/// name in lower case, its words joined by `-`), `{memory}` (`40gb`), `{vendor}`, `{index}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Template(pub String);

// === impl Pools ===

impl Default for Pools {
    /// Returns the default pools of every vendor.
    fn default() -> Self {
        Self {
            include: Vec::new(),
            exclude: Vec::new(),
            pools: Backends::default().default_pools(),
        }
    }
}

impl Pools {
    /// Reads the pools, each over the handover of the file. A file without pools gets those of the
    /// backends.
    pub(crate) fn read_pools(
        &mut self,
        backends: &Backends,
        handover: &Handover,
        at: &mut SectionReader<'_>,
    ) {
        at.set_option("include", &mut self.include);
        at.set_option("exclude", &mut self.exclude);
        // `pools: []` is the clear way to offer nothing. An empty selector is most often a mistake.
        if self.exclude.contains(&Selector::default()) {
            let help = "say which devices, or write `pools: []` to offer nothing";
            at.note_option_error("exclude", "an empty selector excludes every device", help);
        }
        let defaults = Pool {
            handover: handover.clone(),
            ..Pool::of_all_devices("", "")
        };
        if let Some(pools) = at.sections("pools", &defaults) {
            self.pools = pools;
            check::check_pools(&self.pools, at);
            return;
        }
        self.pools = backends.default_pools();
        for pool in &mut self.pools {
            pool.handover.clone_from(handover);
        }
    }

    /// Returns true if some pool needs the holders of a device before a container starts on it.
    pub fn asks_who(&self) -> bool {
        let asks = |pool: &Pool| pool.pre_start.mode != PreStartMode::Off;
        self.pools.iter().any(asks)
    }
}

// === impl Pool ===

impl Section for Pool {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.require("name", &mut self.name, "every pool needs a name of its own");
        at.set_option("select", &mut self.selectors);
        at.set_option("reserved", &mut self.reserved);
        at.set_by("limit", &mut self.limit, |item, notes| {
            number_within(1..=u32::MAX)(item, notes).map(Some)
        });
        let help = "name the resource, e.g. `resource: example.com/gpu`";
        at.require("resource", &mut self.resource, help);
        at.section_or("sharing", &mut self.sharing, "method", |sharing| {
            &mut sharing.method
        });
        let word = at.section_or("placement", &mut self.placement, "policy", |placement| {
            &mut placement.policy
        });
        // The word has no place for weights; the map reports the same error itself.
        if word && self.placement.policy == Policy::Weighted {
            let (message, help) = (Placement::LACKS_WEIGHTS, Placement::ADD_WEIGHTS);
            at.note_option_error("placement.policy", message, help);
        }
        at.set_section("handover", &mut self.handover);
        self.pre_start.read_options(at);
        check::check_pool_options(self, at);
    }
}

impl Pool {
    /// Makes a pool that takes every device and has default options.
    ///
    /// ```
    /// use config::{Config, Pool};
    ///
    /// let mut config = Config::default();
    /// config.pools.pools = vec![Pool::of_all_devices("gpu", "example.com/gpu")];
    /// ```
    pub fn of_all_devices(name: &str, resource: &str) -> Self {
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
    /// Returns the resource name of a template without placeholders. `None` for any other.
    pub fn as_resource_name(&self) -> Option<ResourceName> {
        self.0.parse().ok()
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
