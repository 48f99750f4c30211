//! How two cards reach each other.

use std::ffi::c_uint;

use model::PciAddress;
use nvml_wrapper_sys::bindings as sys;

use crate::{
    Device, Error,
    device::{EMPTY_PCI, address},
    symbol,
};

/// The closest point that two cards share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// One board.
    Internal,
    /// One PCIe switch.
    Single,
    /// Several PCIe switches.
    Multiple,
    /// One host bridge.
    HostBridge,
    /// One NUMA node.
    Node,
    /// The machine.
    System,
}

/// What is at the other end of an NVLink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    /// Another card (or, with a driver that does not tell, anything) at this address.
    Card(PciAddress),
    /// An NVSwitch.
    Switch,
    /// Something else, such as a processor.
    Other,
}

impl Device<'_> {
    /// The most links a card can have. Newer drivers answer `INVALID_ARGUMENT` beyond theirs.
    pub const LINKS: u32 = 36;

    /// The closest point shared with another card; `None` for a level that is not known here.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn ancestor(&self, other: &Device<'_>) -> Result<Option<Level>, Error> {
        let mut level: c_uint = 0;
        self.call(&symbol::ANCESTOR, |get| {
            // SAFETY: both handles are the driver's, the pointer is valid for one level.
            unsafe { get(self.raw(), other.raw(), &raw mut level) }
        })?;
        Ok(match level {
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL => Some(Level::Internal),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE => Some(Level::Single),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE => Some(Level::Multiple),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE => Some(Level::HostBridge),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE => Some(Level::Node),
            sys::nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM => Some(Level::System),
            _ => None,
        })
    }

    /// Whether NVLink number `link` is up.
    ///
    /// # Errors
    /// What the driver answers: `NOT_SUPPORTED` or `INVALID_ARGUMENT` where there is no such link.
    pub fn link_up(&self, link: u32) -> Result<bool, Error> {
        let enabled = sys::nvmlEnableState_enum_NVML_FEATURE_ENABLED;
        self.get_at(&symbol::NVLINK_STATE, link, 0)
            .map(|state| state == enabled)
    }

    /// What is at the other end of an NVLink that is up.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn link_remote(&self, link: u32) -> Result<Remote, Error> {
        match self.get_at(&symbol::NVLINK_REMOTE_KIND, link, 0) {
            Ok(sys::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_SWITCH) => {
                return Ok(Remote::Switch);
            }
            Ok(sys::nvmlIntNvLinkDeviceType_enum_NVML_NVLINK_DEVICE_TYPE_IBMNPU) => {
                return Ok(Remote::Other);
            }
            // A driver that does not know the kind may still know the address.
            Ok(_) => {}
            Err(error) if error.is_not_supported() => {}
            Err(error) => return Err(error),
        }
        let address = self.link_remote_pci(link)?;
        Ok(address.map_or(Remote::Other, Remote::Card))
    }

    /// The PCI address at the other end of an NVLink that is up, whatever is there; `None` where
    /// the driver gives numbers that are no address.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn link_remote_pci(&self, link: u32) -> Result<Option<PciAddress>, Error> {
        let info = self.get_at(&symbol::NVLINK_REMOTE_PCI, link, EMPTY_PCI)?;
        Ok(address(info))
    }
}
