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

use health::{HealthPolicy, History, Now, compare_verdicts};
use jiff::Timestamp;
use model::{
    Backend, Device, DeviceId, Entry, Event, EventCode, Phase, SinceReset, Snapshot, Tier, Verdict,
};
use probe::{
    BackendState, Update,
    protocol::{Checkup, Sample},
};

pub(super) use self::restore::ALL;
use self::restore::AbsentDevices;
use crate::{Details, DeviceChange, known::KnownDevice, sight::sight, tell};

/// Limit of events of a backend that wait for an unknown device, so that a faulty probe does not
/// fill memory.
const EARLY: usize = 64;

/// All known devices of the node.
#[derive(Debug)]
pub(super) struct Inventory {
    policy: HealthPolicy,
    known: BTreeMap<DeviceId, KnownDevice>,
    backends: BTreeMap<String, Backend>,
    /// The newest merged report of each backend.
    pictures: BTreeMap<String, BackendState>,
    /// Releases of backends without a merged report (turned off by the config, or not seen yet): their
    /// ends, by backend and by the name in the state file.
    absent_releases: BTreeMap<String, BTreeMap<String, Timestamp>>,
    /// Identity of the driver load that each backend talks to.
    drivers: BTreeMap<String, String>,
    boot_id: String,
    waiting: AbsentDevices,
    /// Devices that an operator uncordoned since the agent started. A state file that is read late
    /// does not change them.
    vouched: BTreeSet<DeviceId>,
    /// Cards that an operator released since the agent started, by backend and by their name in the
    /// state file.
    released: BTreeSet<(String, String)>,
    history: History,
    /// Events of devices that are not known yet.
    early: Vec<EarlyEvent>,
    /// Pairs of backends of which the first reported a device of the second, for one log line each.
    told_foreign: BTreeSet<(String, String)>,
    last: Arc<Snapshot>,
    /// True if something changed that must be saved.
    dirty: bool,
}

/// An event of a device that is not known yet. The event of a new card can arrive before its
/// report.
#[derive(Debug)]
struct EarlyEvent {
    backend: String,
    device: DeviceId,
    code: EventCode,
}

// === impl Inventory ===

impl Inventory {
    /// Returns an empty inventory for this boot of the node.
    pub(super) fn new(policy: &HealthPolicy, boot_id: String) -> Self {
        Self {
            policy: policy.clone(),
            known: BTreeMap::new(),
            backends: BTreeMap::new(),
            pictures: BTreeMap::new(),
            absent_releases: BTreeMap::new(),
            drivers: BTreeMap::new(),
            boot_id,
            waiting: AbsentDevices::default(),
            vouched: BTreeSet::new(),
            released: BTreeSet::new(),
            history: History::default(),
            early: Vec::new(),
            told_foreign: BTreeSet::new(),
            last: Arc::new(Snapshot::empty_at(Timestamp::now())),
            dirty: false,
        }
    }

    /// Takes over a new policy. Known devices are kept.
    pub(super) fn set_policy(&mut self, policy: &HealthPolicy) {
        self.policy.clone_from(policy);
    }

    /// Takes in one update. An update about a device of another backend is refused.
    pub(super) fn apply_update(&mut self, update: Update, now: Now) {
        if self.refuses(&update) {
            return;
        }
        match update {
            Update::State(sighting) => self.apply_report(*sighting, now),
            Update::Sample { sample, .. } => self.apply_sample(&sample, now),
            Update::Checkup { checkup, .. } => self.apply_checkup(&checkup, now),
            Update::Event { backend, event } => self.apply_event(backend, event, now),
            Update::Count { count, .. } => self.apply_counters(&count.device, &count.since_reset),
            Update::Retired(backend) => self.drop_backend(&backend, now),
        }
    }

    /// Carries out a requested change. Unknown devices are ignored.
    pub(super) fn apply_change(&mut self, what: &DeviceChange, now: Now) {
        self.dirty = true;
        match what {
            DeviceChange::Cordon { devices, reason } => {
                for known in devices.iter().filter_map(|id| self.known.get(id)) {
                    tracing::info!(device = %known.device.id, reason, "cordoned by an operator");
                }
                self.for_each_known(devices, |known, _| known.record.add_cordon(reason, now));
            }
            DeviceChange::Uncordon { devices } => {
                self.vouched.extend(devices.iter().cloned());
                self.for_each_known(devices, |known, _| {
                    tracing::info!(device = %known.device.id, "uncordoned by an operator");
                    known.record.end_cordon();
                });
            }
            DeviceChange::Reset { devices } => {
                self.for_each_known(devices, |known, _| known.record.was_reset());
            }
            DeviceChange::Residue { device, evidence } => {
                self.for_each_known(std::slice::from_ref(device), |known, policy| {
                    known.record.residue(evidence, policy, now);
                });
            }
            DeviceChange::Clean { device } => {
                self.for_each_known(std::slice::from_ref(device), |known, _| {
                    known.record.clear_residue()
                });
            }
        }
    }

