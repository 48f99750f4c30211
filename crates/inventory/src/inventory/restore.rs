//! Records of devices that are not present: from an earlier agent's state file, or from this agent.

use std::{collections::BTreeMap, sync::Arc};

use health::{
    Continuity, DeviceRecord, HealthPolicy, History, Now, SavedDevice, SavedHealth, prune_devices,
};
use jiff::Timestamp;
use model::{Device, DeviceId};
use probe::{BackendState, ReleaseStatus};

use super::{Inventory, old_facts};
use crate::{SavedState, known::KnownDevice};

/// Name of all cards of a backend in the releases of the state file.
pub(crate) const ALL: &str = "all";

/// Records of devices that are not present.
#[derive(Debug, Default)]
pub(super) struct AbsentDevices {
    /// Content of the state file as read, less the devices that were taken over.
    file: SavedHealth,
    /// Records of devices that left while this agent ran.
    gone: BTreeMap<DeviceId, SavedDevice>,
    /// Facts of devices that were not healthy, if they were saved in this boot.
    facts: Vec<Arc<Device>>,
    /// True if the state file exists.
    has_file: bool,
}

/// Continuity without a reboot or a reload of the driver.
const SAME: Continuity = Continuity {
    same_boot: true,
    same_driver: true,
};

// === impl AbsentDevices ===

impl AbsentDevices {
    /// Removes and restores the record of a device, if the same backend had it.
    pub(super) fn take_known(
        &mut self,
        backend: &str,
        device: &Arc<Device>,
        (boot_id, instance): (&str, Option<&str>),
        at: (&HealthPolicy, Now),
    ) -> Option<KnownDevice> {
        let kept = remove_own(&mut self.gone, &device.id, backend).map(|saved| (saved, SAME));
        let (saved, continuity) = kept.or_else(|| {
            let saved = remove_own(&mut self.file.devices, &device.id, backend)?;
            Some((saved, self.file.continuity(boot_id, backend, instance)))
        })?;
        let device = Arc::clone(device);
        Some(KnownDevice::restored(
            backend, device, saved, continuity, at,
        ))
    }

    /// Removes and returns the facts of a backend's unhealthy devices that were not met and are
    /// `wanted` now.
    pub(super) fn take_wanted(
        &mut self,
        backend: &str,
        wanted: impl Fn(&Device) -> bool,
    ) -> Vec<Arc<Device>> {
        let saved = &self.file.devices;
        let is_here = |device: &Device| {
            let of_backend = saved.get(&device.id).is_some_and(|s| s.backend == backend);
            of_backend && wanted(device)
        };
        self.facts
            .extract_if(.., |device| is_here(device))
            .collect()
    }

    /// Keeps the record of a device that leaves the inventory.
    pub(super) fn keep_record(&mut self, known: &KnownDevice, policy: &HealthPolicy, now: Now) {
        self.gone
            .insert(known.device.id.clone(), save_known(known, now));
        prune_devices(&mut self.gone, policy, now);
    }

    /// Applies a reload of a backend's driver to the records of devices that left.
    pub(super) fn apply_driver_reload(
        &mut self,
        backend: &str,
        (policy, now): (&HealthPolicy, Now),
    ) {
        let gone = self.gone.values_mut();
        for saved in gone.filter(|saved| saved.backend == backend) {
            update_record(saved, SAME, (policy, now), |record| {
                record.record_driver_reload(policy)
            });
        }
    }

    /// Returns all records, updated to this boot and these driver loads.
    fn all_records(
        &self,
        boot_id: &str,
        drivers: &BTreeMap<String, String>,
        at: (&HealthPolicy, Now),
    ) -> BTreeMap<DeviceId, SavedDevice> {
        let mut devices = self.file.devices.clone();
        for saved in devices.values_mut() {
            let backend = &saved.backend;
            let instance = drivers.get(backend).map(String::as_str);
            let continuity = self.file.continuity(boot_id, backend, instance);
            update_record(saved, continuity, at, |_| {});
        }
        devices.extend(self.gone.clone());
        devices
    }
}

// === impl Inventory ===

impl Inventory {
    /// True if the file was written in this boot.
    pub(crate) fn is_of_this_boot(&self, file: &SavedHealth) -> bool {
        file.boot_id == self.boot_id
    }

    /// True if an operator released this card, or all cards of the backend, since the agent
    /// started.
    pub(crate) fn has_released(&self, backend: &str, name: &str) -> bool {
        let mut names = [name, ALL].into_iter();
        names.any(|name| {
            let name = (backend.to_owned(), name.to_owned());
            self.released.contains(&name)
        })
    }

    /// Marks the whole state for saving to another file.
    pub(crate) fn move_out(&mut self) {
        self.waiting.has_file = false;
        self.dirty = true;
    }

