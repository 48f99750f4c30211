//! What is not kept any longer, so that a file does not grow for ever and can always be read again.

use std::{collections::BTreeMap, time::Duration};

use model::DeviceId;

use super::{Saved, SavedBegun, SavedFile};
use crate::{Check, Now, Policy};

/// The most devices that are kept.
const MOST: usize = 256;
/// How long a device is kept that nobody knows to be there. What an operator said of it stays.
const ABSENCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Drops what is not worth keeping: how often trouble began, when that is forgotten; devices of
/// which nothing is held; devices that have been away for 30 days and are not cordoned; and the
/// oldest of more than 256, those that are cordoned last.
pub fn prune(devices: &mut BTreeMap<DeviceId, Saved>, policy: &Policy, now: Now) {
    devices.retain(|_, saved| {
        saved.forget(policy.health.hold_down_memory, now);
        let away = saved.seen.and_then(|seen| since(seen, now));
        let long = saved.cordon.is_none() && away.is_some_and(|away| away > ABSENCE);
        !saved.is_blank() && !long
    });
    leave(devices, MOST);
}

// === impl SavedFile ===

impl SavedFile {
    /// Drops half of what is least worth: the older changes, then the devices that were not seen
    /// for longest, those that are cordoned last. `false` if there is nothing to drop.
    pub fn shrink(&mut self) -> bool {
        let (changes, devices) = (self.history.len(), self.devices.len());
        match changes {
            0 => leave(&mut self.devices, devices / 2),
            _ => drop(self.history.drain(..changes.div_ceil(2))),
        }
        changes + devices > 0
    }
}

// === impl Saved ===

impl Saved {
    /// Drops how often trouble began that would not count any more if it began again now.
    fn forget(&mut self, memory: Duration, now: Now) {
        let stands = |what: &str| match what {
            SavedBegun::RESIDUE => self.residue.is_some(),
            what => self.standing.iter().any(|standing| {
                let gone = standing.check == Check::Gone.name();
                standing.check == what || gone && what == Check::Lost.name()
            }),
        };
        let lately = |begun: &SavedBegun| since(begun.last, now).is_none_or(|ago| ago <= memory);
        self.begun
            .retain(|begun| lately(begun) || stands(&begun.what));
    }
}

/// Leaves so many of the devices.
fn leave(devices: &mut BTreeMap<DeviceId, Saved>, most: usize) {
    let worth = |saved: &Saved| (saved.cordon.is_some(), saved.seen);
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

/// How long ago something was; nothing if it is to come, by a clock that was set.
fn since(then: jiff::Timestamp, now: Now) -> Option<Duration> {
    Duration::try_from(now.wall.duration_since(then)).ok()
}
