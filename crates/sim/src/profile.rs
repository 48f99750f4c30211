//! Profiles: a machine and its cards, written by hand in YAML, with the figures of real hardware.
//!
//! A profile says what is particular (addresses, NUMA nodes, links, MIG layouts); what all cards
//! of a kind share comes from `profiles/models.yaml` or from the profile's own `models`.

use std::collections::BTreeMap;

use model::PciAddress;
use serde::{Deserialize, Serialize};

use crate::state::{Driver, Gpu, Model, NumaNode, Other, State};

mod build;
pub(crate) mod mig;

pub(crate) use build::{serial, uuid};

/// The profiles that come with the program.
const BUILT_IN: [(&str, &str); 5] = [
    ("a100-mig", include_str!("../profiles/a100-mig.yaml")),
    ("dgx-a100", include_str!("../profiles/dgx-a100.yaml")),
    ("dgx1-v100", include_str!("../profiles/dgx1-v100.yaml")),
    ("hgx2-v100", include_str!("../profiles/hgx2-v100.yaml")),
    ("t4", include_str!("../profiles/t4.yaml")),
];

/// The models that come with the program.
const MODELS: &str = include_str!("../profiles/models.yaml");

/// A machine and its cards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name; UUIDs are derived from it.
    pub name: String,
    /// What it is, for a person.
    pub description: String,
    /// The driver's versions.
    pub driver: Driver,
    /// The machine's NUMA nodes.
    pub numa: Vec<NumaNode>,
    /// The model of the cards that do not name one.
    #[serde(default)]
    pub model: Option<String>,
    /// Models of its own, by the name that the cards use.
    #[serde(default)]
    pub models: BTreeMap<String, Model>,
    /// The cards.
    pub gpus: Vec<Card>,
    /// NVLinks between two cards by their positions: `0-3: 2` is two links.
    #[serde(default)]
    pub nvlinks: BTreeMap<String, u32>,
    /// NVSwitches; every card is joined to the switches of its group.
    #[serde(default)]
    pub nvswitches: Vec<Switch>,
    /// PCI functions that are no GPUs.
    #[serde(default)]
    pub others: Vec<Other>,
}

/// One card of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Where it sits.
    pub pci: PciAddress,
    /// What lies between it and the processor, outermost first, joined by slashes.
    pub under: String,
    /// The NUMA node it is attached to.
    #[serde(default)]
    pub numa: Option<u32>,
    /// Its model, if it is not the profile's.
    #[serde(default)]
    pub model: Option<String>,
    /// Its UUID, if it is not to be derived.
    #[serde(default)]
    pub uuid: Option<String>,
    /// The group of NVSwitches it is joined to.
    #[serde(default)]
    pub group: u32,
    /// Its MIG devices; an empty list is MIG mode without any, no list is MIG mode off.
    #[serde(default)]
    pub mig: Option<Vec<String>>,
}

/// One NVSwitch of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Where it sits.
    pub pci: PciAddress,
    /// `vendor:device` in hex.
    pub id: String,
    /// What lies between it and the processor.
    pub under: String,
    /// The NUMA node it is attached to.
    #[serde(default)]
    pub numa: Option<u32>,
    /// The group of cards that it joins.
    #[serde(default)]
    pub group: u32,
}

/// A profile that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this name.
    #[error("there is no profile `{name}`; there are: {}", names().join(", "))]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// The text is no profile; the message has line, column and snippet.
    #[error("cannot read the profile: {0}")]
    Syntax(#[source] Box<serde_saphyr::Error>),
    /// A card names a model that is not there.
    #[error("card {pci} has the unknown model `{model}`; there are: {known}")]
    Model {
        /// The card.
        pci: PciAddress,
        /// What it asks for.
        model: String,
        /// What there is.
        known: String,
    },
    /// Two cards have the same address or UUID.
    #[error("card {pci} is there twice")]
    Twice {
        /// The card.
        pci: PciAddress,
    },
    /// A key of `nvlinks` names no two cards.
    #[error("`{key}` in nvlinks does not name two cards of this profile, as `0-3` does")]
    Link {
        /// The key.
        key: String,
    },
    /// A card has more links than the driver can number.
    #[error("card {pci} has {count} NVLinks; the driver knows 18 at most")]
    Links {
        /// The card.
        pci: PciAddress,
        /// How many there are.
        count: usize,
    },
    /// A card cannot be cut as its `mig` list says.
    #[error("card {pci} cannot be partitioned")]
    Mig {
        /// The card.
        pci: PciAddress,
        /// Why.
        #[source]
        source: mig::Error,
    },
}

/// The names of the profiles that come with the program, sorted.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

// === impl Profile ===

impl Profile {
    /// The profile of this name that comes with the program.
    ///
    /// # Errors
    /// If there is none; the message lists those that there are.
    pub fn named(name: &str) -> Result<Self, Error> {
        let (_, yaml) = BUILT_IN
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| Error::Unknown {
                name: name.to_owned(),
            })?;
        Self::parse(yaml)
    }

    /// Reads a profile from YAML and checks it.
    ///
    /// # Errors
    /// If the text is no profile, or contradicts itself.
    pub fn parse(yaml: &str) -> Result<Self, Error> {
        let profile: Self = read(yaml)?;
        profile.state()?;
        Ok(profile)
    }

    /// The state of a new node.
    ///
    /// # Errors
    /// If the profile contradicts itself.
    pub fn state(&self) -> Result<State, Error> {
        build::state(self)
    }
}

/// The models that come with the program.
pub(crate) fn models() -> BTreeMap<String, Model> {
    read(MODELS).expect("a test reads the models that come with the program")
}

fn read<T: serde::de::DeserializeOwned>(yaml: &str) -> Result<T, Error> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|e| Error::Syntax(Box::new(e)))
}

/// Puts cards in the order in which the driver counts them.
pub(crate) fn sort(gpus: &mut [Gpu]) {
    gpus.sort_by_key(|gpu| gpu.pci);
}

#[cfg(test)]
mod tests;
