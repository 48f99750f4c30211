//! Section `backends.acme`: rules of a made-up vendor, which only the tests of
//! `crates/vendors/acme` compile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    EventAction,
    source::{Section, SectionReader, Word},
};

/// Rules for the cards of a made-up vendor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AcmeBackend {
    /// Treatment of cards that are divided into halves.
    pub halves: AcmeHalves,
    /// Meaning of a trap for its card.
    pub trap: EventAction,
}

/// Treatment of cards that are divided into halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AcmeHalves {
    /// The halves are offered.
    #[default]
    Offered,
    /// Nothing of them is offered, only whole cards are.
    Hidden,
}

// === impl AcmeBackend ===

impl Section for AcmeBackend {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("halves", &mut self.halves);
        at.set_option("trap", &mut self.trap);
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
