//! Board facts of a card, most of them constant. The probe reads some of them for reports and
//! checks; `ostler sim capture` reads all of them to describe a machine.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings as sys;

use crate::{DeviceHandle, Error, device::EMPTY_PCI, sensor::struct_version, symbol};

/// PCI ids of a card. The vendor id is left out: it is always NVIDIA's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciIds {
    /// Device id.
    pub device: u16,
    /// Subsystem vendor id: the vendor of the board.
    pub subsystem_vendor: u16,
    /// Subsystem device id: the board vendor's number of the board.
    pub subsystem_device: u16,
}

/// Clock domain of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockDomain {
    /// Clock of the streaming multiprocessors.
    Sm,
    /// Clock of the memory.
    Memory,
    /// Clock of the video engines.
    Video,
}

/// Temperature at which a card protects itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemperatureThreshold {
    /// The card switches itself off.
    Shutdown,
    /// The card lowers its clocks.
    Slowdown,
    /// Highest temperature of normal operation.
    Max,
}

/// NVLink fabric that a card belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricMembership {
    /// UUID of the cluster; all zero if there is none.
    pub cluster: [u8; 16],
    /// Id of the clique in the cluster.
    pub clique: u32,
    /// True if the card is registered with the fabric.
    pub joined: bool,
}

// === impl ClockDomain ===

impl ClockDomain {
    fn nvml_clock_type(self) -> c_uint {
        match self {
            Self::Sm => sys::nvmlClockType_enum_NVML_CLOCK_SM,
            Self::Memory => sys::nvmlClockType_enum_NVML_CLOCK_MEM,
            Self::Video => sys::nvmlClockType_enum_NVML_CLOCK_VIDEO,
        }
    }
}

/// Declares readers of one unsigned number each.
macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// The driver's answer.
            pub fn $name(&self) -> Result<u32, Error> {
                self.read_value(&symbol::$symbol, 0)
            }
        )*
    };
}

/// Declares readers of one text each.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// The driver's answer.
            pub fn $name(&self) -> Result<String, Error> {
                self.read_device_text(&symbol::$symbol)
            }
        )*
    };
}

impl DeviceHandle<'_> {
    texts! {
        /// Reads the serial number of the board.
        serial = SERIAL;
        /// Reads the version of the VBIOS.
        vbios = VBIOS;
        /// Reads the part number of the board.
        part_number = PART_NUMBER;
        /// Reads the version of the infoROM image.
        inforom = INFOROM;
    }

    figures! {
        /// Reads the brand, as NVML's number.
        brand = BRAND;
        /// Reads the architecture, as NVML's number.
        architecture = ARCHITECTURE;
        /// Reads the number of CUDA cores.
        cores = CORES;
        /// Reads the width of the memory bus, in bits.
        bus_width = BUS_WIDTH;
        /// Reads the number of fans.
        fans = FANS;
        /// Reads the virtualization mode, as NVML's number.
        virtualization = VIRTUALIZATION;
        /// Reads the number of the NUMA node that the card's own memory forms.
        memory_node = MEMORY_NODE;
        /// Reads the performance state (P-state), as NVML's number.
        performance_state = PERFORMANCE_STATE;
        /// Reads the PCIe generation in use.
        pcie_generation = PCIE_GENERATION;
        /// Reads the number of PCIe lanes in use.
        pcie_width = PCIE_WIDTH;
        /// Reads the highest PCIe generation that card and slot support.
        max_pcie_generation = MAX_PCIE_GENERATION;
        /// Reads the highest number of PCIe lanes that card and slot support.
        max_pcie_width = MAX_PCIE_WIDTH;
    }

    /// Reads the PCI ids.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn pci_ids(&self) -> Result<PciIds, Error> {
        let info = self.read_value(&symbol::PCI_INFO, EMPTY_PCI)?;
        // NVML packs both ids into one number: the device in the high half, the vendor in the low
        // one.
        let halves = |both: u32| {
            let [a, b, c, d] = both.to_le_bytes();
            (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]))
        };
        let (_vendor, device) = halves(info.pciDeviceId);
        let (subsystem_vendor, subsystem_device) = halves(info.pciSubSystemId);
        Ok(PciIds {
            device,
            subsystem_vendor,
            subsystem_device,
        })
    }

    /// Reads the size of BAR1, in bytes: the part of the card's memory that the processor can map
    /// at a time.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn bar1(&self) -> Result<u64, Error> {
        let empty = sys::nvmlBAR1Memory_t {
            bar1Total: 0,
            bar1Free: 0,
            bar1Used: 0,
        };
        self.read_value(&symbol::BAR1, empty)
            .map(|memory| memory.bar1Total)
    }

    /// Returns true if ECC is on.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` if the memory has no ECC.
    pub fn ecc_enabled(&self) -> Result<bool, Error> {
        let (current, _pending) = self.get_two(&symbol::ECC_MODE)?;
        Ok(current != 0)
    }

    /// Reads the lowest and the highest power limit that can be set, in milliwatts.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn power_limits(&self) -> Result<(u32, u32), Error> {
        self.get_two(&symbol::POWER_LIMITS)
    }

    /// Reads the current frequency of a clock domain, in MHz.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_clock(&self, clock: ClockDomain) -> Result<u32, Error> {
        self.get_at(&symbol::CLOCK, clock.nvml_clock_type(), 0)
    }

    /// Reads the highest frequency of a clock domain, in MHz.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn max_clock(&self, clock: ClockDomain) -> Result<u32, Error> {
        self.get_at(&symbol::MAX_CLOCK, clock.nvml_clock_type(), 0)
    }

    /// Reads a protection temperature, in degrees Celsius.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn threshold(&self, threshold: TemperatureThreshold) -> Result<u32, Error> {
        let kind = match threshold {
            TemperatureThreshold::Shutdown => {
                sys::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN
            }
            TemperatureThreshold::Slowdown => {
                sys::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
            }
            TemperatureThreshold::Max => {
                sys::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_GPU_MAX
            }
        };
        self.get_at(&symbol::THRESHOLD, kind, 0)
    }

    /// Reads the version of an NVLink, as NVML's number.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn link_version(&self, link: u32) -> Result<u32, Error> {
        self.get_at(&symbol::NVLINK_VERSION, link, 0)
    }

    /// Reads the NVLink fabric that the card belongs to.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` if there is no fabric with an identity.
    pub fn read_fabric_membership(&self) -> Result<FabricMembership, Error> {
        let empty = sys::nvmlGpuFabricInfo_v2_t {
            version: struct_version::<sys::nvmlGpuFabricInfo_v2_t>(2),
            clusterUuid: [0; 16],
            status: 0,
            cliqueId: 0,
            state: 0,
            healthMask: 0,
        };
        let info = self.read_value(&symbol::FABRIC, empty)?;
        let completed = u32::from(info.state) == sys::NVML_GPU_FABRIC_STATE_COMPLETED;
        Ok(FabricMembership {
            cluster: info.clusterUuid,
            clique: info.cliqueId,
            joined: completed && info.status == sys::nvmlReturn_enum_NVML_SUCCESS,
        })
    }
}
