//! Telemetry of a card or MIG device. What a device does not tell is left out.

use jiff::Timestamp;
use model::{Ecc, Process, SinceReset, Telemetry};
use nvml::Session;
use probe::sysfs::Files;

/// Reads every sensor; stops at the first answer that says that the device is gone. The processes
/// are read where the host's files are given to name them by.
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

/// Reads the memory errors of a device since its driver was loaded.
pub(super) fn ecc(device: nvml::Device<'_>) -> Result<Ecc, nvml::Error> {
    Ok(Ecc {
        corrected: device.ecc_corrected()?,
        uncorrected: device.ecc_uncorrected()?,
    })
}

/// Reads the counters of a card since its last reset: two calls more at each look of a card, or three
/// where the card does not tell its energy. They are made for cards that are well, too: the probe does
/// not know what is held against a card, and a count from before a reset is needed to see the reset.
pub(super) fn since_reset(
    session: &Session,
    card: nvml::Device<'_>,
    ecc: Option<Ecc>,
) -> SinceReset {
    let energy_millijoules = card.energy().ok();
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

/// Reads what a MIG device has of its own.
pub(super) fn read_partition(device: nvml::Device<'_>, files: Option<&Files>) -> Option<Telemetry> {
    let memory = device.memory().ok()?;
    Some(Telemetry {
        memory_used_bytes: Some(memory.used),
        processes: files.and_then(|files| processes(device, files).ok()),
        ..Telemetry::default()
    })
}

/// The processes that compute on a device, with their names where they can be read.
fn processes(device: nvml::Device<'_>, files: &Files) -> Result<Vec<Process>, nvml::Error> {
    let named = |user: nvml::User| Process {
        pid: user.pid,
        name: files.text(&format!("/proc/{}/comm", user.pid), None),
        memory_bytes: user.memory,
    };
    Ok(device.users()?.into_iter().map(named).collect())
}

fn ask<T>(gone: &mut bool, question: impl FnOnce() -> Result<T, nvml::Error>) -> Option<T> {
    if *gone {
        return None;
    }
    question()
        .inspect_err(|error| *gone = error.is_fatal())
        .ok()
}
