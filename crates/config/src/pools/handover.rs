//! Section `handover`: the parts that a container is given for its devices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extra::{ExtraMount, ValueTemplate};
use crate::{
    NvidiaHandover,
    schema::OneOrMany,
    source::{Section, SectionReader, Word, map_by},
};

/// Parts that a container is given for its devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Handover {
    // Sorted and without duplicates, so that pools with the same strategies compare as equal.
    /// Strategies by which the container runtime is told the devices. With an empty list it is not
    /// told.
    #[schemars(with = "OneOrMany<ListStrategy>")]
    pub lists: Vec<ListStrategy>,
    /// Ids by which the container runtime is told the devices.
    pub ids: IdStrategy,
    /// Passes device nodes to the container through the kubelet.
    pub device_nodes: bool,
    /// Environment variables of a container: a map from names to templates. A template is filled in
    /// for each device, with a comma between the values.
    pub env: BTreeMap<String, ValueTemplate>,
    /// Files and folders of the host that are mounted into a container.
    #[schemars(with = "OneOrMany<ExtraMount>")]
    pub mounts: Vec<ExtraMount>,
    /// Parts of NVIDIA's driver that a container is given.
    pub nvidia: NvidiaHandover,
}

/// Strategy by which the container runtime is told the devices.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ListStrategy {
    /// The best strategy that the runtime is known to support.
    Auto,
    /// Variable `NVIDIA_VISIBLE_DEVICES` with the ids.
    Envvar,
    /// Mounts under `/var/run/nvidia-container-devices`.
    VolumeMounts,
    /// CDI names in an annotation.
    CdiAnnotations,
    /// CDI names in the field `CDIDevices` of the CRI.
    CdiCri,
}

/// Ids by which the container runtime is told the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IdStrategy {
    /// UUIDs.
    Uuid,
    /// The driver's indices.
    Index,
}

// === impl Handover ===

impl Section for Handover {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("lists", &mut self.lists);
        at.set_option("ids", &mut self.ids);
        at.set_option("deviceNodes", &mut self.device_nodes);
        at.set_by("env", &mut self.env, map_by(check_variable));
        at.set_option("mounts", &mut self.mounts);
        at.set_section("nvidia", &mut self.nvidia);
        self.lists.sort();
        self.lists.dedup();
    }
}

impl Default for Handover {
    /// Returns the strategy `envvar` with UUIDs, and device nodes.
    fn default() -> Self {
        Self {
            lists: vec![ListStrategy::Envvar],
            ids: IdStrategy::Uuid,
            device_nodes: true,
            env: BTreeMap::new(),
            mounts: Vec::new(),
            nvidia: NvidiaHandover::default(),
        }
    }
}

impl Handover {
    /// Returns true if a strategy uses CDI names, or may do so with some container runtime.
    pub fn may_use_cdi(&self) -> bool {
        use ListStrategy::{Auto, CdiAnnotations, CdiCri};
        let mut lists = self.lists.iter();
        lists.any(|list| matches!(list, Auto | CdiAnnotations | CdiCri))
    }
}

/// Checks the name of an environment variable. An error is a message and its remedy.
// A shell takes no other names (POSIX, chapter 8.1).
fn check_variable(name: &str) -> Result<String, (String, String)> {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let starts_with_digit = name.bytes().next().is_none_or(|b| b.is_ascii_digit());
    if !starts_with_digit && name.bytes().all(is_letter) {
        return Ok(name.to_owned());
    }
    let message = format!("`{name}` is not the name of a variable");
    let help = "write letters, digits and `_`, e.g. `CRYPTO_CARD`";
    Err((message, help.to_owned()))
}

// === impl ListStrategy ===

impl Word for ListStrategy {}

// === impl IdStrategy ===

impl Word for IdStrategy {}
