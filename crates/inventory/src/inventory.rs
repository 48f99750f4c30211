//! State of the inventory: the known devices, and the effect of updates, requested changes and time
//! on them.

mod leave;
mod old_facts;
mod owner;
mod restore;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use health::{History, Now, Policy, compare};
use jiff::Timestamp;
use model::{
    Backend, Device, DeviceId, Entry, Event, EventCode, Phase, SinceReset, Snapshot, Tier, Verdict,
};
use probe::{
    Sighting, Update,
    protocol::{Checkup, Sample},
};

pub(super) use self::restore::ALL;
use self::restore::Waiting;
use crate::{Change, Details, known::Known, sight::sight, tell};

/// Limit of events of a backend that wait for an unknown device, so that a faulty probe does not
/// fill memory.
const EARLY: usize = 64;

/// All known devices of the node.
#[derive(Debug)]
pub(super) struct Inventory {
    policy: Policy,
    known: BTreeMap<DeviceId, Known>,
    backends: BTreeMap<String, Backend>,
    /// The newest merged report of each backend.
    pictures: BTreeMap<String, Sighting>,
    /// Releases of backends without a merged report (turned off by the config, or not seen yet): their
    /// ends, by backend and by the name in the state file.
    absent_releases: BTreeMap<String, BTreeMap<String, Timestamp>>,
    /// Identity of the driver load that each backend talks to.
    drivers: BTreeMap<String, String>,
    boot_id: String,
    waiting: Waiting,
    /// Devices that an operator uncordoned since the agent started. A state file that is read late
    /// does not change them.
    vouched: BTreeSet<DeviceId>,
    /// Cards that an operator released since the agent started, by backend and by their name in the
    /// state file.
    released: BTreeSet<(String, String)>,
    history: History,
    /// Events of devices that are not known yet.
    early: Vec<Early>,
    /// Pairs of backends of which the first reported a device of the second, for one log line each.
    told_foreign: BTreeSet<(String, String)>,
    last: Arc<Snapshot>,
    /// True if something changed that must be saved.
    dirty: bool,
}

/// An event of a device that is not known yet. The event of a new card can arrive before its
/// report.
#[derive(Debug)]
struct Early {
    backend: String,
    device: DeviceId,
    code: EventCode,
}

// === impl Inventory ===

impl Inventory {
    /// Returns an empty inventory for this boot of the node.
    pub(super) fn new(policy: &Policy, boot_id: String) -> Self {
        Self {
            policy: policy.clone(),
            known: BTreeMap::new(),
            backends: BTreeMap::new(),
            pictures: BTreeMap::new(),
            absent_releases: BTreeMap::new(),
            drivers: BTreeMap::new(),
            boot_id,
            waiting: Waiting::default(),
            vouched: BTreeSet::new(),
            released: BTreeSet::new(),
            history: History::default(),
            early: Vec::new(),
            told_foreign: BTreeSet::new(),
            last: Arc::new(Snapshot::empty(Timestamp::now())),
            dirty: false,
        }
    }

    /// Takes over a new policy. Known devices are kept.
    pub(super) fn configure(&mut self, policy: &Policy) {
        self.policy.clone_from(policy);
    }

    /// Takes in one update. An update about a device of another backend is refused.
    pub(super) fn take(&mut self, update: Update, now: Now) {
        if self.refuses(&update) {
            return;
        }
        match update {
            Update::Sighting(sighting) => self.see(*sighting, now),
            Update::Sample { sample, .. } => self.sample(&sample, now),
            Update::Checkup { checkup, .. } => self.check(&checkup, now),
            Update::Event { backend, event } => self.event(backend, event, now),
            Update::Count { count, .. } => self.count(&count.device, &count.since_reset),
            Update::Retired(backend) => self.retire(&backend, now),
        }
    }

    /// Carries out a requested change. Unknown devices are ignored.
    pub(super) fn obey(&mut self, what: &Change, now: Now) {
        self.dirty = true;
        match what {
            Change::Cordon { devices, reason } => {
                for known in devices.iter().filter_map(|id| self.known.get(id)) {
                    tracing::info!(device = %known.device.id, reason, "cordoned by an operator");
                }
                self.each(devices, |known, _| known.record.cordon(reason, now));
            }
            Change::Uncordon { devices } => {
                self.vouched.extend(devices.iter().cloned());
                self.each(devices, |known, _| {
                    tracing::info!(device = %known.device.id, "uncordoned by an operator");
                    known.record.uncordon();
                });
            }
            Change::Reset { devices } => {
                self.each(devices, |known, _| known.record.was_reset());
            }
            Change::Residue { device, evidence } => {
                self.each(std::slice::from_ref(device), |known, policy| {
                    known.record.residue(evidence, policy, now);
                });
            }
            Change::Clean { device } => {
                self.each(std::slice::from_ref(device), |known, _| {
                    known.record.clean()
                });
            }
        }
    }

