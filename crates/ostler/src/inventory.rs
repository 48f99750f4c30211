//! The inventory: everything that was seen, put into one snapshot. It remembers devices that are
//! not seen any more, so that a lost card stays listed, with its cause.

mod known;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use health::{Now, Policy, Sight};
use jiff::Timestamp;
use model::{
    Backend, CallFailure, CauseKind, Device, DeviceId, Entry, Kind, Phase, Snapshot, State,
};
use probe::{
    Sighting, Update,
    protocol::{Event, EventKind, Sample},
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval},
};

use self::known::Known;

/// How often verdicts that depend on time are looked at.
const TICK: Duration = Duration::from_secs(1);

/// Everything that was seen of the node's devices.
#[derive(Debug)]
pub(crate) struct Inventory {
    policy: Policy,
    gone_grace: Duration,
    known: BTreeMap<DeviceId, Known>,
    backends: BTreeMap<String, Backend>,
    last: Arc<Snapshot>,
}

/// Takes in updates and publishes snapshots, until the updates end. A new config counts from the
/// moment it is there, for everything that was seen before too.
pub(crate) async fn run(
    mut config: watch::Receiver<config::Health>,
    updates: &mut mpsc::Receiver<Update>,
    snapshots: watch::Sender<Arc<Snapshot>>,
) {
    let started = Instant::now();
    let mut inventory = Inventory::new(&config.borrow_and_update());
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let now = || Now {
        wall: Timestamp::now(),
        uptime: started.elapsed(),
    };
    loop {
        tokio::select! {
            update = updates.recv() => match update {
                Some(update) => inventory.take(update, now()),
                None => return,
            },
            Ok(()) = config.changed() => inventory.configure(&config.borrow_and_update()),
            _ = tick.tick() => {}
        }
        // What comes together is published together.
        while let Ok(update) = updates.try_recv() {
            inventory.take(update, now());
        }
        if let Some(snapshot) = inventory.changed(now()) {
            snapshots.send_replace(snapshot);
        }
    }
}

// === impl Inventory ===

impl Inventory {
    /// An inventory that has seen nothing.
    pub(crate) fn new(config: &config::Health) -> Self {
        let mut inventory = Self {
            policy: Policy::default(),
            gone_grace: config.gone_grace,
            known: BTreeMap::new(),
            backends: BTreeMap::new(),
            last: Arc::new(Snapshot::empty(Timestamp::now())),
        };
        inventory.configure(config);
        inventory
    }

    /// Takes over a config. What was seen is kept.
    fn configure(&mut self, config: &config::Health) {
        self.policy.unanswered = config.unanswered_grace;
        self.gone_grace = config.gone_grace;
    }

    /// Takes in one update.
    pub(crate) fn take(&mut self, update: Update, now: Now) {
        match update {
            Update::Sighting(sighting) => self.see(*sighting, now),
            Update::Sample(sample) => self.sample(*sample),
            Update::Checkup(_) => {}
            Update::Event(event) => self.event(&event, now),
        }
    }

    /// The snapshot at this moment, if it says anything new.
    pub(crate) fn changed(&mut self, now: Now) -> Option<Arc<Snapshot>> {
        let grace = self.gone_grace;
        self.known.retain(|id, known| {
            let gone = known.record.lasting(CauseKind::Gone, now);
            let keep = gone.is_none_or(|lasting| lasting < grace);
            if !keep {
                tracing::info!(device = %id, "the device has been gone for long and is forgotten");
            }
            keep
        });
        let entry = |known: &Known| known.entry(self.policy, now);
        let devices: Vec<Entry> = self.known.values().map(entry).collect();
        let backends: Vec<Backend> = self.backends.values().cloned().collect();
        if devices == self.last.devices && backends == self.last.backends {
            return None;
        }
        let snapshot = Arc::new(Snapshot {
            generation: self.last.generation + 1,
            taken: now.wall,
            devices,
            backends,
        });
        log_changes(&self.last, &snapshot);
        self.last = Arc::clone(&snapshot);
        Some(snapshot)
    }

    fn see(&mut self, mut sighting: Sighting, now: Now) {
        let name = sighting.backend.name.clone();
        // A probe that has not looked yet says nothing of what there is beside the devices.
        if sighting.backend.phase == Phase::Starting
            && let Some(before) = self.backends.get(&name)
        {
            sighting.backend.extras.clone_from(&before.extras);
        }
        for device in &sighting.devices {
            match self.known.get_mut(&device.id) {
                Some(known) => known.update(device),
                None => {
                    let known = Known::new(&name, device.clone());
                    self.known.insert(device.id.clone(), known);
                }
            }
        }
        self.known
            .retain(|_, known| known.backend != name || !was_dissolved(&known.device, &sighting));
        for known in self.known.values_mut().filter(|k| k.backend == name) {
            known.record.see(sight(&known.device, &sighting), now);
        }
        self.backends.insert(name, sighting.backend);
    }

