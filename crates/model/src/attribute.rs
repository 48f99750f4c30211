//! Facts of a device by name: attributes, as in DRA, and capacities.

use std::{
    borrow::{Borrow, Cow},
    collections::BTreeMap,
    fmt,
    str::FromStr,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Version;

/// Name of an attribute or a capacity: letters, digits and `_`. Before it a domain and a slash,
/// unless the name is the vendor's own: `resource.kubernetes.io/pcieRoot`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AttributeName(Cow<'static, str>);

/// Name of a capacity, with the rules of attribute names.
pub type CapacityName = AttributeName;

/// Text that is not the name of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of an attribute: letters, digits and `_`, at most 32 of them, beginning \
     with a letter, and perhaps a domain and a slash before"
)]
pub struct InvalidAttributeName(String);

/// Value of an attribute: one of the four types of a DRA attribute.
///
/// Numbers, booleans and texts are plain in JSON. A version is `{"version": "8.0"}`, so that it is
/// not read as a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an attribute is a whole number, true or false, a text, or {\"version\": \"1.2.3\"}"
)]
pub enum Value {
    /// Boolean.
    Bool(bool),
    /// Whole number.
    Int(i64),
    /// Text.
    Text(String),
    /// Version of one to three numbers.
    Version {
        /// Version, compared as numbers.
        version: Version,
    },
}

/// Attributes of a device.
pub type Attributes = BTreeMap<AttributeName, Value>;

/// Capacities of a device: bytes of memory, numbers of engines.
pub type Capacities = BTreeMap<CapacityName, u64>;

/// Names of attributes that devices of every vendor can have. A name that DRA or NVIDIA's DRA
/// driver defines is used as it is there. Names of one vendor only are in the vendor's folder.
pub mod names {
    use super::AttributeName;

    /// Product name, e.g. `NVIDIA A100-SXM4-40GB`. A partition has the name of its card.
    pub const PRODUCT: AttributeName = AttributeName::from_static("productName");
    /// Vendor's name of the generation, e.g. `Hopper`.
    pub const ARCHITECTURE: AttributeName = AttributeName::from_static("architecture");
    /// Vendor's name of the product line, e.g. `Tesla`.
    pub const BRAND: AttributeName = AttributeName::from_static("brand");
    /// True if a display is attached to the card.
    pub const DISPLAY: AttributeName = AttributeName::from_static("display");
    /// True if CPU and card see each other's memory under the same addresses in hardware (ATS).
    pub const COHERENT: AttributeName = AttributeName::from_static("coherent");
    /// True if the device is part of the board's chip. Such a device has no device node of its own
    /// and no sensors.
    pub const INTEGRATED: AttributeName = AttributeName::from_static("integrated");
    /// True if the device stands for all cards of the machine, because they cannot be told apart.
    pub const COMBINED: AttributeName = AttributeName::from_static("combined");
    /// Capacity: bytes of memory.
    pub const MEMORY: AttributeName = AttributeName::from_static("memory");
}

/// Highest length of a name, as in DRA (`DeviceMaxIDLength`). The API server refuses a slice with a
/// longer one.
const NAME_LIMIT: usize = 32;
/// Highest length of a domain, as in DRA (`DeviceMaxDomainLength`).
const DOMAIN_LIMIT: usize = 63;

// === impl AttributeName ===

impl AttributeName {
    /// Creates a name without a check, for constants. Names of a probe or a user must be parsed.
    pub const fn from_static(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Returns the name, with its domain if there is one.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AttributeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AttributeName {
    type Err = InvalidAttributeName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for AttributeName {
    type Error = InvalidAttributeName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_name = match text.split_once('/') {
            Some((domain, name)) => is_domain(domain) && is_identifier(name),
            None => is_identifier(&text),
        };
        if is_name {
            Ok(Self(Cow::Owned(text)))
        } else {
            Err(InvalidAttributeName(text))
        }
    }
}

impl From<AttributeName> for String {
    fn from(name: AttributeName) -> Self {
        name.0.into_owned()
    }
}

impl Borrow<str> for AttributeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

// === impl Value ===

impl Value {
    /// Returns the text, or `None` for another type.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bool(_) | Self::Int(_) | Self::Version { .. } => None,
        }
    }

    /// Returns the boolean, or `None` for another type.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Int(_) | Self::Text(_) | Self::Version { .. } => None,
        }
    }

    /// Returns the number, or `None` for another type.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(_) | Self::Text(_) | Self::Version { .. } => None,
        }
    }

    /// Returns the version, or `None` for another type.
    pub fn as_version(&self) -> Option<&Version> {
        match self {
            Self::Version { version } => Some(version),
            Self::Bool(_) | Self::Int(_) | Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Version { version } => version.fmt(f),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Version> for Value {
    fn from(version: Version) -> Self {
        Self::Version { version }
    }
}

fn is_domain(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    (1..=DOMAIN_LIMIT).contains(&text.len()) && text.bytes().all(letter)
}

/// Returns true for a C identifier of at most [`NAME_LIMIT`] characters.
fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= NAME_LIMIT
        && bytes
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests;
