//! Telemetry of a card or MIG device. A value that the device does not tell is left out.

use jiff::Timestamp;
use model::{Ecc, Process, SinceReset, Telemetry};
use nvml::NvmlSession;
use probe::sysfs::HostFiles;

/// Reads every sensor of a card; `None` as soon as a call says that the device is gone. Processes
/// are read if `files` is given, from which their names are read.
pub(super) fn read_card_telemetry(
    device: nvml::DeviceHandle<'_>,
    files: Option<&HostFiles>,
) -> Option<Telemetry> {
    let mut gone = false;
    let mut telemetry = Telemetry {
        memory_used_bytes: read_sensor(&mut gone, || device.read_memory())
            .map(|memory| memory.used),
        ..Telemetry::default()
    };
    telemetry.temperature_celsius = read_sensor(&mut gone, || device.read_temperature());
    telemetry.power_milliwatts = read_sensor(&mut gone, || device.read_power_draw());
    telemetry.utilization_percent = read_sensor(&mut gone, || device.read_utilization());
    telemetry.ecc = read_sensor(&mut gone, || read_ecc_errors(device));
    if let Some(files) = files {
        telemetry.processes = read_sensor(&mut gone, || read_processes(device, files));
    }
    (!gone).then_some(telemetry)
}

/// Reads the ECC errors of a device since its driver was loaded.
pub(super) fn read_ecc_errors(device: nvml::DeviceHandle<'_>) -> Result<Ecc, nvml::Error> {
    Ok(Ecc {
        corrected: device.ecc_corrected()?,
        uncorrected: device.ecc_uncorrected()?,
    })
}

/// Reads the counters of a card since its last reset. Costs two calls for each sample of a card, or
/// three if the card does not tell its energy. Healthy cards are read too: the probe does not know
/// the verdicts, and a count from before a reset is needed to notice the reset.
pub(super) fn since_reset(
    session: &NvmlSession,
    card: nvml::DeviceHandle<'_>,
    ecc: Option<Ecc>,
) -> SinceReset {
    let energy_millijoules = card.read_energy().ok();
    // Energy grows all the time, so it shows every reset. Cards before Volta do not tell it.
    let pcie_replays = match energy_millijoules {
        Some(_) => None,
        None => card.pcie_replays().ok(),
    };
    SinceReset {
        energy_millijoules,
        pcie_replays,
        ecc_errors: ecc.map(|ecc| ecc.corrected.saturating_add(ecc.uncorrected)),
        opened: Timestamp::try_from(session.opened_at()).ok(),
        persistent: card.is_persistent().unwrap_or(false),
    }
}

/// Reads the values that a MIG device has of its own: memory in use and processes.
pub(super) fn read_partition(
    device: nvml::DeviceHandle<'_>,
    files: Option<&HostFiles>,
) -> Option<Telemetry> {
    let memory = device.read_memory().ok()?;
    Some(Telemetry {
        memory_used_bytes: Some(memory.used),
        processes: files.and_then(|files| read_processes(device, files).ok()),
        ..Telemetry::default()
    })
}

/// Reads the compute processes on a device, with their names if `/proc` can be read.
fn read_processes(
    device: nvml::DeviceHandle<'_>,
    files: &HostFiles,
) -> Result<Vec<Process>, nvml::Error> {
    let named = |user: nvml::ComputeProcess| Process {
        pid: user.pid,
        name: files.read_trimmed(&format!("/proc/{}/comm", user.pid), None),
        memory_bytes: user.memory,
    };
    Ok(device.users()?.into_iter().map(named).collect())
}

/// Makes a call unless the device is gone; `None` if the call fails.
fn read_sensor<T>(gone: &mut bool, question: impl FnOnce() -> Result<T, nvml::Error>) -> Option<T> {
    if *gone {
        return None;
    }
    question()
        .inspect_err(|error| *gone = error.is_fatal())
        .ok()
}
