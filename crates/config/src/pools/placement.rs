//! Which units are best together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{At, Section, Word, number};

/// Which units are best together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Placement {
    /// The rule.
    pub policy: Policy,
    /// The weights of the policy `weighted`.
    #[serde(skip_serializing_if = "Weights::is_zero")]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Weights {
    /// Links between the cards.
    #[schemars(range(max = Weights::MOST))]
    pub link: u32,
    /// The same NUMA node.
    #[schemars(range(max = Weights::MOST))]
    pub numa: u32,
    /// Few other units in use on the card.
    #[schemars(range(max = Weights::MOST))]
    pub load: u32,
    /// A cool card.
    #[schemars(range(max = Weights::MOST))]
    pub temperature: u32,
    /// A card that draws little power.
    #[schemars(range(max = Weights::MOST))]
    pub power: u32,
}

// === impl Placement ===

impl Section for Placement {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("policy", &mut self.policy);
        let weights = at.section("weights", &mut self.weights);
        if weights.is_some() && at.place("policy").is_none() {
            self.policy = Policy::Weighted;
        }
        let weighted = self.policy == Policy::Weighted;
        if weighted && weights.is_none() {
            at.error("policy", Self::LACKS_WEIGHTS, Self::ADD_WEIGHTS);
        }
        if let Some(place) = weights.filter(|_| !weighted) {
            let help = "write `policy: weighted`, or remove the weights";
            at.error_at(
                place,
                "weights",
                "only the policy weighted has weights",
                help,
            );
        }
        if let Some(place) = weights.filter(|_| weighted && self.weights.is_zero()) {
            let help = "give link, numa, load, temperature or power a number above 0";
            at.error_at(place, "weights", "all weights are 0: nothing counts", help);
        }
    }
}

impl Default for Placement {
    /// The best connected.
    fn default() -> Self {
        Self {
            policy: Policy::Topology,
            weights: Weights::default(),
        }
    }
}

impl Placement {
    /// The error of the policy `weighted` without weights.
    pub(crate) const LACKS_WEIGHTS: &str = "the policy weighted needs `weights`";
    /// The remedy.
    pub(crate) const ADD_WEIGHTS: &str =
        "write them, e.g. `placement: {policy: weighted, weights: {link: 2, numa: 1}}`";
}

// === impl Weights ===

impl Section for Weights {
    fn read(&mut self, at: &mut At<'_>) {
        at.set_by("link", &mut self.link, number(0..=Self::MOST));
        at.set_by("numa", &mut self.numa, number(0..=Self::MOST));
        at.set_by("load", &mut self.load, number(0..=Self::MOST));
        at.set_by("temperature", &mut self.temperature, number(0..=Self::MOST));
        at.set_by("power", &mut self.power, number(0..=Self::MOST));
    }
}

impl Weights {
    /// The largest weight.
    const MOST: u32 = 1_000_000;

    /// Returns true if nothing counts: weights that nobody gave.
    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

// === impl Policy ===

impl Word for Policy {}
