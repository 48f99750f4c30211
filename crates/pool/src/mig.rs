//! The MIG strategies: which cards are offered whole, and which as their MIG devices. A node that
//! does not fit its strategy is served as far as it does; the rest is set aside. The strategies
//! are for NVIDIA's cards; partitions of others are offered beside whole cards.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use config::Mig;
use model::{CauseKind, Device, DeviceId, Entry, Kind};

use crate::{AsideKind, aside::Asides};

/// What a strategy makes of the devices of a node.
#[derive(Debug, Default)]
pub(crate) struct Division<'a> {
    /// What can go into pools.
    pub(crate) offered: Vec<&'a Entry>,
    /// Cards in MIG mode that have MIG devices. Whether those are offered is not known yet.
    pub(crate) partitioned: Vec<&'a Entry>,
}

/// What is served under [`Mig::Single`].
#[derive(Debug)]
enum Served<'a> {
    Cards,
    Type(PartType<'a>),
}

/// The type of a partition: its profile. All of which none is known are of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PartType<'a> {
    Profile(&'a str),
    Unknown,
}

// === impl PartType ===

impl<'a> PartType<'a> {
    /// The type of a device that is a partition.
    fn of(device: &'a Device) -> Option<Self> {
        match &device.kind {
            Kind::Card { .. } => None,
            Kind::Partition { profile, .. } => {
                let profile = profile.as_deref().map(Self::Profile);
                Some(profile.unwrap_or(Self::Unknown))
            }
        }
    }
}

impl fmt::Display for PartType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile(profile) => f.write_str(profile),
            Self::Unknown => f.write_str("(not known)"),
        }
    }
}

/// Divides devices as the strategy says. `parents` are the cards of all partitions that are there,
/// those that are excluded too.
pub(crate) fn divide<'a>(
    strategy: Mig,
    entries: Vec<&'a Entry>,
    parents: &BTreeSet<&DeviceId>,
    asides: &mut Asides,
) -> Division<'a> {
    let served = serve(&entries);
    let mut division = Division::default();
    for entry in entries {
        let device = &entry.device;
        let strategy = if concerns(device) {
            strategy
        } else {
            Mig::Mixed
        };
        let unfit = match strategy {
            Mig::None => none(device),
            Mig::Single => single(entry, &served),
            Mig::Mixed => None,
        };
        if let Some((kind, reason)) = unfit {
            asides.put(device, kind, reason);
        } else if strategy == Mig::None || !is_partitioned(device) {
            division.offered.push(entry);
        } else if parents.contains(&device.id) {
            division.partitioned.push(entry);
        } else {
            let reason =
                "it is in MIG mode and has no MIG devices: create some, or switch MIG mode off";
            asides.put(device, AsideKind::MigEmpty, reason);
        }
    }
    division
}

/// Whether the strategies are about this device.
pub(crate) fn concerns(device: &Device) -> bool {
    device.vendor == "nvidia"
}

fn none(device: &Device) -> Option<(AsideKind, String)> {
    let reason = "the MIG strategy is none: cards are offered whole";
    PartType::of(device).map(|_| (AsideKind::Whole, reason.to_owned()))
}

fn single(entry: &Entry, served: &Served<'_>) -> Option<(AsideKind, String)> {
    let device = &entry.device;
    let reason = match (PartType::of(device), served) {
        (None, _) if is_partitioned(device) => return None,
        (None, Served::Cards) => return None,
        (Some(own), Served::Type(shape)) if own == *shape => return None,
        (Some(own), _) if is_gone(entry) => {
            let reason = format!("it is gone, and no {own} is served any more");
            return Some((AsideKind::Gone, reason));
        }
        (None, Served::Type(shape)) => format!(
            "the MIG strategy is single and migEnabled is not the same on all cards: the MIG \
             devices of the type {shape} are served and whole cards are not; use the strategy mixed"
        ),
        (Some(own), Served::Type(shape)) => format!(
            "the MIG strategy is single and there is more than one type of MIG device: {shape} is \
             served and {own} is not; use the strategy mixed"
        ),
        // Only what is gone leaves the place to whole cards.
        (Some(_), Served::Cards) => return None,
    };
    Some((AsideKind::MigStrategy, reason))
}

/// MIG devices before whole cards; of them the type with the most devices, then on the most cards,
/// then the first by name. Devices that are gone, though still listed, have a say only where
/// nothing else is left: the shapes of yesterday must not stand in the way of today's.
fn serve<'a>(entries: &[&'a Entry]) -> Served<'a> {
    let nvidia = || entries.iter().copied().filter(|e| concerns(&e.device));
    let present = commonest(nvidia().filter(|entry| !is_gone(entry)));
    if let Some(shape) = present {
        return Served::Type(shape);
    }
    let whole =
        |entry: &Entry| PartType::of(&entry.device).is_none() && !is_partitioned(&entry.device);
    match commonest(nvidia()) {
        Some(shape) if !nvidia().any(|entry| whole(entry) && !is_gone(entry)) => {
            Served::Type(shape)
        }
        _ => Served::Cards,
    }
}

fn commonest<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<PartType<'a>> {
    let mut shapes: BTreeMap<PartType<'_>, (usize, BTreeSet<&DeviceId>)> = BTreeMap::new();
    for entry in entries {
        if let Some(profile) = PartType::of(&entry.device) {
            let (count, cards) = shapes.entry(profile).or_default();
            *count += 1;
            cards.insert(entry.device.card());
        }
    }
    shapes
        .into_iter()
        .max_by_key(|(name, (count, cards))| (*count, cards.len(), Reverse(*name)))
        .map(|(name, _)| name)
}

fn is_partitioned(device: &Device) -> bool {
    matches!(device.kind, Kind::Card { partitioned: true })
}

pub(crate) fn is_gone(entry: &Entry) -> bool {
    let mut causes = entry.verdict.causes.iter();
    causes.any(|cause| cause.kind == CauseKind::Gone)
}

#[cfg(test)]
mod tests;