    /// Takes over the state of an earlier agent. What this agent knows already is newer and takes
    /// precedence.
    pub(crate) fn restore_state(&mut self, state: SavedState, now: Now) {
        let SavedState {
            health,
            facts,
            releases,
            ..
        } = state;
        let mut file = health;
        let same_boot = self.is_of_this_boot(&file);
        self.dirty |= !same_boot || !self.known.is_empty();
        let history = file.history.drain(..);
        self.history = History::from_entries(history.chain(self.history.iter().cloned()));
        if same_boot {
            let absent = releases.into_iter();
            let absent = absent.filter(|(backend, _)| !self.pictures.contains_key(backend));
            self.absent_releases.extend(absent);
            // The driver loads that this agent has seen are newer than those of the file.
            let mut drivers = file.drivers.clone();
            drivers.append(&mut self.drivers);
            self.drivers = drivers;
        }
        // An uncordon before the file could be read must not be undone by the file.
        file.devices.retain(|id, _| !self.vouched.contains(id));
        for saved in file.devices.values_mut() {
            // Records of older agents have no time; without one they would be kept for ever.
            saved.seen.get_or_insert(now.wall);
        }
        let at = (&self.policy, now);
        self.waiting.gone = self.waiting.all_records(&self.boot_id, &self.drivers, at);
        self.merge_file(&mut file, now);
        let facts = facts.into_values();
        let facts =
            facts.filter_map(|facts| serde_json::from_value(old_facts::upgrade_facts(facts)).ok());
        // After a reboot, indices and device nodes may belong to other cards.
        self.waiting.facts = facts.filter(|_| same_boot).collect();
        self.waiting.file = file;
        self.waiting.has_file = true;
        // Devices that only the file knows may be absent in reports that were taken in already.
        for picture in std::mem::take(&mut self.pictures).into_values() {
            self.apply_report(picture, now);
        }
    }

    /// Merges saved records into those of devices that this agent has met.
    fn merge_file(&mut self, file: &mut SavedHealth, now: Now) {
        let (policy, drivers) = (&self.policy, &self.drivers);
        let mut take = |id: &DeviceId, backend: &str| {
            let saved = remove_own(&mut file.devices, id, backend)?;
            let instance = drivers.get(backend).map(String::as_str);
            Some((saved, file.continuity(&self.boot_id, backend, instance)))
        };
        for (id, known) in &mut self.known {
            if let Some((saved, continuity)) = take(id, &known.backend) {
                known.record.merge_saved(saved, continuity, policy, now);
            }
        }
        for (id, gone) in &mut self.waiting.gone {
            if let Some((saved, continuity)) = take(id, &gone.backend) {
                update_record(gone, SAME, (policy, now), |record| {
                    record.merge_saved(saved, continuity, policy, now);
                });
            }
        }
    }

    /// Returns the state to save if it changed since the last call.
    pub(crate) fn checkpoint(&mut self, now: Now) -> Option<SavedState> {
        if !std::mem::take(&mut self.dirty) {
            return None;
        }
        let at = (&self.policy, now);
        let mut devices = self.waiting.all_records(&self.boot_id, &self.drivers, at);
        devices.extend(
            self.known
                .iter()
                .map(|(id, k)| (id.clone(), save_known(k, now))),
        );
        prune_devices(&mut devices, &self.policy, now);
        let mut drivers = self.waiting.file.drivers.clone();
        drivers.extend(self.drivers.clone());
        let pictures = self.pictures.iter();
        let mut releases: BTreeMap<_, _> = pictures
            .map(|(backend, picture)| (backend.clone(), lasting_releases(picture, now)))
            .collect();
        releases.extend(self.absent_releases.clone());
        for all in releases.values_mut() {
            all.retain(|_, until| now.wall < *until);
        }
        releases.retain(|_, all| !all.is_empty());
        let sick = |known: &&KnownDevice| {
            let told = known.told.as_ref();
            told.is_some_and(|told| told.state != model::State::Healthy)
        };
        let sick = self.known.values().filter(sick).map(|known| &known.device);
        let facts = sick.chain(&self.waiting.facts);
        let facts = facts.filter_map(|device| {
            let facts = serde_json::to_value(device).ok()?;
            Some((device.id.clone(), facts))
        });
        let mut state = SavedState {
            facts: facts.collect(),
            releases,
            health: SavedHealth {
                written: Some(now.wall),
                boot_id: self.boot_id.clone(),
                drivers,
                devices,
                history: self.history.iter().cloned().collect(),
            },
            ..SavedState::default()
        };
        state.drop_orphan_facts();
        // An agent on a healthy node should not create a file for an empty state.
        let worth = self.waiting.has_file || !state.is_empty();
        self.waiting.has_file |= worth;
        worth.then_some(state)
    }
}

/// Returns the releases of a report, by their name in the state file.
pub(super) fn releases(picture: &BackendState) -> impl Iterator<Item = (String, &ReleaseStatus)> {
    let all = picture.released.all.iter();
    let all = all.map(|release| (ALL.to_owned(), release));
    let cards = picture.released.cards.iter();
    all.chain(cards.map(|(card, release)| (card.to_string(), release)))
}

/// Returns the releases of a merged report that have not ended, by their names in the state file.
pub(super) fn lasting_releases(picture: &BackendState, now: Now) -> BTreeMap<String, Timestamp> {
    let releases = releases(picture).map(|(name, release)| (name, release.until));
    releases.filter(|(_, until)| now.wall < *until).collect()
}

/// Updates a saved record to now, and applies `act` to it.
fn update_record(
    saved: &mut SavedDevice,
    continuity: Continuity,
    (policy, now): (&HealthPolicy, Now),
    act: impl FnOnce(&mut DeviceRecord),
) {
    let old = std::mem::take(saved);
    let (backend, seen) = (old.backend.clone(), old.seen);
    let mut record = DeviceRecord::from_saved(old, continuity, policy, now);
    act(&mut record);
    *saved = record.to_saved(now);
    (saved.backend, saved.seen) = (backend, seen);
}

/// Removes and returns a saved record if it is of this backend.
fn remove_own(
    kept: &mut BTreeMap<DeviceId, SavedDevice>,
    device: &DeviceId,
    backend: &str,
) -> Option<SavedDevice> {
    kept.get(device).filter(|saved| saved.backend == backend)?;
    kept.remove(device)
}

/// Returns the saved form of a device, with its backend.
fn save_known(known: &KnownDevice, now: Now) -> SavedDevice {
    let mut saved = known.record.to_saved(now);
    saved.backend.clone_from(&known.backend);
    saved
}
