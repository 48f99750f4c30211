//! Preparation of exclusive devices before a container starts, by the pool's `preStart`: check, wait,
//! reset, or a command. No driver is called: decisions are made from the samples of the probe.

use std::{sync::Arc, time::Duration};

use config::PreStartMode;
use inventory::{ChangeRequests, DeviceChange, Readers};
use kubelet::front::{Prepare, Preparing};
use model::{CauseKind, Device, DeviceId, State, Telemetry, Verdict};
use pool::Offer;
use probe::supervisor::OrdersByBackend;
use tokio::time::{Instant, sleep_until};

use crate::{
    command::{self, CommandCall, Runner},
    look::{self, computes, format_mebibytes},
};

/// Limit of the memory, in bytes, that a driver uses itself on a device without processes.
const IDLE_BYTES: u64 = 512 << 20;
/// Time between two requests for samples while a start waits.
const STEP: Duration = Duration::from_secs(1);

/// Prepares devices before a container starts on them.
#[derive(Clone, Debug)]
pub struct Preparer {
    pub(super) readers: Readers,
    pub(super) requests: ChangeRequests,
    pub(super) orders: OrdersByBackend,
    pub(super) runner: Runner,
}

/// A device that is not free, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceInUse {
    pub(super) device: DeviceId,
    pub(super) why: String,
}

// === impl DeviceInUse ===

impl DeviceInUse {
    pub(super) fn new(device: &Device, why: impl Into<String>) -> Self {
        Self {
            device: device.id.clone(),
            why: why.into(),
        }
    }
}

// === impl Preparer ===

impl Preparer {
    /// Makes a preparer. It reads the snapshots and samples of the inventory, sends requests to it,
    /// gives orders to the supervisors of the probes, and runs commands by `runner`.
    pub fn new(
        readers: Readers,
        requests: ChangeRequests,
        orders: OrdersByBackend,
        runner: Runner,
    ) -> Self {
        Self {
            readers,
            requests,
            orders,
            runner,
        }
    }

    async fn see_to(self, offer: Arc<Offer>, ids: Vec<DeviceId>) -> Result<(), String> {
        let rule = &offer.pool.pre_start;
        // The kubelet gives up after 30 s (pkg/kubelet/cm/devicemanager/endpoint.go,
        // `preStartContainer`), and calls again for the next start of the container.
        let deadline = Instant::now() + rule.limit;
        let devices: Vec<&Device> = ids
            .iter()
            .filter_map(|id| Some(&*offer.snapshot.find_entry(id.as_str())?.device))
            .collect();
        let found = match rule.mode {
            PreStartMode::Off | PreStartMode::Check => {
                self.check_with_samples(&ids, soon(deadline)).await
            }
            PreStartMode::Wait => self.wait_until_free(&ids, deadline).await,
            PreStartMode::Reset => self.reset_devices(&offer, &devices, deadline).await,
            PreStartMode::Exec => match self.run_user_command(&offer, &devices, deadline).await {
                Ok(()) => self.check_with_samples(&ids, soon(deadline)).await,
                failed => failed,
            },
        };
        match found {
            Ok(()) => {
                self.end_residue(&ids).await;
                Ok(())
            }
            Err(DeviceInUse { device, why }) => {
                self.withhold(&device, &why).await;
                tracing::warn!(%device, why, resource = %offer.resource, "a start is refused");
                Err(format!("{device} is not handed over: {why}"))
            }
        }
    }

    /// Runs the user's command for each device, one after the other.
    pub(super) async fn run_user_command(
        &self,
        offer: &Offer,
        devices: &[&Device],
        deadline: Instant,
    ) -> Result<(), DeviceInUse> {
        let command = &offer.pool.pre_start.command;
        for device in devices.iter().filter(|_| !command.is_empty()) {
            let vendor = offer.vendors.find_rules(&device.vendor).vendor();
            let call = CommandCall {
                command,
                about: command::about(device, Some(&offer.resource), vendor),
            };
            let ended = self.run_command(&call, deadline).await;
            ended.map_err(|why| DeviceInUse::new(device, why))?;
        }
        Ok(())
    }

    /// Runs a command. The error is for an operator.
    pub(super) async fn run_command(
        &self,
        call: &CommandCall<'_>,
        deadline: Instant,
    ) -> Result<(), String> {
        let ended = self.runner.run_to_end(call, deadline).await;
        ended.map_err(|error| error.explain())?.success()
    }

    /// Waits until the devices are free. At the deadline the error is the first one that is not.
    async fn wait_until_free(
        &self,
        ids: &[DeviceId],
        deadline: Instant,
    ) -> Result<(), DeviceInUse> {
        loop {
            let looked = self.check_with_samples(ids, deadline).await;
            let next = Instant::now() + STEP;
            if looked.is_ok() || next >= deadline {
                return looked;
            }
            sleep_until(next).await;
        }
    }

