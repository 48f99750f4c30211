//! Ids of devices, as the vendor gives them, and resource names, as Kubernetes accepts them.

use std::{borrow::Borrow, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Id of a device, given by its vendor, e.g. `GPU-…` or `MIG-…`. Stable across restarts and
/// reboots.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct DeviceId(String);

/// Name of an extended resource: `domain/name`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceName(String);

/// Text that is not a resource name, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an extended resource name: {reason}")]
pub struct InvalidResourceName {
    name: String,
    reason: &'static str,
}

// === impl DeviceId ===

impl DeviceId {
    /// Wraps the vendor's text without any check.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the id as the vendor writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for DeviceId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<&str> for DeviceId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl Borrow<str> for DeviceId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

// === impl ResourceName ===

impl ResourceName {
    /// Returns the whole name, with the domain.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part after the slash.
    pub fn base_name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, base)| base)
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ResourceName {
    type Err = InvalidResourceName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        check_resource_name(name).map_err(|reason| InvalidResourceName {
            name: name.to_owned(),
            reason,
        })?;
        Ok(Self(name.to_owned()))
    }
}

impl TryFrom<String> for ResourceName {
    type Error = InvalidResourceName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl From<ResourceName> for String {
    fn from(name: ResourceName) -> Self {
        name.0
    }
}

/// Checks a name as the kubelet does when a plugin registers (`pkg/apis/core/v1/helper/helpers.go,
/// IsExtendedResourceName`).
fn check_resource_name(name: &str) -> Result<(), &'static str> {
    let (domain, base) = name
        .split_once('/')
        .ok_or("it needs a domain, as in `example.com/name`")?;
    // In quotas, `requests.` is the prefix of every resource name.
    if domain.starts_with("requests.") {
        return Err("its domain may not start with `requests.`");
    }
    if domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") {
        return Err("the domain `kubernetes.io` is reserved");
    }
    // Limits of a DNS subdomain and of a label name (`IsQualifiedName` in apimachinery's
    // validation).
    if domain.len() > 253 || !domain.split('.').all(is_label) {
        return Err("its domain is not a DNS name");
    }
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = base.as_bytes();
    if bytes.len() > 63 {
        return Err("the part after the slash is longer than 63 characters");
    }
    if !edge(bytes.first()) || !edge(bytes.last()) || !bytes.iter().copied().all(inner) {
        return Err(
            "the part after the slash may hold letters, digits, `-`, `_` and `.`, \
             and starts and ends with a letter or digit",
        );
    }
    Ok(())
}

/// Returns true for one label of a lower-case DNS name.
fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|b| alnum(b) || *b == b'-')
        && bytes.first().is_some_and(alnum)
        && bytes.last().is_some_and(alnum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("nvidia.com/gpu")]
    #[case("nvidia.com/mig-1g.5gb")]
    #[case("nvidia.com/gpu.shared")]
    fn accepts_extended_resources(#[case] name: &str) {
        assert_eq!(name.parse::<ResourceName>().unwrap().as_str(), name);
    }

    #[rstest]
    #[case("gpu", "it needs a domain")]
    #[case("kubernetes.io/gpu", "reserved")]
    #[case("node.kubernetes.io/gpu", "reserved")]
    #[case("requests.nvidia.com/gpu", "requests.")]
    #[case("NVIDIA.com/gpu", "not a DNS name")]
    #[case("nvidia.com/", "after the slash")]
    #[case("nvidia.com/a/b", "after the slash")]
    #[case("nvidia.com/-gpu", "after the slash")]
    fn refuses_with_the_reason(#[case] name: &str, #[case] reason: &str) {
        let error = name.parse::<ResourceName>().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(error.contains(name), "{error}");
    }
}
