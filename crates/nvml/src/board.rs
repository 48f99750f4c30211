//! What a card is built of: figures that never change, for a person who describes a machine. The
//! agent asks for none of them.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings as sys;

use crate::{Device, Error, device::EMPTY_PCI, sensor::version, symbol};

/// The ids of a card on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciIds {
    /// The maker's number of the device.
    pub device: u16,
    /// The vendor of the board.
    pub subsystem_vendor: u16,
    /// That vendor's number of the board.
    pub subsystem_device: u16,
}

/// A clock of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The multiprocessors'.
    Sm,
    /// The memory's.
    Memory,
    /// The video engines'.
    Video,
}

/// A temperature at which a card acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// It switches itself off.
    Shutdown,
    /// It runs slower.
    Slowdown,
    /// It is as warm as is wanted in operation.
    Max,
}

/// The NVLink fabric that a card is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// The UUID of the cluster; zero where it has none.
    pub cluster: [u8; 16],
    /// The clique in it.
    pub clique: u32,
    /// Whether the card has joined.
    pub joined: bool,
}

// === impl Clock ===

impl Clock {
    fn raw(self) -> c_uint {
        match self {
            Self::Sm => sys::nvmlClockType_enum_NVML_CLOCK_SM,
            Self::Memory => sys::nvmlClockType_enum_NVML_CLOCK_MEM,
            Self::Video => sys::nvmlClockType_enum_NVML_CLOCK_VIDEO,
        }
    }
}

/// Figures that are one number each.
macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// What the driver answers.
            pub fn $name(&self) -> Result<u32, Error> {
                self.get(&symbol::$symbol, 0)
            }
        )*
    };
}

/// Facts that are a text each.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// What the driver answers.
            pub fn $name(&self) -> Result<String, Error> {
                self.text(&symbol::$symbol)
            }
        )*
    };
}

impl Device<'_> {
    texts! {
        /// The serial number.
        serial = SERIAL;
        /// The version of its firmware.
        vbios = VBIOS;
        /// The board's part number.
        part_number = PART_NUMBER;
        /// The version of the infoROM's image.
        inforom = INFOROM;
    }

    figures! {
        /// NVML's number of its brand.
        brand = BRAND;
        /// NVML's number of its architecture.
        architecture = ARCHITECTURE;
        /// CUDA cores.
        cores = CORES;
        /// The width of the memory bus in bits.
        bus_width = BUS_WIDTH;
        /// Fans.
        fans = FANS;
        /// NVML's number of its virtualisation mode.
        virtualization = VIRTUALIZATION;
        /// The NUMA node that its own memory forms.
        memory_node = MEMORY_NODE;
        /// NVML's performance state.
        performance_state = PERFORMANCE_STATE;
        /// The PCIe generation in use.
        pcie_generation = PCIE_GENERATION;
        /// The PCIe lanes in use.
        pcie_width = PCIE_WIDTH;
        /// The PCIe generation that card and slot can do.
        max_pcie_generation = MAX_PCIE_GENERATION;
        /// The PCIe lanes that card and slot have.
        max_pcie_width = MAX_PCIE_WIDTH;
    }

    /// Its ids on the PCI bus.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn pci_ids(&self) -> Result<PciIds, Error> {
        let info = self.get(&symbol::PCI_INFO, EMPTY_PCI)?;
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

    /// The bytes of its memory that the processor can see at a time.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn bar1(&self) -> Result<u64, Error> {
        let empty = sys::nvmlBAR1Memory_t {
            bar1Total: 0,
            bar1Free: 0,
            bar1Used: 0,
        };
        self.get(&symbol::BAR1, empty)
            .map(|memory| memory.bar1Total)
    }

    /// Whether error correction is on.
    ///
    /// # Errors
    /// What the driver answers; `NOT_SUPPORTED` where the memory has none.
    pub fn ecc_enabled(&self) -> Result<bool, Error> {
        let (current, _pending) = self.get_two(&symbol::ECC_MODE)?;
        Ok(current != 0)
    }

    /// The lowest and the highest power limit that can be set, in milliwatts.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn power_limits(&self) -> Result<(u32, u32), Error> {
        self.get_two(&symbol::POWER_LIMITS)
    }

    /// A clock as it is, in MHz.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn clock(&self, clock: Clock) -> Result<u32, Error> {
        self.get_at(&symbol::CLOCK, clock.raw(), 0)
    }

    /// The highest that a clock can be, in MHz.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn max_clock(&self, clock: Clock) -> Result<u32, Error> {
        self.get_at(&symbol::MAX_CLOCK, clock.raw(), 0)
    }

    /// A temperature at which it acts, in degrees Celsius.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn threshold(&self, threshold: Threshold) -> Result<u32, Error> {
        let kind = match threshold {
            Threshold::Shutdown => {
                sys::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN
            }
            Threshold::Slowdown => {
                sys::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
            }
            Threshold::Max => {
                sys::nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_GPU_MAX
            }
        };
        self.get_at(&symbol::THRESHOLD, kind, 0)
    }

    /// NVML's number of the version of an NVLink.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn link_version(&self, link: u32) -> Result<u32, Error> {
        self.get_at(&symbol::NVLINK_VERSION, link, 0)
    }

    /// The NVLink fabric that it is a part of.
    ///
    /// # Errors
    /// What the driver answers; `NOT_SUPPORTED` where there is none that has an identity.
    pub fn fabric(&self) -> Result<Fabric, Error> {
        let empty = sys::nvmlGpuFabricInfo_v2_t {
            version: version::<sys::nvmlGpuFabricInfo_v2_t>(2),
            clusterUuid: [0; 16],
            status: 0,
            cliqueId: 0,
            state: 0,
            healthMask: 0,
        };
        let info = self.get(&symbol::FABRIC, empty)?;
        let completed = u32::from(info.state) == sys::NVML_GPU_FABRIC_STATE_COMPLETED;
        Ok(Fabric {
            cluster: info.clusterUuid,
            clique: info.cliqueId,
            joined: completed && info.status == sys::nvmlReturn_enum_NVML_SUCCESS,
        })
    }
}
