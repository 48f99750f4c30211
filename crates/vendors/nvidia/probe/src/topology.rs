//! How the cards reach each other. It is asked for once per card and pair, and kept.

use std::collections::{BTreeMap, BTreeSet};

use model::{Ancestor, CardRef, Device, DeviceId, Kind, Link, PciAddress};
use nvml::{Level, Remote, Session};

/// What is known of the ways between the cards.
#[derive(Debug, Default)]
pub(super) struct Topology {
    /// By card: the ends of its NVLinks.
    remotes: BTreeMap<DeviceId, Vec<Remote>>,
    /// By pair, the lesser id first. Cards that do not say are kept as `None`.
    ancestors: BTreeMap<(DeviceId, DeviceId), Option<Ancestor>>,
}

// === impl Topology ===

impl Topology {
    /// Forgets what must be asked again.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Writes all links that are known into the devices; cards that are not there any more are
    /// forgotten.
    pub(super) fn apply(&mut self, devices: &mut [Device]) {
        let present: BTreeMap<DeviceId, Option<PciAddress>> = cards(devices).collect();
        self.remotes.retain(|card, _| present.contains_key(card));
        self.ancestors
            .retain(|(a, b), _| present.contains_key(a) && present.contains_key(b));
        for device in devices {
            if matches!(device.kind, Kind::Card { .. }) {
                device.links = present
                    .iter()
                    .filter(|(peer, _)| **peer != device.id)
                    .filter_map(|(peer, address)| self.link(&device.id, peer, *address))
                    .collect();
            }
        }
    }

    /// Asks the driver for what is missing; `false` where nothing was.
    pub(super) fn complete(&mut self, session: &Session, places: &[(DeviceId, CardRef)]) -> bool {
        let new: BTreeSet<&DeviceId> = places
            .iter()
            .map(|(id, _)| id)
            .filter(|id| !self.remotes.contains_key(*id))
            .collect();
        if new.is_empty() {
            return false;
        }
        let handles: Vec<(&DeviceId, nvml::Device<'_>)> = places
            .iter()
            .filter_map(|(id, at)| Some((id, handle(session, *at).ok()?)))
            .collect();
        for (at, (one, card)) in handles.iter().enumerate() {
            if new.contains(one) {
                self.remotes.insert((*one).clone(), remotes(*card));
            }
            for (two, other) in &handles[at + 1..] {
                let pair = ordered(one, two);
                self.ancestors.entry(pair).or_insert_with(|| {
                    let level = card.ancestor(other);
                    level.ok().flatten().map(ancestor)
                });
            }
        }
        true
    }

    /// The link to a peer; `None` where nothing is known of it yet.
    fn link(&self, card: &DeviceId, peer: &DeviceId, at: Option<PciAddress>) -> Option<Link> {
        let ancestor = *self.ancestors.get(&ordered(card, peer))?;
        let lanes = self
            .remotes
            .get(card)?
            .iter()
            .filter(|remote| at.is_some_and(|address| **remote == Remote::Card(address)));
        Some(Link {
            peer: peer.clone(),
            ancestor,
            lanes: u32::try_from(lanes.count()).unwrap_or(u32::MAX),
            switched: self.on_switch(card) && self.on_switch(peer),
        })
    }

    fn on_switch(&self, card: &DeviceId) -> bool {
        let remotes = self.remotes.get(card);
        remotes.is_some_and(|remotes| remotes.contains(&Remote::Switch))
    }
}

/// A handle of a card, by the way it was found.
pub(super) fn handle(session: &Session, at: CardRef) -> Result<nvml::Device<'_>, nvml::Error> {
    match at {
        CardRef::Pci(address) => session.by_pci(address),
        CardRef::Index(index) => session.by_index(index),
    }
}

fn cards(devices: &[Device]) -> impl Iterator<Item = (DeviceId, Option<PciAddress>)> {
    devices
        .iter()
        .filter(|device| matches!(device.kind, Kind::Card { .. }))
        .map(|device| (device.id.clone(), device.pci))
}

/// The ends of all links of a card that are up. A link that does not answer is left out; a card
/// that has no such link, or is gone, is asked for no more of them.
fn remotes(card: nvml::Device<'_>) -> Vec<Remote> {
    let mut ends = Vec::new();
    for link in 0..nvml::Device::LINKS {
        match card.link_up(link) {
            Ok(true) => ends.extend(card.link_remote(link).ok()),
            Ok(false) => {}
            Err(error) if error.is_fatal() => break,
            Err(error) if error.code() == Some(nvml::Code::INVALID_ARGUMENT) => break,
            Err(error) if link == 0 && error.is_not_supported() => break,
            Err(_) => {}
        }
    }
    ends
}

fn ordered(one: &DeviceId, two: &DeviceId) -> (DeviceId, DeviceId) {
    let (lesser, greater) = if one < two { (one, two) } else { (two, one) };
    (lesser.clone(), greater.clone())
}

fn ancestor(level: Level) -> Ancestor {
    match level {
        Level::Internal => Ancestor::Board,
        Level::Single => Ancestor::Switch,
        Level::Multiple => Ancestor::Switches,
        Level::HostBridge => Ancestor::HostBridge,
        Level::Node => Ancestor::Node,
        Level::System => Ancestor::System,
    }
}