    fn sample(&mut self, sample: Sample) {
        if let Some(known) = self.known.get_mut(&sample.device) {
            known.telemetry = Some(sample.telemetry);
        }
    }

    /// An event on a card concerns its partitions too; one on a partition only that.
    fn event(&mut self, event: &Event, now: Now) {
        let Event { device, event, .. } = event;
        tracing::info!(%device, ?event, "the driver reports an event");
        let EventKind::Xid(number) = event else {
            return;
        };
        for (id, known) in &mut self.known {
            if id == device || known.device.card() == device {
                known.record.xid(*number, now);
            }
        }
    }
}

/// How a device looks in a picture of its backend.
fn sight<'a>(device: &Device, sighting: &'a Sighting) -> Sight<'a> {
    let stuck = sighting.stuck.iter().find(|(card, _)| card.covers(device));
    if let Some(call) = stuck
        .map(|(_, call)| call)
        .or(sighting.driver_stuck.as_ref())
    {
        return Sight::Stuck(call);
    }
    if let Some(why) = &sighting.unwatched {
        return Sight::Unwatched(why);
    }
    // A probe that was started anew has not looked yet: it says nothing of what was seen before.
    if sighting.backend.phase == Phase::Starting {
        return Sight::Unwatched("the probe has not reported yet");
    }
    // A partition is only as well as its card, and only as well known.
    let find = |id: &DeviceId| sighting.devices.iter().find(|seen| seen.id == *id);
    let failed = find(device.card()).and_then(worst_failure);
    if let Some(failure) = failed.filter(|failure| failure.fatal) {
        return Sight::Unreadable(failure);
    }
    if let Some(seen) = find(&device.id) {
        return Sight::Seen(&seen.failures);
    }
    let mut unreadable = sighting.backend.unreadable.iter();
    match unreadable.find(|card| card.pci.is_some() && card.pci == device.pci) {
        Some(card) => Sight::Unreadable(&card.failure),
        None => failed.map_or_else(|| missing(&sighting.backend), Sight::Untold),
    }
}

/// A call that failed on a device, one that means the device is gone before any other.
fn worst_failure(device: &Device) -> Option<&CallFailure> {
    device.failures.iter().max_by_key(|failure| failure.fatal)
}

/// Whether a partition was taken apart: its card is well and does not have it any more.
fn was_dissolved(device: &Device, sighting: &Sighting) -> bool {
    let Kind::Partition { parent, .. } = &device.kind else {
        return false;
    };
    let seen = |id: &DeviceId| sighting.devices.iter().find(|seen| seen.id == *id);
    // A card that failed to answer may just not have told of its partitions.
    let card_is_well = |card: &Device| card.failures.is_empty();
    sighting.unwatched.is_none()
        && sighting.driver_stuck.is_none()
        && seen(&device.id).is_none()
        && seen(parent).is_some_and(card_is_well)
}

/// How a device looks that is not listed.
fn missing(backend: &Backend) -> Sight<'_> {
    match backend.phase {
        Phase::NoDriver => Sight::NoDriver(&backend.message),
        Phase::DriverFailed => Sight::Failed(&backend.message),
        _ => Sight::Missing("the driver does not list the device any more"),
    }
}

/// One log line for everything a person should know of.
fn log_changes(before: &Snapshot, after: &Snapshot) {
    for backend in &after.backends {
        let same = |old: &&Backend| {
            old.name == backend.name && old.phase == backend.phase && old.message == backend.message
        };
        if before.backends.iter().find(same).is_none() {
            let Backend {
                name,
                phase,
                message,
                ..
            } = backend;
            match phase {
                Phase::Starting => tracing::debug!(backend = name, ?phase, "{message}"),
                Phase::Running if message.is_empty() => {
                    tracing::info!(
                        backend = name,
                        ?phase,
                        devices = after.devices.len(),
                        "the probe reports"
                    );
                }
                _ => tracing::warn!(backend = name, ?phase, "{message}"),
            }
        }
    }
    for Entry {
        device, verdict, ..
    } in &after.devices
    {
        let old = before.find(device.id.as_str()).map(|entry| &entry.verdict);
        let was = old.map_or(State::Healthy, |verdict| verdict.state);
        match (was, verdict.state) {
            (was, now) if was == now && old.map(|old| &old.causes) == Some(&verdict.causes) => {}
            (State::Healthy, State::Healthy) => {}
            (_, State::Healthy) => {
                tracing::info!(device = %device.id, "the device is healthy again")
            }
            (_, state) => {
                let cause = verdict.reason();
                tracing::warn!(device = %device.id, pci = device.pci.map(tracing::field::display), %state, cause, "a device is not healthy");
            }
        }
    }
}

#[cfg(test)]
mod tests;
