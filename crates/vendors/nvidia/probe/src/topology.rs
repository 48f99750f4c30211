//! Links between the cards. NVML is asked once for each card and each pair, and the answers are
//! kept.

use std::collections::{BTreeMap, BTreeSet};

use model::{Ancestor, CardRef, Device, DeviceId, Kind, Link, PciAddress};
use nvml::{LinkRemote, NvmlSession, TopologyLevel};

/// Known links between the cards.
#[derive(Debug, Default)]
pub(super) struct KnownLinks {
    /// Remote ends of each card's NVLinks.
    remotes: BTreeMap<DeviceId, Vec<LinkRemote>>,
    /// Common ancestor on the PCI bus of each pair, the lesser id first; `None` if NVML did not
    /// tell.
    ancestors: BTreeMap<(DeviceId, DeviceId), Option<Ancestor>>,
}

// === impl KnownLinks ===

impl KnownLinks {
    /// Drops all answers, so that they are asked for again.
    pub(super) fn forget_links(&mut self) {
        *self = Self::default();
    }

    /// Writes all known links into the devices, and drops the links of cards that are gone.
    pub(super) fn apply_links(&mut self, devices: &mut [Device]) {
        let present: BTreeMap<DeviceId, Option<PciAddress>> = whole_cards(devices).collect();
        self.remotes.retain(|card, _| present.contains_key(card));
        self.ancestors
            .retain(|(a, b), _| present.contains_key(a) && present.contains_key(b));
        for device in devices {
            if matches!(device.kind, Kind::Card { .. }) {
                device.links = present
                    .iter()
                    .filter(|(peer, _)| **peer != device.id)
                    .filter_map(|(peer, address)| self.link_between(&device.id, peer, *address))
                    .collect();
            }
        }
    }

    /// Asks NVML for the links of cards that are new; `false` if there are none.
    pub(super) fn complete_links(
        &mut self,
        session: &NvmlSession,
        places: &[(DeviceId, CardRef)],
    ) -> bool {
        let new: BTreeSet<&DeviceId> = places
            .iter()
            .map(|(id, _)| id)
            .filter(|id| !self.remotes.contains_key(*id))
            .collect();
        if new.is_empty() {
            return false;
        }
        // Each pair is asked for once and the answer kept. NVIDIA's device plugin asks again for
        // all pairs in each GetPreferredAllocation, which took up to 30 s (k8s-device-plugin issue
        // 774).
        let handles: Vec<(&DeviceId, nvml::DeviceHandle<'_>)> = places
            .iter()
            .filter_map(|(id, at)| Some((id, card_handle(session, *at).ok()?)))
            .collect();
        for (at, (one, card)) in handles.iter().enumerate() {
            if new.contains(one) {
                self.remotes.insert((*one).clone(), remotes(*card));
            }
            for (two, other) in &handles[at + 1..] {
                let pair = ordered(one, two);
                self.ancestors.entry(pair).or_insert_with(|| {
                    let level = card.read_common_ancestor(other);
                    level.ok().flatten().map(ancestor_of_level)
                });
            }
        }
        true
    }

    /// Returns the link to a peer; `None` if nothing is known of the pair yet.
    fn link_between(
        &self,
        card: &DeviceId,
        peer: &DeviceId,
        at: Option<PciAddress>,
    ) -> Option<Link> {
        let ancestor = *self.ancestors.get(&ordered(card, peer))?;
        let lanes = self
            .remotes
            .get(card)?
            .iter()
            .filter(|remote| at.is_some_and(|address| **remote == LinkRemote::Card(address)));
        Some(Link {
            peer: peer.clone(),
            ancestor,
            lanes: u32::try_from(lanes.count()).unwrap_or(u32::MAX),
            // The remote end of an NVLink on an NVSwitch is the switch, so lanes to a peer cannot
            // be counted.
            switched: self.on_switch(card) && self.on_switch(peer),
        })
    }

    /// Returns true if an NVLink of the card ends at an NVSwitch.
    fn on_switch(&self, card: &DeviceId) -> bool {
        let remotes = self.remotes.get(card);
        remotes.is_some_and(|remotes| remotes.contains(&LinkRemote::Switch))
    }
}

/// Returns NVML's handle of a card, by the reference under which it was found.
///
/// Handles become stale when a GPU is reset or its MIG layout changes, so none is kept.
pub(super) fn card_handle(
    session: &NvmlSession,
    at: CardRef,
) -> Result<nvml::DeviceHandle<'_>, nvml::Error> {
    match at {
        CardRef::Pci(address) => session.by_pci(address),
        CardRef::Index(index) => session.by_index(index),
    }
}

/// Lists ids and PCI addresses of the whole cards.
fn whole_cards(devices: &[Device]) -> impl Iterator<Item = (DeviceId, Option<PciAddress>)> {
    devices
        .iter()
        .filter(|device| matches!(device.kind, Kind::Card { .. }))
        .map(|device| (device.id.clone(), device.pci))
}

/// Reads the remote ends of the NVLinks that are up. A link that fails to answer is left out. The
/// loop ends at the first link that the card does not have, or if the card is gone.
fn remotes(card: nvml::DeviceHandle<'_>) -> Vec<LinkRemote> {
    let mut ends = Vec::new();
    for link in 0..nvml::DeviceHandle::LINKS {
        match card.link_up(link) {
            Ok(true) => ends.extend(card.link_remote(link).ok()),
            Ok(false) => {}
            Err(error) if error.is_fatal() => break,
            Err(error) if error.return_code() == Some(nvml::ReturnCode::INVALID_ARGUMENT) => break,
            Err(error) if link == 0 && error.is_not_supported() => break,
            Err(_) => {}
        }
    }
    ends
}

/// Returns the pair with the lesser id first.
fn ordered(one: &DeviceId, two: &DeviceId) -> (DeviceId, DeviceId) {
    let (lesser, greater) = if one < two { (one, two) } else { (two, one) };
    (lesser.clone(), greater.clone())
}

fn ancestor_of_level(level: TopologyLevel) -> Ancestor {
    match level {
        TopologyLevel::Internal => Ancestor::Board,
        TopologyLevel::Single => Ancestor::Switch,
        TopologyLevel::Multiple => Ancestor::Switches,
        TopologyLevel::HostBridge => Ancestor::HostBridge,
        TopologyLevel::Node => Ancestor::Node,
        TopologyLevel::System => Ancestor::System,
    }
}
