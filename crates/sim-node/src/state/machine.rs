//! What a machine is, apart from its cards.

use serde::{Deserialize, Serialize};

/// What a machine is, apart from its cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The product name that the firmware tells; empty where it tells none.
    pub product: String,
    /// How programs come to the cards.
    pub platform: Platform,
    /// The fabric that its cards are a part of, where that has an identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Fabric>,
    /// The host below a virtual machine with vGPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vgpu: Option<VgpuHost>,
    /// The software of a Tegra system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tegra: Option<Tegra>,
}

/// How programs come to the cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// A server, or a virtual machine that was given whole cards.
    #[default]
    BareMetal,
    /// A virtual machine that was given parts of cards.
    Vgpu,
    /// Linux below Windows: no device nodes but `/dev/dxg`.
    Wsl,
    /// A system on a chip: no NVML, no PCI functions.
    Tegra,
}

/// The NVLink fabric that a machine's cards are a part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// The UUID of the cluster.
    pub cluster: String,
    /// The clique in it.
    #[serde(default)]
    pub clique: u32,
}

/// The host below a virtual machine with vGPUs, as a vGPU's PCI configuration space tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VgpuHost {
    /// The version of the host's driver, e.g. `570.133.10`: ten characters at most.
    pub driver: String,
    /// The branch of the host's driver, e.g. `r570_00`: ten characters at most.
    pub branch: String,
}

/// The software of a Tegra system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tegra {
    /// The release, e.g. `35`.
    pub release: u32,
    /// The revision of the release, e.g. `4.1`.
    pub revision: String,
}

// === impl Platform ===

impl Platform {
    /// Whether the driver has a management library there.
    pub fn has_nvml(self) -> bool {
        self != Self::Tegra
    }

    /// Whether its cards are functions on the PCI bus, with device nodes of their own.
    pub fn has_bus(self) -> bool {
        matches!(self, Self::BareMetal | Self::Vgpu)
    }
}

// === impl Fabric ===

impl Fabric {
    /// The cluster's UUID as the driver gives it; `None` where it is no UUID.
    pub fn cluster_bytes(&self) -> Option<[u8; 16]> {
        let digits: String = self.cluster.chars().filter(|c| *c != '-').collect();
        let shape = [8, 4, 4, 4, 12];
        let parts: Vec<_> = self.cluster.split('-').map(str::len).collect();
        if parts != shape || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        Some(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("12345678-9abc-def0-1234-56789abcdef0", Some(0x12))]
    #[case("12345678-9abc-def0-1234-56789abcdefg", None)]
    #[case("123456789abcdef0123456789abcdef0", None)]
    #[case("", None)]
    fn a_cluster_is_named_by_a_uuid(#[case] text: &str, #[case] first: Option<u8>) {
        let (cluster, clique) = (text.to_owned(), 0);
        let bytes = Fabric { cluster, clique }.cluster_bytes();
        assert_eq!(bytes.map(|bytes| bytes[0]), first);
    }
}
