//! Notes for the operator on the handover of a resource: parts that containers do not get, with the
//! reasons.

use model::{Device, NodeRole, names};
use pool::Offer;
use rules::GrantNote;

use crate::{DeviceRequest, make_edits};

/// Returns notes on the handover of `offer`; none if everything is handed over as the config
/// demands.
pub fn handover_notes(offer: &Offer) -> Vec<GrantNote> {
    let entries = offer
        .units
        .iter()
        .filter_map(|unit| offer.entry_of_unit(unit));
    let mut devices: Vec<&Device> = entries.map(|entry| &*entry.device).collect();
    // Units are sorted by id, so that those of one device are neighbours.
    devices.dedup_by_key(|device| &device.id);
    let grant = make_edits(&DeviceRequest::for_offer(offer, &devices, &offer.lists));
    let mut notes = grant.notes;
    if !grant.edits.hooks.is_empty() || !grant.edits.groups.is_empty() {
        notes.push(GrantNote::new_problem(
            "hooks and groups are not handed over: the kubelet has no place for them, a CDI spec has",
        ));
    }
    notes.extend(of_nodes(offer, &devices, offer.lists.only_cdi()));
    notes
}

/// Notes cards whose device nodes cannot be handed over, and a pool with `deviceNodes: false`.
fn of_nodes(offer: &Offer, devices: &[&Device], only_cdi: bool) -> Vec<GrantNote> {
    // An integrated card has no device node of its own.
    let mut devices = devices
        .iter()
        .filter(|device| {
            let vendor = offer.vendors.find_rules(&device.vendor).vendor();
            let by_cdi = only_cdi && !vendor.cdi_kinds.is_empty();
            !by_cdi && device.bool_attribute(&names::INTEGRATED) != Some(true)
        })
        .peekable();
    if devices.peek().is_some() && !offer.pool.handover.device_nodes {
        return vec![GrantNote::new_info(
            "device nodes are left to the container runtime's hooks, as the config asks: a \
             container can lose its devices when systemd reloads",
        )];
    }
    let own = |device: &Device| {
        device
            .nodes
            .iter()
            .any(|node| node.role != NodeRole::Control)
    };
    devices
        .filter(|device| !own(device))
        .map(|device| {
            GrantNote::new_problem(format!(
                "the device node of {} is not visible to the agent, so it is not handed over; let \
                 the agent see the host's /dev",
                device.id
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests;
