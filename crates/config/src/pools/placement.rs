//! Which units are best together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::Word;

/// Which units are best together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The rule.
    pub policy: Policy,
    /// For [`Policy::Weighted`]: what counts how much.
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

// === impl Weights ===

impl Weights {
    /// Returns true if nothing counts: weights that nobody gave.
    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

// === impl Policy ===

impl Word for Policy {}
