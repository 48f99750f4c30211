//! Selectors of devices.

use std::collections::BTreeMap;

use model::{AttributeName, PciAddress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Size,
    source::{
        FileItem, FromNode, ReadNotes, Section, SectionReader, Word, parsed_text, read_section,
    },
};

/// Selector of devices. Every key that is set must match; a key that is not set matches every
/// device. Texts are patterns: `*` stands for any text, any other character for itself, and the
/// whole value must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selector {
    /// Vendor, e.g. `nvidia`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub vendor: Vec<String>,
    /// Product name, e.g. `NVIDIA A100-*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub model: Vec<String>,
    /// Id of the device or of its card: `GPU-…`, `MIG-…`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub uuid: Vec<String>,
    /// Driver's index: `3` (the card and its partitions) or `3:0` (one partition).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<crate::schema::Index>")]
    pub index: Vec<String>,
    /// PCI address, e.g. `0000:3b:00.0`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub pci: Vec<String>,
    /// Least memory of the device, e.g. `40Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_memory: Option<Size>,
    /// Most memory of the device, e.g. `80G`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<Size>,
    /// Profile of a partition of any vendor, e.g. the MIG profile `1g.5gb`, or `3g.*`. A whole card
    /// has no profile and never matches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub profile: Vec<String>,
    /// Whole cards (`card`) or partitions (`partition`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<KindName>,
    /// Cards with (`true`) or without (`false`) a display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<bool>,
    // A failed driver call must not offer a device that the config excludes: so an unknown
    // attribute matches in `exclude` (pool/src/select.rs).
    /// Attributes by name, e.g. `architecture: hopper`. Patterns, in upper or lower case. An
    /// unknown attribute of a device matches in `exclude` and `reserved`, and nowhere else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, crate::schema::OneOrMany<AttributePattern>>")]
    pub attributes: BTreeMap<AttributeName, Vec<String>>,
}

/// Pattern for an attribute.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
enum AttributePattern {
    /// Pattern for a text or a version.
    Text(String),
    /// Pattern for a number.
    Number(i64),
    /// Pattern for a bool.
    Bool(bool),
}

/// Kind of a device: whole card or partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    /// Whole card.
    Card,
    /// Partition of a card, e.g. a MIG device.
    Partition,
}

// === impl Selector ===

impl FromNode for Selector {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        let mut selector = Self::default();
        read_section(item, notes, &mut selector).then_some(selector)
    }
}

impl Section for Selector {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("vendor", &mut self.vendor);
        at.set_option("model", &mut self.model);
        at.set_option("uuid", &mut self.uuid);
        at.set_option("index", &mut self.index);
        at.set_option("pci", &mut self.pci);
        at.set_by("minMemory", &mut self.min_memory, read_size);
        at.set_by("maxMemory", &mut self.max_memory, read_size);
        at.set_option("profile", &mut self.profile);
        at.set_option("kind", &mut self.kind);
        at.set_option("display", &mut self.display);
        at.set_by("attributes", &mut self.attributes, read_attributes);
        self.check_contradictions(at);
        self.check_texts(at);
    }
}

impl Selector {
    fn check_contradictions(&self, at: &mut SectionReader<'_>) {
        if let (Some(least), Some(most)) = (self.min_memory, self.max_memory)
            && least > most
        {
            let message = format!("no device has at least {least} and at most {most}");
            at.error_at_key("minMemory", message, "exchange the two, or remove one");
        }
        if self.kind == Some(KindName::Card) && !self.profile.is_empty() {
            let message = "whole cards have no profile: this never matches";
            let help = "write `kind: partition`, or remove one of the two";
            at.error_at_key("profile", message, help);
        }
    }

    fn check_texts(&self, at: &mut SectionReader<'_>) {
        for pci in &self.pci {
            if !pci.contains('*') && pci.parse::<PciAddress>().is_err() {
                let message = format!("`{pci}` is not a PCI address");
                let help = "write it as `0000:3b:00.0`, or a pattern such as `*:3b:00.*`";
                at.error_at_key("pci", message, help);
            }
        }
        for index in &self.index {
            let digits = |c: char| c.is_ascii_digit() || c == '*';
            let part = |part: &str| !part.is_empty() && part.chars().all(digits);
            if index.split(':').count() > 2 || !index.split(':').all(part) {
                let message = format!("`{index}` is not an index");
                let help = "write `3` for a card, `3:0` for one of its partitions";
                at.error_at_key("index", message, help);
            }
        }
        let texts = [
            ("vendor", &self.vendor),
            ("model", &self.model),
            ("uuid", &self.uuid),
            ("profile", &self.profile),
        ];
        for (name, texts) in texts {
            if texts.iter().any(String::is_empty) {
                let help = "write a value, or a pattern such as `*A100*`";
                at.error_at_key(name, "an empty text matches nothing", help);
            }
        }
    }
}

// === impl KindName ===

impl Word for KindName {}

fn read_size(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Option<Size>> {
    parsed_text("write a whole number with Gi, G, Mi or M")(item, notes).map(Some)
}

/// Reads the attributes of a selector. An attribute with an invalid name is noted and left out; the
/// others are read.
fn read_attributes(
    item: &FileItem<'_>,
    notes: &mut ReadNotes,
) -> Option<BTreeMap<AttributeName, Vec<String>>> {
    let mut found = BTreeMap::new();
    for (text, place, item) in item.read_fields(notes)?.items() {
        let name: AttributeName = match text.parse() {
            Ok(name) => name,
            Err(error) => {
                let help = "write it as in `attributes: {architecture: hopper}`";
                notes.note_error(place, &item.key, format!("{error}"), help);
                continue;
            }
        };
        let patterns: Vec<String> = item
            .one_or_many()
            .iter()
            .filter_map(|one| Some(one.read_string(notes)?.value))
            .collect();
        if patterns.iter().any(String::is_empty) || patterns.is_empty() {
            let help = "write a value, or a pattern such as `hop*`";
            notes.note_error(place, &item.key, "an empty text matches nothing", help);
        }
        if found.insert(name, patterns).is_some() {
            notes.note_error(place, &item.key, "said twice", "remove one of them");
        }
    }
    Some(found)
}
