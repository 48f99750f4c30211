//! What an earlier agent knew of devices that this one has not met yet.

use std::{collections::BTreeMap, sync::Arc};

use health::{Continuity, History, Now, Policy, Record, Saved, SavedFile, prune};
use jiff::Timestamp;
use model::{Device, DeviceId};
use probe::{Release, Sighting};

use super::{Inventory, old_facts};
use crate::{State, known::Known};

/// The name of all cards in the file, where they are released.
pub(crate) const ALL: &str = "all";

/// What was kept of devices that are not there.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// What an earlier agent kept, as it was read.
    file: SavedFile,
    /// What this one keeps.
    gone: BTreeMap<DeviceId, Saved>,
    /// Devices that were not healthy, of this boot.
    facts: Vec<Arc<Device>>,
    /// Whether there is a file.
    has_file: bool,
}

/// Nothing was restarted.
const SAME: Continuity = Continuity {
    same_boot: true,
    same_driver: true,
};

// === impl Waiting ===

impl Waiting {
    /// The device, if it was known before as a device of the same backend.
    pub(super) fn take(
        &mut self,
        backend: &str,
        device: &Arc<Device>,
        (boot_id, instance): (&str, Option<&str>),
        at: (&Policy, Now),
    ) -> Option<Known> {
        let kept = remove_own(&mut self.gone, &device.id, backend).map(|saved| (saved, SAME));
        let (saved, continuity) = kept.or_else(|| {
            let saved = remove_own(&mut self.file.devices, &device.id, backend)?;
            Some((saved, self.file.continuity(boot_id, backend, instance)))
        })?;
        let device = Arc::clone(device);
        Some(Known::restored(backend, device, saved, continuity, at))
    }

    /// The devices of a backend that were not healthy, have not been met, and are `wanted` now.
    pub(super) fn absent(
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

    /// Keeps what is known of a device that is not listed any more.
    pub(super) fn put(&mut self, known: &Known, policy: &Policy, now: Now) {
        self.gone.insert(known.device.id.clone(), save(known, now));
        prune(&mut self.gone, policy, now);
    }

    /// A backend's driver was loaded anew since its devices went.
    pub(super) fn reloaded(&mut self, backend: &str, (policy, now): (&Policy, Now)) {
        let gone = self.gone.values_mut();
        for saved in gone.filter(|saved| saved.backend == backend) {
            renew(saved, SAME, (policy, now), |record| record.reloaded(policy));
        }
    }

    /// Everything that waits, as of this boot and these drivers.
    fn devices(
        &self,
        boot_id: &str,
        drivers: &BTreeMap<String, String>,
        at: (&Policy, Now),
    ) -> BTreeMap<DeviceId, Saved> {
        let mut devices = self.file.devices.clone();
        for saved in devices.values_mut() {
            let backend = &saved.backend;
            let instance = drivers.get(backend).map(String::as_str);
            let continuity = self.file.continuity(boot_id, backend, instance);
            renew(saved, continuity, at, |_| {});
        }
        devices.extend(self.gone.clone());
        devices
    }
}

// === impl Inventory ===

impl Inventory {
    /// Whether the node was not started anew since a file was written.
    pub(crate) fn is_of_this_boot(&self, file: &SavedFile) -> bool {
        file.boot_id == self.boot_id
    }

    /// True if an operator had this of a backend since the agent runs: a card, or all of them.
    pub(crate) fn has_released(&self, backend: &str, name: &str) -> bool {
        let mut names = [name, ALL].into_iter();
        names.any(|name| {
            let name = (backend.to_owned(), name.to_owned());
            self.released.contains(&name)
        })
    }

    /// What is kept is for another file from now on.
    pub(crate) fn move_out(&mut self) {
        self.waiting.has_file = false;
        self.dirty = true;
    }

    /// Takes over what an earlier agent left. What this one knows by now is newer.
    pub(crate) fn restore(&mut self, state: State, now: Now) {
        let State {
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
            let mut drivers = file.drivers.clone();
            drivers.append(&mut self.drivers);
            self.drivers = drivers;
        }
        file.devices.retain(|id, _| !self.vouched.contains(id));
        for saved in file.devices.values_mut() {
            saved.seen.get_or_insert(now.wall);
        }
        let at = (&self.policy, now);
        self.waiting.gone = self.waiting.devices(&self.boot_id, &self.drivers, at);
        self.inherit(&mut file, now);
        let facts = facts.into_values();
        let facts = facts.filter_map(|facts| serde_json::from_value(old_facts::renew(facts)).ok());
        self.waiting.facts = facts.filter(|_| same_boot).collect();
        self.waiting.file = file;
        self.waiting.has_file = true;
        // What was not known may be missing in what was seen.
        for picture in std::mem::take(&mut self.pictures).into_values() {
            self.see(picture, now);
        }
    }

