//! Capture of a card's model: the values that all cards of the model share.

use nvml::{Clock, Device, Threshold};
use sim::{
    BusId,
    state::{Board, Clocks, Model, Power, Sensors, Thresholds},
};

use super::Capture;

/// One mebibyte, in bytes.
const MIB: u64 = 1 << 20;
/// PCIe lanes of most boards.
const LANES: u32 = 16;

impl Capture<'_> {
    /// Reads the model of a card.
    ///
    /// # Errors
    /// The driver does not give the name or the memory size. Other values are left out with a note.
    pub(super) fn product(&mut self, device: Device<'_>, pci: BusId) -> anyhow::Result<Model> {
        let name = device.name()?;
        let memory = device.memory()?;
        let notes = &mut self.notes;
        let figure = |what: &str| format!("{what} of {name}");
        let ids = notes.maybe(&figure("the PCI ids"), device.pci_ids());
        let capability = notes.or(
            &figure("the compute capability"),
            device.compute_capability(),
            (8, 0),
        );
        let bar1 = notes.maybe(&figure("the BAR1 memory"), device.bar1());
        // Most cards map their whole memory, rounded up to a power of two. A profile has the
        // exceptions only.
        let whole = (memory.total / MIB).next_power_of_two();
        let cores = notes.maybe(&figure("the number of cores"), device.cores());
        let each = cores_each(capability);
        let version = device.link_version(0).ok();
        Ok(Model {
            // 14 is NVML_BRAND_NVIDIA of nvml.h.
            brand: notes.or(&figure("the brand"), device.brand(), 14),
            architecture: notes.or(&figure("the architecture"), device.architecture(), 0),
            compute_capability: capability,
            device_id: format!("{:04x}", ids.map_or(0, |ids| ids.device)),
            subsystem: ids.map_or("10de:0000".to_owned(), |ids| {
                format!("{:04x}:{:04x}", ids.subsystem_vendor, ids.subsystem_device)
            }),
            // 0302 is the PCI class of a 3D controller, which datacenter cards are.
            class: self.host.class(pci).unwrap_or_else(|| "030200".to_owned()),
            memory_mib: memory.total / MIB,
            reserved_mib: memory.reserved / MIB,
            bar1_mib: bar1.map(|bytes| bytes / MIB).filter(|mib| *mib != whole),
            ecc: device.ecc_enabled().is_ok(),
            multiprocessors: cores.unwrap_or(0) / each,
            power: self.power(device, &name),
            clocks: self.clocks(device, &name),
            thresholds: self.thresholds(device, &name),
            pcie_generation: device.max_pcie_generation().unwrap_or(4),
            nvlink_version: version.unwrap_or(0),
            links_per_switch: 0,
            idle: idle(device),
            // A number of cores that is no multiple gives no number of multiprocessors: it is kept.
            board: board(device, cores.filter(|cores| cores % each != 0)),
            mig: self.shapes(device, memory.total / MIB),
            name,
        })
    }

    fn power(&mut self, device: Device<'_>, name: &str) -> Power {
        let limits = self.notes.maybe(
            &format!("the power limits of {name}"),
            device.power_limits(),
        );
        // NVML has milliwatts, profiles have watts.
        limits.map_or_else(Power::default, |(min, max)| Power {
            min: min / 1000,
            max: max / 1000,
        })
    }

    fn clocks(&mut self, device: Device<'_>, name: &str) -> Clocks {
        let default = Clocks::default();
        let mut read = |clock, default| {
            let what = format!("the highest {clock:?} clock of {name}");
            self.notes.or(&what, device.max_clock(clock), default)
        };
        Clocks {
            sm: read(Clock::Sm, default.sm),
            memory: read(Clock::Memory, default.memory),
            video: read(Clock::Video, default.video),
        }
    }

    fn thresholds(&mut self, device: Device<'_>, name: &str) -> Thresholds {
        let default = Thresholds::default();
        let mut read = |threshold, default| {
            let what = format!("the {threshold:?} temperature of {name}");
            self.notes.or(&what, device.threshold(threshold), default)
        };
        Thresholds {
            shutdown: read(Threshold::Shutdown, default.shutdown),
            slowdown: read(Threshold::Slowdown, default.slowdown),
            max: read(Threshold::Max, default.max),
        }
    }
}

/// Reads the sensors, which stand for the values of an idle card. Counters that jobs leave behind are
/// not taken.
fn idle(device: Device<'_>) -> Sensors {
    let or = |fact: Result<u32, nvml::Error>, default| fact.map_or(default, u64::from);
    Sensors {
        temperature: or(device.temperature(), 0),
        power: or(device.power(), 0),
        clock_sm: or(device.clock(Clock::Sm), 0),
        clock_memory: or(device.clock(Clock::Memory), 0),
        performance_state: or(device.performance_state(), 0),
        // nvmlClocksEventReasonGpuIdle of nvml.h.
        clock_reasons: 1,
        pcie_generation: or(device.pcie_generation(), 4),
        pcie_width: or(device.pcie_width(), u64::from(LANES)),
        ..Sensors::default()
    }
}

fn board(device: Device<'_>, cores: Option<u32>) -> Board {
    Board {
        vbios: device.vbios().ok(),
        part_number: device.part_number().ok(),
        inforom: device.inforom().ok(),
        bus_width: device.bus_width().ok(),
        cores,
        fans: device.fans().unwrap_or(0),
        pcie_width: device.max_pcie_width().ok().filter(|lanes| *lanes != LANES),
    }
}

/// CUDA cores of each multiprocessor, by compute capability (cuda-samples, Common/helper_cuda.h,
/// `_ConvertSMVer2Cores`).
fn cores_each(capability: (i32, i32)) -> u32 {
    match capability {
        (3, _) => 192,
        (5, _) | (6, 1..) | (8, 6..) | (9.., _) => 128,
        _ => 64,
    }
}
