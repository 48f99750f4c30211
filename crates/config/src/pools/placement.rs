//! Section `placement` of a pool: the choice of units for a container.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::{Section, SectionReader, Word, number_within};

/// Rule by which units are chosen for a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Placement {
    /// Policy by which units are chosen.
    pub policy: Policy,
    /// Weights of the policy `weighted`.
    #[serde(skip_serializing_if = "Weights::is_zero")]
    pub weights: Weights,
}

/// Policy by which units are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Cards with the best links between them, so that the remaining cards are well connected too.
    Topology,
    /// Cards that are in use before idle cards.
    Packed,
    /// The least used cards first.
    Spread,
    /// The first units in the order of their ids.
    FirstFit,
    /// The fullest card on which the request still fits.
    BestFit,
    /// The least recently granted units.
    RoundRobin,
    /// The best units by the weights of the config.
    Weighted,
}

/// Weight of each criterion when units are chosen. Whole numbers; 0 switches a criterion off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Weights {
    /// Weight of links between the cards.
    #[schemars(range(max = Weights::MOST))]
    pub link: u32,
    /// Weight of cards on the same NUMA node.
    #[schemars(range(max = Weights::MOST))]
    pub numa: u32,
    /// Weight of a card with few other units in use.
    #[schemars(range(max = Weights::MOST))]
    pub load: u32,
    /// Weight of a low temperature of the card.
    #[schemars(range(max = Weights::MOST))]
    pub temperature: u32,
    /// Weight of a low power draw of the card.
    #[schemars(range(max = Weights::MOST))]
    pub power: u32,
}

// === impl Placement ===

impl Section for Placement {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("policy", &mut self.policy);
        let weights = at.set_section("weights", &mut self.weights);
        // No other policy has weights, so they choose the policy.
        if weights.is_some() && at.option_place("policy").is_none() {
            self.policy = Policy::Weighted;
        }
        let weighted = self.policy == Policy::Weighted;
        if weighted && weights.is_none() {
            at.note_option_error("policy", Self::LACKS_WEIGHTS, Self::ADD_WEIGHTS);
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
    /// Returns the policy `topology`.
    fn default() -> Self {
        Self {
            policy: Policy::Topology,
            weights: Weights::default(),
        }
    }
}

impl Placement {
    /// Message for the policy `weighted` without weights.
    pub(crate) const LACKS_WEIGHTS: &str = "the policy weighted needs `weights`";
    /// Remedy for [`Self::LACKS_WEIGHTS`].
    pub(crate) const ADD_WEIGHTS: &str =
        "write them, e.g. `placement: {policy: weighted, weights: {link: 2, numa: 1}}`";
}

// === impl Weights ===

impl Section for Weights {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_by("link", &mut self.link, number_within(0..=Self::MOST));
        at.set_by("numa", &mut self.numa, number_within(0..=Self::MOST));
        at.set_by("load", &mut self.load, number_within(0..=Self::MOST));
        at.set_by(
            "temperature",
            &mut self.temperature,
            number_within(0..=Self::MOST),
        );
        at.set_by("power", &mut self.power, number_within(0..=Self::MOST));
    }
}

impl Weights {
    /// Largest weight.
    const MOST: u32 = 1_000_000;

    /// Returns true if all weights are 0, which is the default.
    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

// === impl Policy ===

impl Word for Policy {}