    /// Checks by new samples that the devices are free. If none come before `until`, the last ones
    /// decide.
    async fn check_with_samples(
        &self,
        ids: &[DeviceId],
        until: Instant,
    ) -> Result<(), DeviceInUse> {
        if !self.wait_for_samples(ids, until).await {
            tracing::warn!(
                devices = ?ids,
                "no new look at the devices in time; the last one decides about a start"
            );
        }
        self.check_free(ids)
    }

    /// Requests new samples, and waits for one of each device. Returns true if all came before `until`.
    pub(super) async fn wait_for_samples(&self, ids: &[DeviceId], until: Instant) -> bool {
        look::request_samples(&self.readers, &self.orders, ids, until).await
    }

    /// Checks by the last samples that the devices are free. The error is the first one that is not.
    pub(super) fn check_free(&self, ids: &[DeviceId]) -> Result<(), DeviceInUse> {
        let samples = self.readers.samples.borrow();
        let taken = ids.iter().find_map(|id| {
            let why = occupant(samples.telemetry(id)?)?;
            let device = id.clone();
            Some(DeviceInUse { device, why })
        });
        taken.map_or(Ok(()), Err)
    }

    /// Makes the device Unhealthy by a finding of kind `Residue`, unless it is so already.
    async fn withhold(&self, device: &DeviceId, why: &str) {
        // Otherwise the kubelet would give the same device to the next pod, and refuse that one too.
        if !self.verdict_is(device, |verdict| verdict.state >= State::Unhealthy) {
            let change = DeviceChange::Residue {
                device: device.clone(),
                evidence: why.to_owned(),
            };
            self.requests.request_change(change).await;
        }
    }

    /// Ends the `Residue` findings of the devices.
    async fn end_residue(&self, ids: &[DeviceId]) {
        let withheld = |verdict: &Verdict| {
            let mut causes = verdict.causes.iter();
            causes.any(|cause| cause.kind == CauseKind::Residue)
        };
        for id in ids.iter().filter(|id| self.verdict_is(id, withheld)) {
            let change = DeviceChange::Clean { device: id.clone() };
            self.requests.request_change(change).await;
        }
    }

    /// True if `so` is true for the device's verdict.
    fn verdict_is(&self, device: &DeviceId, so: impl Fn(&Verdict) -> bool) -> bool {
        let snapshot = self.readers.snapshots.borrow();
        let entry = snapshot.find_entry(device.as_str());
        entry.is_some_and(|entry| so(&entry.verdict))
    }
}

impl Prepare for Preparer {
    fn prepare_devices(&self, offer: Arc<Offer>, devices: Vec<DeviceId>) -> Preparing {
        Box::pin(self.clone().see_to(offer, devices))
    }
}

/// Time until which new samples, requested now, are waited for.
pub(super) fn soon(deadline: Instant) -> Instant {
    deadline.min(Instant::now() + look::FRESH_WITHIN)
}

/// Describes the use of a device; `None` if it is free.
fn occupant(telemetry: &Telemetry) -> Option<String> {
    // The container has not started, so every process on the device is a foreign one. A process that
    // the driver does not list still shows by its memory.
    let unseen = || {
        let used = telemetry
            .memory_used_bytes
            .filter(|used| *used > IDLE_BYTES)?;
        Some(format!(
            "{} of its memory are in use, by a process that cannot be seen",
            format_mebibytes(used)
        ))
    };
    computes(telemetry).or_else(unseen)
}

#[cfg(test)]
mod tests {
    use model::Process;

    use super::*;

    #[test]
    fn an_idle_device_has_no_occupant() {
        let idle = Telemetry {
            memory_used_bytes: Some(IDLE_BYTES),
            processes: Some(Vec::new()),
            ..Telemetry::default()
        };
        assert_eq!(occupant(&idle), None);
        assert_eq!(occupant(&Telemetry::default()), None, "nothing is known");
    }

    #[test]
    fn an_occupant_is_named() {
        let busy = Telemetry {
            processes: Some(vec![Process {
                pid: 4711,
                name: Some("python3".to_owned()),
                memory_bytes: Some(3 << 30),
            }]),
            ..Telemetry::default()
        };
        let text = occupant(&busy).unwrap();
        assert_eq!(text, "process 4711 (python3) with 3072 MiB computes on it");
        let unseen = Telemetry {
            memory_used_bytes: Some(2 << 30),
            ..Telemetry::default()
        };
        assert!(
            occupant(&unseen)
                .unwrap()
                .starts_with("2048 MiB of its memory")
        );
    }
}