    /// Takes over what a file has of devices that this agent has met.
    fn inherit(&mut self, file: &mut SavedFile, now: Now) {
        let (policy, drivers) = (&self.policy, &self.drivers);
        let mut take = |id: &DeviceId, backend: &str| {
            let saved = remove_own(&mut file.devices, id, backend)?;
            let instance = drivers.get(backend).map(String::as_str);
            Some((saved, file.continuity(&self.boot_id, backend, instance)))
        };
        for (id, known) in &mut self.known {
            if let Some((saved, continuity)) = take(id, &known.backend) {
                known.record.inherit(saved, continuity, policy, now);
            }
        }
        for (id, gone) in &mut self.waiting.gone {
            if let Some((saved, continuity)) = take(id, &gone.backend) {
                renew(gone, SAME, (policy, now), |record| {
                    record.inherit(saved, continuity, policy, now);
                });
            }
        }
    }

    /// What is to outlive the agent, if it changed since this was asked for last.
    pub(crate) fn checkpoint(&mut self, now: Now) -> Option<State> {
        if !std::mem::take(&mut self.dirty) {
            return None;
        }
        let at = (&self.policy, now);
        let mut devices = self.waiting.devices(&self.boot_id, &self.drivers, at);
        devices.extend(self.known.iter().map(|(id, k)| (id.clone(), save(k, now))));
        prune(&mut devices, &self.policy, now);
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
        let sick = |known: &&Known| {
            let told = known.told.as_ref();
            told.is_some_and(|told| told.state != model::State::Healthy)
        };
        let sick = self.known.values().filter(sick).map(|known| &known.device);
        let facts = sick.chain(&self.waiting.facts);
        let facts = facts.filter_map(|device| {
            let facts = serde_json::to_value(device).ok()?;
            Some((device.id.clone(), facts))
        });
        let mut state = State {
            facts: facts.collect(),
            releases,
            health: SavedFile {
                written: Some(now.wall),
                boot_id: self.boot_id.clone(),
                drivers,
                devices,
                history: self.history.iter().cloned().collect(),
            },
            ..State::default()
        };
        state.tidy();
        // Without a file, nothing is gained by one that says nothing.
        let worth = self.waiting.has_file || !state.is_empty();
        self.waiting.has_file |= worth;
        worth.then_some(state)
    }
}

/// What nobody may look at in a picture, by its name in the file.
pub(super) fn releases(picture: &Sighting) -> impl Iterator<Item = (String, &Release)> {
    let all = picture.released.all.iter();
    let all = all.map(|release| (ALL.to_owned(), release));
    let cards = picture.released.cards.iter();
    all.chain(cards.map(|(card, release)| (card.to_string(), release)))
}

/// Returns the releases of a picture that have not ended, by their names in the file.
pub(super) fn lasting_releases(picture: &Sighting, now: Now) -> BTreeMap<String, Timestamp> {
    let releases = releases(picture).map(|(name, release)| (name, release.until));
    releases.filter(|(_, until)| now.wall < *until).collect()
}

/// Has what is kept of a device as of now, with what was done to it since.
fn renew(
    saved: &mut Saved,
    continuity: Continuity,
    (policy, now): (&Policy, Now),
    act: impl FnOnce(&mut Record),
) {
    let old = std::mem::take(saved);
    let (backend, seen) = (old.backend.clone(), old.seen);
    let mut record = Record::restore(old, continuity, policy, now);
    act(&mut record);
    *saved = record.save(now);
    (saved.backend, saved.seen) = (backend, seen);
}

/// Takes out what is kept of a device, if it is of this backend.
fn remove_own(
    kept: &mut BTreeMap<DeviceId, Saved>,
    device: &DeviceId,
    backend: &str,
) -> Option<Saved> {
    kept.get(device).filter(|saved| saved.backend == backend)?;
    kept.remove(device)
}

fn save(known: &Known, now: Now) -> Saved {
    let mut saved = known.record.save(now);
    saved.backend.clone_from(&known.backend);
    saved
}
