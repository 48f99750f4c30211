//! Paths between two cards: PCIe topology and NVLink.

use std::ffi::c_uint;

use model::PciAddress;
use nvml_wrapper_sys::bindings as sys;

use crate::{
    DeviceHandle, Error,
    device::{EMPTY_PCI, address},
    symbol,
};

/// Closest common ancestor of two cards, from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyLevel {
    /// Both cards are on one board.
    Internal,
    /// One PCIe switch is between the cards.
    Single,
    /// Several PCIe switches are between the cards.
    Multiple,
    /// Both cards are below one PCIe host bridge.
    HostBridge,
    /// Both cards are at one NUMA node, below different host bridges.
    Node,
    /// The cards are at different NUMA nodes.
    System,
}

/// Remote end of an NVLink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRemote {
    /// Card at this PCI address. With a driver that does not report the kind, any device.
    Card(PciAddress),
    /// NVSwitch.
    Switch,
    /// Another kind of device, such as a processor.
    Other,
}

impl DeviceHandle<'_> {
    /// Upper bound of the number of NVLinks of a card. The driver answers `INVALID_ARGUMENT` or
    /// `NOT_SUPPORTED` for links that a card lacks.
    // NVIDIA's device plugin asks for the links 0 to 35 too (go-gpuallocator). The constant
    // `NVML_NVLINK_MAX_LINKS` is 18 in the header behind nvml-wrapper-sys 0.10.
    pub const LINKS: u32 = 36;

    /// Reads the closest common ancestor with another card; `NotSupported` for a level that this version
    /// does not know.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_common_ancestor(
        &self,
        other: &DeviceHandle<'_>,
    ) -> Result<Option<TopologyLevel>, Error> {
        let mut level: c_uint = 0;
        self.make_call(&symbol::ANCESTOR, |get| {
            // SAFETY: both handles are the driver's, the pointer is valid for one level.
            unsafe { get(self.raw_handle(), other.raw_handle(), &raw mut level) }
        })?;
        Ok(match level {
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL => Some(TopologyLevel::Internal),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE => Some(TopologyLevel::Single),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE => Some(TopologyLevel::Multiple),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE => Some(TopologyLevel::HostBridge),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE => Some(TopologyLevel::Node),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM => Some(TopologyLevel::System),
            _ => None,
        })
    }

    /// Returns true if NVLink number `link` is up.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` or `INVALID_ARGUMENT` if the card lacks this link.
    pub fn link_up(&self, link: u32) -> Result<bool, Error> {
        let enabled = sys::nvmlEnableState_enum_NVML_FEATURE_ENABLED;
        self.get_at(&symbol::NVLINK_STATE, link, 0)
            .map(|state| state == enabled)
    }

    /// Reads the remote end of an NVLink that is up.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn link_remote(&self, link: u32) -> Result<LinkRemote, Error> {
        match self.get_at(&symbol::NVLINK_REMOTE_KIND, link, 0) {
            Ok(sys::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH) => {
                return Ok(LinkRemote::Switch);
            }
            Ok(sys::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_IBMNPU) => {
                return Ok(LinkRemote::Other);
            }
            // A driver that does not report the kind may still report the address.
            Ok(_) => {}
            Err(error) if error.is_not_supported() => {}
            Err(error) => return Err(error),
        }
        let address = self.link_remote_pci(link)?;
        Ok(address.map_or(LinkRemote::Other, LinkRemote::Card))
    }

    /// Reads the PCI address of the remote end of an NVLink that is up, for any kind of device;
    /// `NotSupported` if the driver's numbers are not a valid address.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn link_remote_pci(&self, link: u32) -> Result<Option<PciAddress>, Error> {
        let info = self.get_at(&symbol::NVLINK_REMOTE_PCI, link, EMPTY_PCI)?;
        Ok(address(info))
    }
}
