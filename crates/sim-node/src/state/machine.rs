//! Facts of a machine, apart from its cards.

use serde::{Deserialize, Serialize};

/// Facts of a machine, apart from its cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// Product name in the firmware (DMI); empty if it has none.
    pub product: String,
    /// Platform: how programs reach the cards.
    pub platform: NodePlatform,
    /// NVLink fabric that the cards belong to, if it has an identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<NvlinkFabric>,
    /// Host below a virtual machine with vGPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vgpu: Option<VgpuHost>,
    /// Software of a Tegra system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tegra: Option<Tegra>,
}

/// Platform: how programs reach the cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodePlatform {
    /// A server, or a virtual machine with whole cards passed through.
    #[default]
    BareMetal,
    /// A virtual machine with vGPUs.
    Vgpu,
    /// Windows Subsystem for Linux: `/dev/dxg` is the only device node.
    Wsl,
    /// A system on a chip without NVML and without PCI functions.
    Tegra,
}

/// NVLink fabric that the machine's cards belong to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvlinkFabric {
    /// UUID of the cluster.
    pub cluster: String,
    /// Clique in the cluster.
    #[serde(default)]
    pub clique: u32,
}

/// Host below a virtual machine with vGPUs, as the PCI configuration space of a vGPU reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VgpuHost {
    /// Version of the host's driver, e.g. `570.133.10`; at most ten characters.
    pub driver: String,
    /// Branch of the host's driver, e.g. `r570_00`; at most ten characters.
    pub branch: String,
}

/// Software of a Tegra system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tegra {
    /// Release of Jetson Linux, e.g. `35`.
    pub release: u32,
    /// Revision of the release, e.g. `4.1`.
    pub revision: String,
}

// === impl NodePlatform ===

impl NodePlatform {
    /// True if the platform's driver has NVML.
    pub fn has_nvml(self) -> bool {
        self != Self::Tegra
    }

    /// True if the cards are PCI functions with device nodes of their own.
    pub fn has_bus(self) -> bool {
        matches!(self, Self::BareMetal | Self::Vgpu)
    }
}

// === impl NvlinkFabric ===

impl NvlinkFabric {
    /// UUID of the cluster as bytes, as NVML gives it; `None` if `cluster` is not a UUID.
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
        let bytes = NvlinkFabric { cluster, clique }.cluster_bytes();
        assert_eq!(bytes.map(|bytes| bytes[0]), first);
    }
}
