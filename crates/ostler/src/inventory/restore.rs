//! What an earlier agent knew of devices that this one has not met yet.

use std::collections::BTreeMap;

use health::{Continuity, History, Now, Policy, Record, Saved, SavedFile};
use model::{Device, DeviceId};

use super::{Inventory, State, known::Known};

/// The most devices that are waited for.
const MOST: usize = 256;

/// What was kept of devices that are not there.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// What an earlier agent kept, as it was read.
    file: SavedFile,
    /// What this one keeps.
    gone: BTreeMap<DeviceId, Saved>,
    /// Devices that were not healthy, of this boot.
    facts: Vec<Device>,
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
    /// The device, if it was known before.
    pub(super) fn take(
        &mut self,
        backend: &str,
        device: &Device,
        (boot_id, instance): (&str, Option<&str>),
        at: (&Policy, Now),
    ) -> Option<Known> {
        let kept = self.gone.remove(&device.id).map(|saved| (saved, SAME));
        let (saved, continuity) = kept.or_else(|| {
            let saved = self.file.devices.remove(&device.id)?;
            Some((saved, self.file.continuity(boot_id, backend, instance)))
        })?;
        let device = device.clone();
        Some(Known::restored(backend, device, saved, continuity, at))
    }

    /// The devices of a backend that were not healthy, have not been met, and are `wanted` now.
    pub(super) fn absent(
        &mut self,
        backend: &str,
        wanted: impl Fn(&Device) -> bool,
    ) -> Vec<Device> {
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
    pub(super) fn put(&mut self, known: &Known, now: Now) {
        if self.gone.len() < MOST {
            self.gone.insert(known.device.id.clone(), save(known, now));
        }
    }

    /// A backend's driver was loaded anew since its devices went.
    pub(super) fn reloaded(&mut self, backend: &str, (policy, now): (&Policy, Now)) {
        let gone = self.gone.values_mut();
        for saved in gone.filter(|saved| saved.backend == backend) {
            let mut record = Record::restore(std::mem::take(saved), SAME, policy, now);
            record.reloaded(policy);
            *saved = record.save(now);
            backend.clone_into(&mut saved.backend);
        }
    }

    /// Everything that waits, as of this boot and these drivers.
    fn devices(
        &self,
        boot_id: &str,
        drivers: &BTreeMap<String, String>,
        (policy, now): (&Policy, Now),
    ) -> BTreeMap<DeviceId, Saved> {
        let renew = |(id, saved): (&DeviceId, &Saved)| {
            let backend = &saved.backend;
            let instance = drivers.get(backend).map(String::as_str);
            let continuity = self.file.continuity(boot_id, backend, instance);
            let record = Record::restore(saved.clone(), continuity, policy, now);
            let mut renewed = record.save(now);
            renewed.backend.clone_from(backend);
            (id.clone(), renewed)
        };
        let mut devices: BTreeMap<_, _> = self.file.devices.iter().map(renew).collect();
        devices.extend(self.gone.clone());
        devices
    }
}

// === impl Inventory ===

impl Inventory {
    /// Whether the node was not started anew since a file was written.
    pub(super) fn is_of_this_boot(&self, file: &SavedFile) -> bool {
        file.boot_id == self.boot_id
    }

    /// Takes over what an earlier agent left.
    pub(super) fn restore(&mut self, state: State) {
        let file = state.health;
        self.history = History::from_entries(file.history.clone());
        let same_boot = self.is_of_this_boot(&file);
        self.drivers.clear();
        if same_boot {
            self.drivers.clone_from(&file.drivers);
        }
        self.dirty |= !same_boot;
        let facts = state.facts.into_values();
        let facts = facts.filter_map(|facts| serde_json::from_value(facts).ok());
        self.waiting = Waiting {
            file,
            gone: BTreeMap::new(),
            facts: facts.filter(|_| same_boot).collect(),
            has_file: true,
        };
    }

    /// What is to outlive the agent, if it changed since this was asked for last.
    pub(super) fn checkpoint(&mut self, now: Now) -> Option<State> {
        if !std::mem::take(&mut self.dirty) {
            return None;
        }
        let at = (&self.policy, now);
        let mut devices = self.waiting.devices(&self.boot_id, &self.drivers, at);
        for (id, known) in &self.known {
            let saved = save(known, now);
            if !is_blank(&saved) {
                devices.insert(id.clone(), saved);
            }
        }
        let mut drivers = self.waiting.file.drivers.clone();
        drivers.extend(self.drivers.clone());
        let released = self.pictures.values().flat_map(|picture| {
            let all = picture.released.all.iter();
            let all = all.map(|release| ("all".to_owned(), release.until));
            let cards = picture.released.cards.iter();
            all.chain(cards.map(|(card, release)| (card.to_string(), release.until)))
        });
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
        let state = State {
            facts: facts.collect(),
            released: released.filter(|(_, until)| now.wall < *until).collect(),
            health: SavedFile {
                written: Some(now.wall),
                boot_id: self.boot_id.clone(),
                drivers,
                devices,
                history: self.history.iter().cloned().collect(),
                ..SavedFile::default()
            },
        };
        // Without a file, nothing is gained by one that says nothing.
        let worth = self.waiting.has_file || !state.is_empty();
        self.waiting.has_file |= worth;
        worth.then_some(state)
    }
}

/// Whether nothing is held of a device.
pub(super) fn is_blank(saved: &Saved) -> bool {
    let mut blank = Saved::default();
    blank.backend.clone_from(&saved.backend);
    *saved == blank
}

fn save(known: &Known, now: Now) -> Saved {
    let mut saved = known.record.save(now);
    saved.backend.clone_from(&known.backend);
    saved
}
