//! The section `backends.acme`: settings of a made-up vendor, which only the tests of
//! `crates/vendors/acme` compile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    EventAction,
    source::{At, Section, Word},
};

/// Rules for the cards of a made-up vendor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AcmeBackend {
    /// The way in which cards that are cut in halves are offered.
    pub halves: AcmeHalves,
    /// The meaning of a trap for its card.
    pub trap: EventAction,
}

/// The way in which cards that are cut in halves are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AcmeHalves {
    /// As their halves.
    #[default]
    Offered,
    /// Not at all: whole cards alone are offered.
    Hidden,
}

// === impl AcmeBackend ===

impl Section for AcmeBackend {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("halves", &mut self.halves);
        at.set("trap", &mut self.trap);
    }
}

impl Default for AcmeBackend {
    fn default() -> Self {
        Self {
            halves: AcmeHalves::default(),
            trap: EventAction::Reset,
        }
    }
}

// === impl AcmeHalves ===

impl Word for AcmeHalves {}