    /// Calls `act` on each of these devices that is known.
    fn each(&mut self, devices: &[DeviceId], mut act: impl FnMut(&mut Known, &Policy)) {
        for id in devices {
            if let Some(known) = self.known.get_mut(id) {
                act(known, &self.policy);
            }
        }
    }

    /// Returns a new snapshot if a device, verdict or backend differs from the last one. Changes of
    /// verdicts go to the log and into the history.
    pub(super) fn changed(&mut self, now: Now) -> Option<Arc<Snapshot>> {
        self.forget(now);
        let verdicts = self.verdicts(now);
        let mut devices = Vec::new();
        for (known, verdict) in self.known.values_mut().zip(verdicts) {
            self.dirty |= known.record.take_unsaved();
            let before = known.told.replace(verdict.clone());
            let id = &known.device.id;
            if let Some(transition) = compare(before.as_ref(), &verdict, id, now.wall) {
                tell::transition(&transition, &verdict, known.device.pci);
                self.history.push(transition);
                self.dirty = true;
            }
            devices.push(Entry {
                device: Arc::clone(&known.device),
                verdict,
            });
        }
        let backends: Vec<Backend> = self.backends.values().cloned().collect();
        // A new snapshot makes the kubelet front end build and compare whole lists; an equal one
        // must not start that.
        if devices == self.last.devices && backends == self.last.backends {
            return None;
        }
        let snapshot = Arc::new(Snapshot {
            generation: self.last.generation + 1,
            taken: now.wall,
            devices,
            backends,
        });
        tell::backends(&self.last, &snapshot);
        self.last = Arc::clone(&snapshot);
        Some(snapshot)
    }

    /// Returns the verdicts of all devices, in the order of the devices.
    fn verdicts(&self, now: Now) -> Vec<Verdict> {
        let verdict = |known: &Known| {
            let own = known.record.verdict(&self.policy, now);
            let card = self.known.get(known.device.card());
            match card.filter(|card| card.device.id != known.device.id) {
                Some(card) => known.joined(own, &card.record.verdict(&self.policy, now)),
                None => own,
            }
        };
        self.known.values().map(verdict).collect()
    }

    /// Marks the state for saving if releases changed.
    pub(super) fn note_release(&mut self, changed: bool) {
        self.dirty |= changed;
    }

    /// Returns the backends with a device that another look now would bring nearer to the end of
    /// its hold-down.
    pub(super) fn wanting_look(&self, now: Now) -> BTreeSet<&str> {
        let known = self.known.values();
        let wanting = known.filter(|known| known.record.wants_look(&self.policy, now));
        wanting.map(|known| known.backend.as_str()).collect()
    }

    /// Returns the details that are published beside the snapshot.
    pub(super) fn details(&self) -> Details {
        Details {
            unsupported: self.unsupported(),
            history: self.history.iter().cloned().collect(),
        }
    }

    /// True if the details are still the same; does not copy the history.
    pub(super) fn has_told(&self, details: &Details) -> bool {
        // Changes of an earlier agent can be added late, at the beginning.
        let mut history = self.history.iter();
        details.history.first() == history.next()
            && details.history.last() == self.history.iter().next_back()
            && details.unsupported == self.unsupported()
    }

    /// Returns the unsupported checks of all devices that have any.
    fn unsupported(&self) -> BTreeMap<DeviceId, BTreeMap<Tier, Vec<String>>> {
        let unsupported = |known: &Known| {
            let tiers = known.record.unsupported();
            let tiers = tiers.filter(|(_, names)| !names.is_empty());
            let tiers: BTreeMap<_, _> = tiers.map(|(tier, names)| (tier, names.to_vec())).collect();
            (known.device.id.clone(), tiers)
        };
        let unsupported = self.known.values().map(unsupported);
        unsupported.filter(|(_, tiers)| !tiers.is_empty()).collect()
    }

    /// Takes in a merged report of a backend.
    fn see(&mut self, mut sighting: Sighting, now: Now) {
        let name = sighting.backend.name.clone();
        // A probe that has not looked yet reports no extras; the earlier ones are still valid.
        if matches!(sighting.backend.phase, Phase::Starting | Phase::Failing)
            && let Some(before) = self.backends.get(&name)
        {
            sighting.backend.extras.clone_from(&before.extras);
        }
        self.leave_to_others(&mut sighting);
        let released = restore::releases(&sighting).filter(|(_, release)| !release.own);
        let released = released.map(|(which, _)| (name.clone(), which));
        self.released.extend(released);
        self.meet(&sighting, now);
        self.notice_reload(&sighting, now);
        self.dissolve(&sighting, now);
        for known in self.known.values_mut().filter(|k| k.backend == name) {
            look(known, &sighting, &self.policy, now);
            known.looked = true;
        }
        self.backends.insert(name.clone(), sighting.backend.clone());
        self.absent_releases.remove(&name);
        self.pictures.insert(name, sighting);
    }

