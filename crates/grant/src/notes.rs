//! What a person should know of how a resource is handed over: what containers do not get, and why.

use config::IdStrategy;
use model::{AttributeName, Device, NodeRole, names};
use pool::Offer;

use crate::{
    Runtime,
    grant::{VENDOR, channels, extras},
    resolve_lists,
};

/// A sentence on how a resource is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The sentence.
    pub text: String,
    /// Whether containers miss something that the config asks for.
    pub problem: bool,
}

/// Sentences on the handover of `offer`; none where all is as one would expect.
pub fn notes(offer: &Offer) -> Vec<Note> {
    let entries = offer.units.iter().filter_map(|unit| offer.entry(unit));
    let mut devices: Vec<&Device> = entries.map(|entry| &*entry.device).collect();
    devices.dedup_by_key(|device| &device.id);
    let mut notes = Vec::new();
    if devices.iter().any(|device| device.vendor == VENDOR) {
        notes.extend(of_channels(offer));
        notes.extend(of_extras(offer));
        notes.extend(of_indices(offer, &devices));
    }
    notes.extend(of_nodes(offer, &devices));
    notes
}

// === impl Note ===

impl Note {
    /// Something to know.
    fn info(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: false,
        }
    }

    /// Something that containers miss.
    fn missing(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: true,
        }
    }
}

fn of_channels(offer: &Offer) -> impl Iterator<Item = Note> {
    channels(offer).1.into_iter().map(|channel| {
        Note::missing(format!(
            "IMEX channel {channel} is not handed over: \
             /dev/nvidia-caps-imex-channels/channel{channel} is not visible to the agent"
        ))
    })
}

fn of_extras(offer: &Offer) -> impl Iterator<Item = Note> {
    let without = extras(offer).into_iter();
    let without = without.filter(|extra| extra.nodes.is_empty());
    without.map(|extra| {
        let class = extra.class;
        Note::missing(format!(
            "{class} is on, but no device node of it is visible to the agent"
        ))
    })
}

fn of_indices(offer: &Offer, devices: &[&Device]) -> impl Iterator<Item = Note> {
    // What stands for all cards has no index that could be missed.
    let by_index = offer.pool.handover.ids == IdStrategy::Index;
    let without = devices.iter().filter(move |device| {
        by_index
            && device.vendor == VENDOR
            && device.index.is_none()
            && !is(device, &names::COMBINED)
    });
    without.map(|device| {
        let id = &device.id;
        Note::info(format!("{id} has no index and is named by its UUID"))
    })
}

/// Cards whose nodes cannot be handed over, and a pool that does not want to.
fn of_nodes(offer: &Offer, devices: &[&Device]) -> Vec<Note> {
    let handover = &offer.pool.handover;
    let only_cdi = resolve_lists(handover, Runtime::default()).only_cdi();
    // An integrated card has no nodes to hand over.
    let mut devices = devices
        .iter()
        .filter(|device| {
            let by_cdi = only_cdi && device.vendor == VENDOR;
            !by_cdi && !is(device, &names::INTEGRATED)
        })
        .peekable();
    if devices.peek().is_some() && !handover.device_nodes {
        return vec![Note::info(
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
            Note::missing(format!(
                "the device node of {} is not visible to the agent, so it is not handed over; let \
                 the agent see the host's /dev",
                device.id
            ))
        })
        .collect()
}

fn is(device: &Device, flag: &AttributeName) -> bool {
    device.flag(flag) == Some(true)
}

#[cfg(test)]
mod tests;
