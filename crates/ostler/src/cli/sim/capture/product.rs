//! Capture of a card's model: the values that all cards of the model share.

use nvml::{ClockDomain, DeviceHandle, TemperatureThreshold};
use sim::{
    BusId,
    state::{Board, GpuModel, MaxClocks, PowerLimits, Sensors, TemperatureLimits},
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
    pub(super) fn capture_model(
        &mut self,
        device: DeviceHandle<'_>,
        pci: BusId,
    ) -> anyhow::Result<GpuModel> {
        let name = device.read_name()?;
        let memory = device.read_memory()?;
        let notes = &mut self.notes;
        let figure = |what: &str| format!("{what} of {name}");
        let ids = notes.maybe(&figure("the PCI ids"), device.pci_ids());
        let capability = notes.read_or(
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
        Ok(GpuModel {
            // 14 is NVML_BRAND_NVIDIA of nvml.h.
            brand: notes.read_or(&figure("the brand"), device.brand(), 14),
            architecture: notes.read_or(&figure("the architecture"), device.architecture(), 0),
            compute_capability: capability,
            device_id: format!("{:04x}", ids.map_or(0, |ids| ids.device)),
            subsystem: ids.map_or("10de:0000".to_owned(), |ids| {
                format!("{:04x}:{:04x}", ids.subsystem_vendor, ids.subsystem_device)
            }),
            // 0302 is the PCI class of a 3D controller, which datacenter cards are.
            class: self
                .host
                .pci_class(pci)
                .unwrap_or_else(|| "030200".to_owned()),
            memory_mib: memory.total / MIB,
            reserved_mib: memory.reserved / MIB,
            bar1_mib: bar1.map(|bytes| bytes / MIB).filter(|mib| *mib != whole),
            ecc: device.ecc_enabled().is_ok(),
            multiprocessors: cores.unwrap_or(0) / each,
            power: self.capture_power(device, &name),
            clocks: self.clocks(device, &name),
            thresholds: self.thresholds(device, &name),
            pcie_generation: device.max_pcie_generation().unwrap_or(4),
            nvlink_version: version.unwrap_or(0),
            links_per_switch: 0,
            idle: capture_sensors(device),
            // A number of cores that is no multiple gives no number of multiprocessors: it is kept.
            board: capture_board(device, cores.filter(|cores| cores % each != 0)),
            mig: self.capture_mig_profiles(device, memory.total / MIB),
            name,
        })
    }

    fn capture_power(&mut self, device: DeviceHandle<'_>, name: &str) -> PowerLimits {
        let limits = self.notes.maybe(
            &format!("the power limits of {name}"),
            device.power_limits(),
        );
        // NVML has milliwatts, profiles have watts.
        limits.map_or_else(PowerLimits::default, |(min, max)| PowerLimits {
            min: min / 1000,
            max: max / 1000,
        })
    }

    fn clocks(&mut self, device: DeviceHandle<'_>, name: &str) -> MaxClocks {
        let default = MaxClocks::default();
        let mut read = |clock, default| {
            let what = format!("the highest {clock:?} clock of {name}");
            self.notes.read_or(&what, device.max_clock(clock), default)
        };
        MaxClocks {
            sm: read(ClockDomain::Sm, default.sm),
            memory: read(ClockDomain::Memory, default.memory),
            video: read(ClockDomain::Video, default.video),
        }
    }

    fn thresholds(&mut self, device: DeviceHandle<'_>, name: &str) -> TemperatureLimits {
        let default = TemperatureLimits::default();
        let mut read = |threshold, default| {
            let what = format!("the {threshold:?} temperature of {name}");
            self.notes
                .read_or(&what, device.threshold(threshold), default)
        };
        TemperatureLimits {
            shutdown: read(TemperatureThreshold::Shutdown, default.shutdown),
            slowdown: read(TemperatureThreshold::Slowdown, default.slowdown),
            max: read(TemperatureThreshold::Max, default.max),
        }
    }
}

/// Reads the sensors, which stand for the values of an idle card. Counters that jobs leave behind are
/// not taken.
fn capture_sensors(device: DeviceHandle<'_>) -> Sensors {
    let or = |fact: Result<u32, nvml::Error>, default| fact.map_or(default, u64::from);
    Sensors {
        temperature: or(device.read_temperature(), 0),
        power: or(device.read_power_draw(), 0),
        clock_sm: or(device.read_clock(ClockDomain::Sm), 0),
        clock_memory: or(device.read_clock(ClockDomain::Memory), 0),
        performance_state: or(device.performance_state(), 0),
        // nvmlClocksEventReasonGpuIdle of nvml.h.
        clock_reasons: 1,
        pcie_generation: or(device.pcie_generation(), 4),
        pcie_width: or(device.pcie_width(), u64::from(LANES)),
        ..Sensors::default()
    }
}

fn capture_board(device: DeviceHandle<'_>, cores: Option<u32>) -> Board {
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