    /// Takes over the facts of every device in the report, and adds devices that an earlier agent
    /// saw and that cannot be seen now.
    fn meet(&mut self, sighting: &Sighting, now: Now) {
        let name = &sighting.backend.name;
        for device in &sighting.devices {
            match self.known.get_mut(&device.id) {
                Some(known) => known.update(device),
                None => self.welcome(sighting, device, now),
            }
        }
        let looked = sighting.backend.phase == Phase::Running && sighting.unwatched.is_none();
        let wanted = |device: &Device| looked || sighting.released.of(device).is_some();
        for device in self.waiting.absent(name, wanted) {
            if !self.known.contains_key(&device.id) {
                self.welcome(sighting, &device, now);
            }
        }
    }

    /// Adds a device, with its saved record and the events that waited for it.
    fn welcome(&mut self, sighting: &Sighting, device: &Arc<Device>, now: Now) {
        let Backend { name, driver, .. } = &sighting.backend;
        let instance = driver
            .as_ref()
            .and_then(|driver| driver.instance.as_deref());
        let boot = (self.boot_id.as_str(), instance);
        let met = self.waiting.take(name, device, boot, (&self.policy, now));
        let mut known = met.unwrap_or_else(|| Known::new(name, Arc::clone(device)));
        let is_of_it = |early: &mut Early| early.device == device.id && early.backend == *name;
        for early in self.early.extract_if(.., is_of_it) {
            known.record.happen(early.code, &self.policy, now);
        }
        self.known.insert(device.id.clone(), known);
    }

    /// Detects a reload of the driver, which resets all its devices.
    fn notice_reload(&mut self, sighting: &Sighting, now: Now) {
        let Backend { name, driver, .. } = &sighting.backend;
        let instance = driver.as_ref().and_then(|driver| driver.instance.clone());
        let Some(instance) = instance else { return };
        let before = self.drivers.insert(name.clone(), instance.clone());
        self.dirty |= before.as_ref() != Some(&instance);
        if before.is_none_or(|before| before == instance) {
            return;
        }
        tracing::info!(backend = name, "the driver was loaded anew");
        self.waiting.reloaded(name, (&self.policy, now));
        for known in self.known.values_mut().filter(|k| k.backend == *name) {
            known.record.reloaded(&self.policy);
        }
    }

    /// Takes in a sample: it shows that the device was looked at and still matches the newest
    /// report.
    fn sample(&mut self, sample: &Sample, now: Now) {
        self.count(&sample.device, &sample.since_reset);
        let Some(known) = self.known.get_mut(&sample.device) else {
            return;
        };
        let users = sample.telemetry.processes.as_ref().map(Vec::len);
        let before = std::mem::replace(&mut known.users, users);
        // The foreign process has left. Without an earlier process this says nothing: a residue can
        // also be a `preStart` command that failed.
        if before > Some(0) && users == Some(0) {
            known.record.clean();
        }
        // The look that made the report was counted with it.
        if std::mem::take(&mut known.looked) {
            return;
        }
        if let Some(picture) = self.pictures.get(&known.backend) {
            look(known, picture, &self.policy, now);
        }
    }

    /// Takes in the counters of a card since its last reset. They count for its partitions, too:
    /// they are reset with the card.
    fn count(&mut self, card: &DeviceId, counts: &SinceReset) {
        for known in self.known.values_mut().filter(|k| k.device.card() == card) {
            let anew = known.record.count(counts, &self.policy);
            if anew && known.device.id == *card {
                tracing::info!(device = %card, "its counters began anew: it was reset since the last look");
            }
        }
    }

    /// Takes in a check-up.
    fn check(&mut self, checkup: &Checkup, now: Now) {
        if let Some(known) = self.known.get_mut(&checkup.device) {
            known.read(&checkup.reading, &self.policy, now);
        }
    }

    /// Takes in an event. An event of a card reaches its partitions through their verdicts; an
    /// event of a partition concerns only that.
    fn event(&mut self, backend: String, event: Event, now: Now) {
        let Event { device, code, .. } = event;
        tracing::info!(%device, %code, "the driver reports an event");
        match self.known.get_mut(&device) {
            Some(known) => known.record.happen(code, &self.policy, now),
            None => {
                let mine = |early: &&Early| early.backend == backend;
                // A card that fell off the bus may be in no report any more when its XID arrives.
                if self.early.iter().filter(mine).count() < EARLY {
                    self.early.push(Early {
                        backend,
                        device,
                        code,
                    });
                }
            }
        }
    }
}

/// Takes in the state of a device in a merged report of its backend.
fn look(known: &mut Known, picture: &Sighting, policy: &Policy, now: Now) {
    match picture.released.of(&known.device) {
        // The time may be over already: then the process that looks again is just starting.
        Some(release) if release.own => known.record.lend(release.until, now),
        Some(release) => known.record.release(release.until, now),
        None => {
            let Some(sight) = sight(&known.device, picture) else {
                return;
            };
            match sight.tells() {
                true => known.record.resume(),
                false => known.record.await_look(now),
            }
            known.record.see(sight, policy, now);
        }
    }
}

#[cfg(test)]
mod tests;
