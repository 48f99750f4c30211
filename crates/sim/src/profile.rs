//! Profiles: a machine and its cards, written by hand in YAML, with the figures of real hardware.
//!
//! A profile states the particulars (PCI addresses, NUMA nodes, links, MIG layouts). The figures
//! that all cards of a model share come from `profiles/models.yaml` or from the profile's own
//! `models`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use sim_node::{
    BusId,
    identity::made_up_uuid,
    state::{
        DriverVersions, Gpu, GpuModel, NodePlatform, NodeState, NumaNode, NvlinkFabric,
        OtherFunction, Tegra, VgpuHost,
    },
};

mod build;
mod check;
mod defaults;
mod join;
mod problem;

pub use problem::{ProfileProblem, ProfileProblems};

/// Built-in profiles, sorted by name.
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

/// Built-in models.
const MODELS: &str = include_str!("../profiles/models.yaml");

/// A machine and its cards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeProfile {
    /// Name; UUIDs are derived from it.
    pub name: String,
    /// Description for a reader.
    #[serde(default = "defaults::description")]
    pub description: String,
    /// Product name in the machine's firmware (DMI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Platform: how programs reach the cards.
    #[serde(default, skip_serializing_if = "defaults::is_bare_metal")]
    pub platform: NodePlatform,
    /// Versions of the driver.
    #[serde(default = "defaults::driver")]
    pub driver: DriverVersions,
    /// NVLink fabric that the cards belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<NvlinkFabric>,
    /// Host below a virtual machine; only on the platform `vgpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vgpu: Option<VgpuHost>,
    /// Software of the system; only on the platform `tegra`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tegra: Option<Tegra>,
    /// NUMA nodes of the machine.
    #[serde(default = "defaults::numa")]
    pub numa: Vec<NumaNode>,
    /// Model of the cards that do not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Models of this profile, by the name that the cards use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, GpuModel>,
    /// Cards, in any order.
    pub gpus: Vec<ProfileCard>,
    /// NVLinks between two cards by their positions: `0-3: 2` means two links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nvlinks: BTreeMap<String, u32>,
    /// NVSwitches. Every card is linked to the switches of its group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nvswitches: Vec<ProfileSwitch>,
    /// PCI functions that are not GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherFunction>,
}

/// One card of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileCard {
    /// PCI address.
    pub pci: BusId,
    /// PCI root and bridges above the card, outermost first, joined by slashes.
    #[serde(default = "defaults::under")]
    pub under: String,
    /// NUMA node of the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// NUMA node of the card's own memory, if that forms a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_numa: Option<u32>,
    /// Model, if it differs from the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// UUID; derived from the profile's name and the PCI address if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Serial number; derived if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Minor number of the device node; the position in the list if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<u32>,
    /// Group of NVSwitches that the card is linked to.
    #[serde(default, skip_serializing_if = "defaults::is_zero")]
    pub group: u32,
    /// NVLinks by their other end, in place of those that follow from `nvlinks` and `nvswitches`.
    /// The key is the PCI address of a card or NVSwitch, `fabric` for switches outside the machine,
    /// or `down` for links that are not up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<BTreeMap<String, u32>>,
    /// MIG devices, each as `PROFILE` or `PROFILE@FIRST-MEMORY-SLICE`. An empty list means MIG mode
    /// without devices; no list means MIG mode off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig: Option<Vec<String>>,
    /// UUIDs of the MIG devices in the order of `mig`; derived if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig_uuids: Option<Vec<String>>,
}

/// One NVSwitch of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileSwitch {
    /// PCI address.
    pub pci: BusId,
    /// `vendor:device` in hex.
    pub id: String,
    /// PCI root and bridges above the switch.
    #[serde(default = "defaults::under")]
    pub under: String,
    /// NUMA node of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// Group of cards that the switch connects.
    #[serde(default, skip_serializing_if = "defaults::is_zero")]
    pub group: u32,
    /// Links of each card to this switch; the model's number if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<u32>,
}

/// Reason why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No built-in profile has this name.
    #[error("there is no profile `{name}`; there are: {}", names().join(", "))]
    Unknown {
        /// Requested name.
        name: String,
    },
    /// The text is not a profile; the message has line, column and snippet.
    #[error("cannot read the profile: {0}")]
    Syntax(#[source] Box<serde_saphyr::Error>),
    /// The profile contradicts itself, or describes an impossible machine; lists all problems.
    #[error("cannot use the profile{0}")]
    Nonsense(ProfileProblems),
    /// The profile cannot be written as YAML.
    #[error("cannot write the profile as YAML")]
    Write(#[source] Box<serde_saphyr::ser_error::Error>),
}

/// Names of the built-in profiles, sorted.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

// === impl NodeProfile ===

impl NodeProfile {
    /// Reads the built-in profile of this name.
    ///
    /// # Errors
    /// If there is no such profile; the message lists all names.
    pub fn find_profile(name: &str) -> Result<Self, Error> {
        let (_, yaml) = BUILT_IN
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| Error::Unknown {
                name: name.to_owned(),
            })?;
        Self::parse_profile(yaml)
    }

    /// Reads a profile from YAML and checks it.
    ///
    /// # Errors
    /// If the text is not a profile, or the profile contradicts itself.
    pub fn parse_profile(yaml: &str) -> Result<Self, Error> {
        let profile: Self = read_yaml(yaml)?;
        match build::build_state(&profile) {
            Ok(_) => Ok(profile),
            Err(problems) => Err(Error::Nonsense(problems.located(yaml))),
        }
    }

    /// Writes the profile as YAML, which [`NodeProfile::parse_profile`] reads.
    ///
    /// # Errors
    /// If the profile cannot be written as YAML.
    pub fn yaml(&self) -> Result<String, Error> {
        serde_saphyr::to_string(self).map_err(|e| Error::Write(Box::new(e)))
    }

    /// Builds the state of a new node.
    ///
    /// # Errors
    /// If the profile contradicts itself.
    pub fn to_state(&self) -> Result<NodeState, Error> {
        build::build_state(self).map_err(Error::Nonsense)
    }
}

/// UUID of an NVLink fabric, derived from the profile's name. For profiles of real machines whose
/// own UUID must not be published.
pub fn cluster(profile: &str) -> String {
    let uuid = made_up_uuid("cluster", &[profile]);
    uuid.trim_start_matches("cluster-").to_owned()
}

/// Built-in models, by name.
pub(crate) fn built_in_models() -> BTreeMap<String, GpuModel> {
    read_yaml(MODELS).expect("a test reads the models that come with the program")
}

fn read_yaml<T: serde::de::DeserializeOwned>(yaml: &str) -> Result<T, Error> {
    // Without it, YAML 1.1 words such as `on` and `no` would be booleans.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|e| Error::Syntax(Box::new(e)))
}

/// Sorts cards into the driver's order, which is that of their PCI addresses.
pub(crate) fn sort_cards(gpus: &mut [Gpu]) {
    gpus.sort_by_key(|gpu| gpu.pci);
}

#[cfg(test)]
mod tests;
