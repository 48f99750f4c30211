//! Telemetry of a card or MIG device. What a device does not tell is left out.

use model::{Ecc, Telemetry};

/// Reads every sensor; stops at the first answer that says that the device is gone.
pub(super) fn read(device: nvml::Device<'_>) -> Option<Telemetry> {
    let mut gone = false;
    let mut telemetry = Telemetry {
        memory_used_bytes: ask(&mut gone, || device.memory()).map(|memory| memory.used),
        ..Telemetry::default()
    };
    telemetry.temperature_celsius = ask(&mut gone, || device.temperature());
    telemetry.power_milliwatts = ask(&mut gone, || device.power());
    telemetry.utilization_percent = ask(&mut gone, || device.utilization());
    telemetry.ecc = ask(&mut gone, || {
        Ok(Ecc {
            corrected: device.ecc_corrected()?,
            uncorrected: device.ecc_uncorrected()?,
        })
    });
    (!gone).then_some(telemetry)
}

/// Reads what a MIG device has of its own.
pub(super) fn read_partition(device: nvml::Device<'_>) -> Option<Telemetry> {
    let memory = device.memory().ok()?;
    Some(Telemetry {
        memory_used_bytes: Some(memory.used),
        ..Telemetry::default()
    })
}

fn ask<T>(gone: &mut bool, question: impl FnOnce() -> Result<T, nvml::Error>) -> Option<T> {
    if *gone {
        return None;
    }
    question()
        .inspect_err(|error| *gone = error.is_fatal())
        .ok()
}
