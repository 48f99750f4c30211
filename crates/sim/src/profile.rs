//! Profiles: a machine and its cards, written by hand in YAML, with the figures of real hardware.
//!
//! A profile says what is particular (addresses, NUMA nodes, links, MIG layouts); what all cards
//! of a kind share comes from `profiles/models.yaml` or from the profile's own `models`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use sim_node::{
    BusId,
    identity::uuid,
    state::{Driver, Fabric, Gpu, Model, NumaNode, Other, Platform, State, Tegra, VgpuHost},
};

mod build;
mod check;
mod defaults;
mod join;
mod problem;

pub use problem::{Problem, Problems};

/// The profiles that come with the program.
const BUILT_IN: [(&str, &str); 14] = [
    ("a100-mig", include_str!("../profiles/a100-mig.yaml")),
    (
        "a100-mig-odd",
        include_str!("../profiles/a100-mig-odd.yaml"),
    ),
    ("dgx-a100", include_str!("../profiles/dgx-a100.yaml")),
    ("dgx1-v100", include_str!("../profiles/dgx1-v100.yaml")),
    ("gb200-nvl", include_str!("../profiles/gb200-nvl.yaml")),
    ("hgx-b200", include_str!("../profiles/hgx-b200.yaml")),
    ("hgx-h100", include_str!("../profiles/hgx-h100.yaml")),
    ("hgx2-v100", include_str!("../profiles/hgx2-v100.yaml")),
    ("l40s-pcie", include_str!("../profiles/l40s-pcie.yaml")),
    ("mixed", include_str!("../profiles/mixed.yaml")),
    ("t4", include_str!("../profiles/t4.yaml")),
    ("tegra", include_str!("../profiles/tegra.yaml")),
    ("vgpu", include_str!("../profiles/vgpu.yaml")),
    ("wsl", include_str!("../profiles/wsl.yaml")),
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
    #[serde(default = "defaults::description")]
    pub description: String,
    /// The product name that the machine's firmware tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// How programs come to the cards.
    #[serde(default, skip_serializing_if = "defaults::is_bare_metal")]
    pub platform: Platform,
    /// The driver's versions.
    #[serde(default = "defaults::driver")]
    pub driver: Driver,
    /// The identity of the NVLink fabric that the cards are a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Fabric>,
    /// The host below a virtual machine; only on the platform `vgpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vgpu: Option<VgpuHost>,
    /// The system's software; only on the platform `tegra`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tegra: Option<Tegra>,
    /// The machine's NUMA nodes.
    #[serde(default = "defaults::numa")]
    pub numa: Vec<NumaNode>,
    /// The model of the cards that do not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Models of its own, by the name that the cards use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Model>,
    /// The cards.
    pub gpus: Vec<Card>,
    /// NVLinks between two cards by their positions: `0-3: 2` is two links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nvlinks: BTreeMap<String, u32>,
    /// NVSwitches; every card is joined to the switches of its group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nvswitches: Vec<Switch>,
    /// PCI functions that are no GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Other>,
}

/// One card of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Where it sits.
    pub pci: BusId,
    /// What lies between it and the processor, outermost first, joined by slashes.
    #[serde(default = "defaults::under")]
    pub under: String,
    /// The NUMA node it is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// The NUMA node that its own memory forms, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_numa: Option<u32>,
    /// Its model, if it is not the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its UUID, if it is not to be derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Its serial number, if it is not to be derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// The number of its device node, if it is not its position in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<u32>,
    /// The group of NVSwitches it is joined to.
    #[serde(default, skip_serializing_if = "defaults::is_zero")]
    pub group: u32,
    /// Its NVLinks by what is at their other end, in place of those that follow from `nvlinks` and
    /// `nvswitches`: the address of a card or NVSwitch, `fabric` for switches outside the machine,
    /// `down` for links that are not up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<BTreeMap<String, u32>>,
    /// Its MIG devices, each as `PROFILE` or `PROFILE@FIRST-MEMORY-SLICE`; an empty list is MIG
    /// mode without any, no list is MIG mode off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<Vec<String>>,
    /// The UUIDs of its MIG devices in the order of `mig`, if they are not to be derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig_uuids: Option<Vec<String>>,
}

/// One NVSwitch of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Where it sits.
    pub pci: BusId,
    /// `vendor:device` in hex.
    pub id: String,
    /// What lies between it and the processor.
    #[serde(default = "defaults::under")]
    pub under: String,
    /// The NUMA node it is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// The group of cards that it joins.
    #[serde(default, skip_serializing_if = "defaults::is_zero")]
    pub group: u32,
    /// The links that each card has to it, if they are not as many as the model says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<u32>,
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
    /// The profile contradicts itself, or describes what cannot be; everything is named.
    #[error("cannot use the profile{0}")]
    Nonsense(Problems),
    /// The profile cannot be written as YAML.
    #[error("cannot write the profile as YAML")]
    Write(#[source] Box<serde_saphyr::ser_error::Error>),
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
        match build::state(&profile) {
            Ok(_) => Ok(profile),
            Err(problems) => Err(Error::Nonsense(problems.located(yaml))),
        }
    }

    /// The profile as YAML that [`Profile::parse`] reads.
    ///
    /// # Errors
    /// If it cannot be written so.
    pub fn yaml(&self) -> Result<String, Error> {
        serde_saphyr::to_string(self).map_err(|e| Error::Write(Box::new(e)))
    }

    /// The state of a new node.
    ///
    /// # Errors
    /// If the profile contradicts itself.
    pub fn state(&self) -> Result<State, Error> {
        build::state(self).map_err(Error::Nonsense)
    }
}

/// A UUID that is the same for the same profile, for a fabric whose own is not to be told.
pub fn cluster(profile: &str) -> String {
    let uuid = uuid("cluster", &[profile]);
    uuid.trim_start_matches("cluster-").to_owned()
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
