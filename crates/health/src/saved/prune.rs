//! Limits of the saved state, so that the file does not grow without end and stays readable.

use std::{collections::BTreeMap, time::Duration};

use model::DeviceId;

use super::{SavedDevice, SavedHealth, SavedRecurrence};
use crate::{Check, HealthPolicy, Now};

/// Limit of devices that are saved.
const MOST: usize = 256;
/// Time after which an absent device is dropped. A cordoned one stays.
const ABSENCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Drops what is not worth saving: expired counts of recurrences; devices about which nothing is
/// saved; devices that have been absent for 30 days and are not cordoned; and the longest absent of
/// more than 256 devices, cordoned ones last.
pub fn prune_devices(
    devices: &mut BTreeMap<DeviceId, SavedDevice>,
    policy: &HealthPolicy,
    now: Now,
) {
    devices.retain(|_, saved| {
        saved.drop_old_recurrences(policy.health.hold_down_memory, now);
        let away = saved.seen.and_then(|seen| age_of(seen, now));
        let long = saved.cordon.is_none() && away.is_some_and(|away| away > ABSENCE);
        !saved.is_blank() && !long
    });
    keep_at_most(devices, MOST);
}

// === impl SavedHealth ===

impl SavedHealth {
    /// Drops the least valuable half: of the history the older changes; without a history the
    /// devices that were absent longest, cordoned ones last. Returns false if there is nothing to
    /// drop.
    pub fn shrink(&mut self) -> bool {
        let (changes, devices) = (self.history.len(), self.devices.len());
        match changes {
            0 => keep_at_most(&mut self.devices, devices / 2),
            _ => drop(self.history.drain(..changes.div_ceil(2))),
        }
        changes + devices > 0
    }
}

// === impl SavedDevice ===

impl SavedDevice {
    /// Drops the counts of recurrences that would not count any more if the fault began again now.
    /// Counts of faults that last are kept.
    fn drop_old_recurrences(&mut self, memory: Duration, now: Now) {
        let stands = |what: &str| match what {
            SavedRecurrence::RESIDUE => self.residue.is_some(),
            what => self.standing.iter().any(|standing| {
                // Both absences count under one name.
                let gone = standing.check == Check::Gone.saved_name();
                standing.check == what || gone && what == Check::Lost.saved_name()
            }),
        };
        let lately =
            |begun: &SavedRecurrence| age_of(begun.last, now).is_none_or(|ago| ago <= memory);
        self.begun
            .retain(|begun| lately(begun) || stands(&begun.what));
    }
}

/// Reduces the devices to at most `most`.
fn keep_at_most(devices: &mut BTreeMap<DeviceId, SavedDevice>, most: usize) {
    let worth = |saved: &SavedDevice| (saved.cordon.is_some(), saved.seen);
    let mut all: Vec<_> = devices.iter().map(|(id, s)| (worth(s), id)).collect();
    all.sort_unstable();
    let surplus = all.len().saturating_sub(most);
    let surplus: Vec<DeviceId> = all
        .iter()
        .take(surplus)
        .map(|(_, id)| (*id).clone())
        .collect();
    for id in surplus {
        devices.remove(&id);
    }
}

/// Returns the age of a time; `None` if it is in the future, because the clock was set back.
fn age_of(then: jiff::Timestamp, now: Now) -> Option<Duration> {
    Duration::try_from(now.wall.duration_since(then)).ok()
}