    /// Calls `act` on each of these devices that is known.
    fn for_each_known(
        &mut self,
        devices: &[DeviceId],
        mut act: impl FnMut(&mut KnownDevice, &HealthPolicy),
    ) {
        for id in devices {
            if let Some(known) = self.known.get_mut(id) {
                act(known, &self.policy);
            }
        }
    }

    /// Returns a new snapshot if a device, verdict or backend differs from the last one. Changes of
    /// verdicts go to the log and into the history.
    pub(super) fn next_snapshot(&mut self, now: Now) -> Option<Arc<Snapshot>> {
        self.drop_long_absent(now);
        let verdicts = self.verdicts(now);
        let mut devices = Vec::new();
        for (known, verdict) in self.known.values_mut().zip(verdicts) {
            self.dirty |= known.record.take_unsaved();
            let before = known.told.replace(verdict.clone());
            let id = &known.device.id;
            if let Some(transition) = compare_verdicts(before.as_ref(), &verdict, id, now.wall) {
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
        tell::log_backends(&self.last, &snapshot);
        self.last = Arc::clone(&snapshot);
        Some(snapshot)
    }

    /// Returns the verdicts of all devices, in the order of the devices.
    fn verdicts(&self, now: Now) -> Vec<Verdict> {
        let verdict = |known: &KnownDevice| {
            let own = known.record.verdict(&self.policy, now);
            let card = self.known.get(known.device.card_id());
            match card.filter(|card| card.device.id != known.device.id) {
                Some(card) => known.join_card_verdict(own, &card.record.verdict(&self.policy, now)),
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
    pub(super) fn build_details(&self) -> Details {
        Details {
            unsupported_by_device: self.unsupported(),
            history: self.history.iter().cloned().collect(),
        }
    }

    /// True if the details are still the same; does not copy the history.
    pub(super) fn has_told(&self, details: &Details) -> bool {
        // Changes of an earlier agent can be added late, at the beginning.
        let mut history = self.history.iter();
        details.history.first() == history.next()
            && details.history.last() == self.history.iter().next_back()
            && details.unsupported_by_device == self.unsupported()
    }

    /// Returns the unsupported checks of all devices that have any.
    fn unsupported(&self) -> BTreeMap<DeviceId, BTreeMap<Tier, Vec<String>>> {
        let unsupported = |known: &KnownDevice| {
            let tiers = known.record.unsupported_checks();
            let tiers = tiers.filter(|(_, names)| !names.is_empty());
            let tiers: BTreeMap<_, _> = tiers.map(|(tier, names)| (tier, names.to_vec())).collect();
            (known.device.id.clone(), tiers)
        };
        let unsupported = self.known.values().map(unsupported);
        unsupported.filter(|(_, tiers)| !tiers.is_empty()).collect()
    }

    /// Takes in a merged report of a backend.
    fn apply_report(&mut self, mut sighting: BackendState, now: Now) {
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
            observe_in_report(known, &sighting, &self.policy, now);
            known.looked = true;
        }
        self.backends.insert(name.clone(), sighting.backend.clone());
        self.absent_releases.remove(&name);
        self.pictures.insert(name, sighting);
    }

    /// Takes over the facts of every device in the report, and adds devices that an earlier agent
    /// saw and that cannot be seen now.
    fn meet(&mut self, sighting: &BackendState, now: Now) {
        let name = &sighting.backend.name;
        for device in &sighting.devices {
            match self.known.get_mut(&device.id) {
                Some(known) => known.update(device),
                None => self.welcome(sighting, device, now),
            }
        }
        let looked = sighting.backend.phase == Phase::Running && sighting.unwatched.is_none();
        let wanted = |device: &Device| looked || sighting.released.find_release(device).is_some();
        for device in self.waiting.take_wanted(name, wanted) {
            if !self.known.contains_key(&device.id) {
                self.welcome(sighting, &device, now);
            }
        }
    }

    /// Adds a device, with its saved record and the events that waited for it.
    fn welcome(&mut self, sighting: &BackendState, device: &Arc<Device>, now: Now) {
        let Backend { name, driver, .. } = &sighting.backend;
        let instance = driver
            .as_ref()
            .and_then(|driver| driver.instance.as_deref());
        let boot = (self.boot_id.as_str(), instance);
        let met = self
            .waiting
            .take_known(name, device, boot, (&self.policy, now));
        let mut known = met.unwrap_or_else(|| KnownDevice::new(name, Arc::clone(device)));
        let is_of_it = |early: &mut EarlyEvent| early.device == device.id && early.backend == *name;
        for early in self.early.extract_if(.., is_of_it) {
            known.record.happen(early.code, &self.policy, now);
        }
        self.known.insert(device.id.clone(), known);
    }

    /// Detects a reload of the driver, which resets all its devices.
    fn notice_reload(&mut self, sighting: &BackendState, now: Now) {
        let Backend { name, driver, .. } = &sighting.backend;
        let instance = driver.as_ref().and_then(|driver| driver.instance.clone());
        let Some(instance) = instance else { return };
        let before = self.drivers.insert(name.clone(), instance.clone());
        self.dirty |= before.as_ref() != Some(&instance);
        if before.is_none_or(|before| before == instance) {
            return;
        }
        tracing::info!(backend = name, "the driver was loaded anew");
        self.waiting.apply_driver_reload(name, (&self.policy, now));
        for known in self.known.values_mut().filter(|k| k.backend == *name) {
            known.record.record_driver_reload(&self.policy);
        }
    }

    /// Takes in a sample: it shows that the device was looked at and still matches the newest
    /// report.
    fn apply_sample(&mut self, sample: &Sample, now: Now) {
        self.apply_counters(&sample.device, &sample.since_reset);
        let Some(known) = self.known.get_mut(&sample.device) else {
            return;
        };
        let users = sample.telemetry.processes.as_ref().map(Vec::len);
        let before = std::mem::replace(&mut known.users, users);
        // The foreign process has left. Without an earlier process this says nothing: a residue can
        // also be a `preStart` command that failed.
        if before > Some(0) && users == Some(0) {
            known.record.clear_residue();
        }
        // The look that made the report was counted with it.
        if std::mem::take(&mut known.looked) {
            return;
        }
        if let Some(picture) = self.pictures.get(&known.backend) {
            observe_in_report(known, picture, &self.policy, now);
        }
    }

    /// Takes in the counters of a card since its last reset. They count for its partitions, too:
    /// they are reset with the card.
    fn apply_counters(&mut self, card: &DeviceId, counts: &SinceReset) {
        for known in self
            .known
            .values_mut()
            .filter(|k| k.device.card_id() == card)
        {
            let anew = known.record.record_counters(counts, &self.policy);
            if anew && known.device.id == *card {
                tracing::info!(device = %card, "its counters began anew: it was reset since the last look");
            }
        }
    }

    /// Takes in a check-up.
    fn apply_checkup(&mut self, checkup: &Checkup, now: Now) {
        if let Some(known) = self.known.get_mut(&checkup.device) {
            known.apply_reading(&checkup.reading, &self.policy, now);
        }
    }

    /// Takes in an event. An event of a card reaches its partitions through their verdicts; an
    /// event of a partition concerns only that.
    fn apply_event(&mut self, backend: String, event: Event, now: Now) {
        let Event { device, code, .. } = event;
        tracing::info!(%device, %code, "the driver reports an event");
        match self.known.get_mut(&device) {
            Some(known) => known.record.happen(code, &self.policy, now),
            None => {
                let mine = |early: &&EarlyEvent| early.backend == backend;
                // A card that fell off the bus may be in no report any more when its XID arrives.
                if self.early.iter().filter(mine).count() < EARLY {
                    self.early.push(EarlyEvent {
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
fn observe_in_report(
    known: &mut KnownDevice,
    picture: &BackendState,
    policy: &HealthPolicy,
    now: Now,
) {
    match picture.released.find_release(&known.device) {
        // The time may be over already: then the process that looks again is just starting.
        Some(release) if release.own => known.record.release_to_agent(release.until, now),
        Some(release) => known.record.release_to_operator(release.until, now),
        None => {
            let Some(sight) = sight(&known.device, picture) else {
                return;
            };
            match sight.tells() {
                true => known.record.end_release(),
                false => known.record.await_look(now),
            }
            known.record.observe(sight, policy, now);
        }
    }
}

#[cfg(test)]
mod tests;
