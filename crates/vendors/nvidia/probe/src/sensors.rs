//! Telemetry of a card or MIG device. A value that the device does not tell is left out.

use jiff::Timestamp;
use model::{Ecc, Process, SinceReset, Telemetry};
use nvml::Session;
use probe::sysfs::Files;

/// Reads every sensor of a card; `None` as soon as a call says that the device is gone. Processes
/// are read if `files` is given, from which their names are read.
pub(super) fn read(device: nvml::Device<'_>, files: Option<&Files>) -> Option<Telemetry> {
    let mut gone = false;
    let mut telemetry = Telemetry {
        memory_used_bytes: ask(&mut gone, || device.memory()).map(|memory| memory.used),
        ..Telemetry::default()
    };
    telemetry.temperature_celsius = ask(&mut gone, || device.temperature());
    telemetry.power_milliwatts = ask(&mut gone, || device.power());
    telemetry.utilization_percent = ask(&mut gone, || device.utilization());
    telemetry.ecc = ask(&mut gone, || ecc(device));
    if let Some(files) = files {
        telemetry.processes = ask(&mut gone, || processes(device, files));
    }
    (!gone).then_some(telemetry)
}

/// Reads the ECC errors of a device since its driver was loaded.
pub(super) fn ecc(device: nvml::Device<'_>) -> Result<Ecc, nvml::Error> {
    Ok(Ecc {
        corrected: device.ecc_corrected()?,
        uncorrected: device.ecc_uncorrected()?,
    })
}

/// Reads the counters of a card since its last reset. Costs two calls for each sample of a card, or
/// three if the card does not tell its energy. Healthy cards are read too: the probe does not know
/// the verdicts, and a count from before a reset is needed to notice the reset.
pub(super) fn since_reset(
    session: &Session,
    card: nvml::Device<'_>,
    ecc: Option<Ecc>,
) -> SinceReset {
    let energy_millijoules = card.energy().ok();
    // Energy grows all the time, so it shows every reset. Cards before Volta do not tell it.
    let pcie_replays = match energy_millijoules {
        Some(_) => None,
        None => card.pcie_replays().ok(),
    };
    SinceReset {
        energy_millijoules,
        pcie_replays,
        ecc_errors: ecc.map(|ecc| ecc.corrected.saturating_add(ecc.uncorrected)),
        opened: Timestamp::try_from(session.opened()).ok(),
        persistent: card.is_persistent().unwrap_or(false),
    }
}

/// Reads the values that a MIG device has of its own: memory in use and processes.
pub(super) fn read_partition(device: nvml::Device<'_>, files: Option<&Files>) -> Option<Telemetry> {
    let memory = device.memory().ok()?;
    Some(Telemetry {
        memory_used_bytes: Some(memory.used),
        processes: files.and_then(|files| processes(device, files).ok()),
        ..Telemetry::default()
    })
}

/// Reads the compute processes on a device, with their names if `/proc` can be read.
fn processes(device: nvml::Device<'_>, files: &Files) -> Result<Vec<Process>, nvml::Error> {
    let named = |user: nvml::User| Process {
        pid: user.pid,
        name: files.text(&format!("/proc/{}/comm", user.pid), None),
        memory_bytes: user.memory,
    };
    Ok(device.users()?.into_iter().map(named).collect())
}

/// Makes a call unless the device is gone; `None` if the call fails.
fn ask<T>(gone: &mut bool, question: impl FnOnce() -> Result<T, nvml::Error>) -> Option<T> {
    if *gone {
        return None;
    }
    question()
        .inspect_err(|error| *gone = error.is_fatal())
        .ok()
}
