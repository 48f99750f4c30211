//! Selectors: the devices that a rule is about.

use std::collections::BTreeMap;

use model::{AttributeName, PciAddress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Size,
    source::{At, FromNode, Item, Notes, Section, Word, parsed, read_section},
};

/// The devices that a rule is about. What is said must hold all together; what is not said holds for all. Texts are
/// patterns: `*` stands for any text, the rest for itself, and all of the value must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selector {
    /// The vendor, e.g. `nvidia`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub vendor: Vec<String>,
    /// The product name, e.g. `NVIDIA A100-*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub model: Vec<String>,
    /// The device's id, or its card's: `GPU-…`, `MIG-…`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub uuid: Vec<String>,
    /// The driver's index, `3` (the card and its partitions) or `3:0` (one partition).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<crate::schema::Index>")]
    pub index: Vec<String>,
    /// The PCI address, e.g. `0000:3b:00.0`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub pci: Vec<String>,
    /// Memory, in bytes: at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_memory: Option<Size>,
    /// Memory, in bytes: at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<Size>,
    /// The profile of a partition, of any vendor: a MIG profile such as `1g.5gb` or `3g.*`. Whole cards
    /// have none and never match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "crate::schema::OneOrMany<String>")]
    pub profile: Vec<String>,
    /// Whole cards (`card`) or partitions (`partition`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<KindName>,
    /// Cards with (`true`) or without (`false`) a display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<bool>,
    /// Attributes by name, e.g. `architecture: hopper`. Patterns, in upper or lower case. An attribute
    /// that is not known of a device matches in `exclude` and `reserved`, and nowhere else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, crate::schema::OneOrMany<AttributePattern>>")]
    pub attributes: BTreeMap<AttributeName, Vec<String>>,
}

/// A pattern for an attribute: a form for the schema alone.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
enum AttributePattern {
    /// For a text or a version.
    Text(String),
    /// For a number.
    Number(i64),
    /// For a yes or no.
    Bool(bool),
}

/// Whole card or partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    /// A whole card.
    Card,
    /// A partition of a card, e.g. a MIG device.
    Partition,
}

// === impl Selector ===

impl FromNode for Selector {
    fn from_node(item: &Item<'_>, notes: &mut Notes) -> Option<Self> {
        let mut selector = Self::default();
        read_section(item, notes, &mut selector).then_some(selector)
    }
}

impl Section for Selector {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("vendor", &mut self.vendor);
        at.set("model", &mut self.model);
        at.set("uuid", &mut self.uuid);
        at.set("index", &mut self.index);
        at.set("pci", &mut self.pci);
        at.set_by("minMemory", &mut self.min_memory, size);
        at.set_by("maxMemory", &mut self.max_memory, size);
        at.set("profile", &mut self.profile);
        at.set("kind", &mut self.kind);
        at.set("display", &mut self.display);
        at.set_by("attributes", &mut self.attributes, attributes);
        self.check(at);
        self.check_texts(at);
    }
}

impl Selector {
    fn check(&self, at: &mut At<'_>) {
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

    fn check_texts(&self, at: &mut At<'_>) {
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

fn size(item: &Item<'_>, notes: &mut Notes) -> Option<Option<Size>> {
    parsed("write a whole number with Gi, G, Mi or M")(item, notes).map(Some)
}

/// Reads the attributes of a selector. What is wrong with one costs that one.
fn attributes(item: &Item<'_>, notes: &mut Notes) -> Option<BTreeMap<AttributeName, Vec<String>>> {
    let mut found = BTreeMap::new();
    for (text, place, item) in item.fields(notes)?.items() {
        let name: AttributeName = match text.parse() {
            Ok(name) => name,
            Err(error) => {
                let help = "write it as in `attributes: {architecture: hopper}`";
                notes.error(place, &item.key, format!("{error}"), help);
                continue;
            }
        };
        let patterns: Vec<String> = item
            .one_or_many()
            .iter()
            .filter_map(|one| Some(one.text(notes)?.value))
            .collect();
        if patterns.iter().any(String::is_empty) || patterns.is_empty() {
            let help = "write a value, or a pattern such as `hop*`";
            notes.error(place, &item.key, "an empty text matches nothing", help);
        }
        if found.insert(name, patterns).is_some() {
            notes.error(place, &item.key, "said twice", "remove one of them");
        }
    }
    Some(found)
}
