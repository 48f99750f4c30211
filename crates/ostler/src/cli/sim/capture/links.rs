//! Capture of the NVLinks of all cards.

use std::collections::BTreeMap;

use nvml::{DeviceHandle, LinkRemote, ReturnCode};
use sim::{BusId, profile::ProfileCard};

use super::Capture;

/// End of links to switches that are no PCI functions of the machine.
const FABRIC: &str = "fabric";
/// End of links that are not up.
const DOWN: &str = "down";

impl Capture<'_> {
    /// Reads the links of all cards. All cards must be known: a link's end is found by PCI address.
    pub(super) fn capture_links(&mut self, cards: &mut [ProfileCard]) {
        let addresses: Vec<_> = cards.iter().map(|card| card.pci).collect();
        for card in cards {
            let device = card.pci.to_string().parse().ok();
            let Some(device) = device.and_then(|pci| self.session.by_pci(pci).ok()) else {
                continue;
            };
            let mut links = BTreeMap::new();
            for end in link_ends(device) {
                let known = match end {
                    None => Some(DOWN.to_owned()),
                    Some((_, Some(at))) if addresses.contains(&at) || self.host.is_switch(at) => {
                        Some(at.to_string())
                    }
                    Some((LinkRemote::Switch, _)) => Some(FABRIC.to_owned()),
                    Some(_) => None,
                };
                match known {
                    Some(end) => *links.entry(end).or_insert(0) += 1,
                    None => self.notes.add_note(&format!(
                        "a link of card {} is left out: it leads to no card and no NVSwitch",
                        card.pci
                    )),
                }
            }
            card.links = Some(links).filter(|links| !links.is_empty());
        }
    }
}

/// Reads the end of each link of a card: its kind and PCI address, or `None` for a link that is down.
/// A link that gives an error is left out. A card that is lost, or without NVLinks, ends the loop.
fn link_ends(device: DeviceHandle<'_>) -> Vec<Option<(LinkRemote, Option<BusId>)>> {
    let mut found = Vec::new();
    for link in 0..DeviceHandle::LINKS {
        match device.link_up(link) {
            Ok(true) => {
                let at = device.link_remote_pci(link).ok().flatten();
                let at = at.and_then(|pci| pci.to_string().parse().ok());
                found.extend(device.link_remote(link).ok().map(|kind| Some((kind, at))));
            }
            Ok(false) => found.push(None),
            // NVML answers INVALID_ARGUMENT for a link number that the card does not have (nvml.h,
            // nvmlDeviceGetNvLinkState).
            Err(error)
                if error.is_fatal()
                    || error.return_code() == Some(ReturnCode::INVALID_ARGUMENT) =>
            {
                break;
            }
            Err(error) if link == 0 && error.is_not_supported() => break,
            Err(_) => {}
        }
    }
    found
}
