//! What is done with exclusive devices before a container starts on them: nobody else may be at
//! work on them, or they are reset. Nothing here asks a driver; it waits for what the probe says.

use std::{sync::Arc, time::Duration};

use config::PreStartMode;
use inventory::{Change, Readers, Requests};
use kubelet::front::{Prepare, Preparing};
use model::{CauseKind, Device, DeviceId, State, Telemetry, Verdict};
use pool::Offer;
use probe::supervisor::OrdersByBackend;
use tokio::time::{Instant, sleep_until};

use crate::{
    command::{self, Call, Runner},
    look::{self, computes, mebibytes},
};

/// Memory that a driver may have in use on a device where nobody works.
const IDLE_BYTES: u64 = 512 << 20;
/// The time between two looks while a start waits.
const STEP: Duration = Duration::from_secs(1);

/// Prepares devices before a container starts on them.
#[derive(Clone, Debug)]
pub struct Preparer {
    pub(super) readers: Readers,
    pub(super) requests: Requests,
    pub(super) orders: OrdersByBackend,
    pub(super) runner: Runner,
}

/// A device that is not free, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) device: DeviceId,
    pub(super) why: String,
}

// === impl Taken ===

impl Taken {
    pub(super) fn new(device: &Device, why: impl Into<String>) -> Self {
        Self {
            device: device.id.clone(),
            why: why.into(),
        }
    }
}

// === impl Preparer ===

impl Preparer {
    /// A preparer that reads what the inventory publishes, asks it for changes, gives orders to the
    /// supervisor, and has its commands run by `runner`.
    pub fn new(
        readers: Readers,
        requests: Requests,
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
        let deadline = Instant::now() + rule.limit;
        let devices: Vec<&Device> = ids
            .iter()
            .filter_map(|id| Some(&*offer.snapshot.find(id.as_str())?.device))
            .collect();
        let found = match rule.mode {
            PreStartMode::Off | PreStartMode::Check => self.look(&ids, soon(deadline)).await,
            PreStartMode::Wait => self.wait(&ids, deadline).await,
            PreStartMode::Reset => self.reset(&offer, &devices, deadline).await,
            PreStartMode::Exec => match self.command(&offer, &devices, deadline).await {
                Ok(()) => self.look(&ids, soon(deadline)).await,
                failed => failed,
            },
        };
        match found {
            Ok(()) => {
                self.give(&ids).await;
                Ok(())
            }
            Err(Taken { device, why }) => {
                self.withhold(&device, &why).await;
                tracing::warn!(%device, why, resource = %offer.resource, "a start is refused");
                Err(format!("{device} is not handed over: {why}"))
            }
        }
    }

    /// Runs the user's command for one device after another.
    pub(super) async fn command(
        &self,
        offer: &Offer,
        devices: &[&Device],
        deadline: Instant,
    ) -> Result<(), Taken> {
        let command = &offer.pool.pre_start.command;
        for device in devices.iter().filter(|_| !command.is_empty()) {
            let vendor = offer.vendors.of(&device.vendor).vendor();
            let call = Call {
                command,
                about: command::about(device, Some(&offer.resource), vendor),
            };
            let ended = self.run(&call, deadline).await;
            ended.map_err(|why| Taken::new(device, why))?;
        }
        Ok(())
    }

    /// Runs a command; why that failed, for a person.
    pub(super) async fn run(&self, call: &Call<'_>, deadline: Instant) -> Result<(), String> {
        let ended = self.runner.run(call, deadline).await;
        ended.map_err(|error| error.explain())?.success()
    }

    /// Waits until nobody is on the devices; who still is at the deadline.
    async fn wait(&self, ids: &[DeviceId], deadline: Instant) -> Result<(), Taken> {
        loop {
            let looked = self.look(ids, deadline).await;
            let next = Instant::now() + STEP;
            if looked.is_ok() || next >= deadline {
                return looked;
            }
            sleep_until(next).await;
        }
    }

    /// Who is on the devices according to a look that begins now, or, if none comes until then,
    /// according to the last one.
    async fn look(&self, ids: &[DeviceId], until: Instant) -> Result<(), Taken> {
        if !self.fresh(ids, until).await {
            tracing::warn!(
                devices = ?ids,
                "no new look at the devices in time; the last one decides about a start"
            );
        }
        self.free(ids)
    }

    /// Orders a look, and waits until it has come for every device; whether it came until then.
    pub(super) async fn fresh(&self, ids: &[DeviceId], until: Instant) -> bool {
        look::fresh(&self.readers, &self.orders, ids, until).await
    }

    /// Who is on the devices according to the last look.
    pub(super) fn free(&self, ids: &[DeviceId]) -> Result<(), Taken> {
        let samples = self.readers.samples.borrow();
        let taken = ids.iter().find_map(|id| {
            let why = occupant(samples.telemetry(id)?)?;
            let device = id.clone();
            Some(Taken { device, why })
        });
        taken.map_or(Ok(()), Err)
    }

    /// Keeps the kubelet from handing the device to the next pod at once. One that is out already
    /// needs nothing more.
    async fn withhold(&self, device: &DeviceId, why: &str) {
        if !self.is(device, |verdict| verdict.state >= State::Unhealthy) {
            let change = Change::Residue {
                device: device.clone(),
                evidence: why.to_owned(),
            };
            self.requests.ask(change).await;
        }
    }

    async fn give(&self, ids: &[DeviceId]) {
        let withheld = |verdict: &Verdict| {
            let mut causes = verdict.causes.iter();
            causes.any(|cause| cause.kind == CauseKind::Residue)
        };
        for id in ids.iter().filter(|id| self.is(id, withheld)) {
            let change = Change::Clean { device: id.clone() };
            self.requests.ask(change).await;
        }
    }

    /// Whether that holds of what is held of a device.
    fn is(&self, device: &DeviceId, so: impl Fn(&Verdict) -> bool) -> bool {
        let snapshot = self.readers.snapshots.borrow();
        let entry = snapshot.find(device.as_str());
        entry.is_some_and(|entry| so(&entry.verdict))
    }
}

impl Prepare for Preparer {
    fn prepare(&self, offer: Arc<Offer>, devices: Vec<DeviceId>) -> Preparing {
        Box::pin(self.clone().see_to(offer, devices))
    }
}

/// When a look that was ordered now should have come.
pub(super) fn soon(deadline: Instant) -> Instant {
    deadline.min(Instant::now() + look::FRESH_WITHIN)
}

/// Who is on a device. Before a container starts it has no processes, so whoever is there is not
/// of it.
fn occupant(telemetry: &Telemetry) -> Option<String> {
    let unseen = || {
        let used = telemetry
            .memory_used_bytes
            .filter(|used| *used > IDLE_BYTES)?;
        Some(format!(
            "{} of its memory are in use, by a process that cannot be seen",
            mebibytes(used)
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
