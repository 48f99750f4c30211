//! MIG strategies: cards that are offered whole, and cards that are offered as their MIG devices.
//! NVIDIA's device plugin exits if a node does not fit its strategy (internal/rm/device_map.go).
//! Here the devices that fit are offered, and the others are not offered, with a reason.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use config::Mig;
use model::{Device, DeviceId, Entry, Kind};
use rules::Eligibility;

/// Devices that are offered under [`Mig::Single`].
#[derive(Debug)]
enum ServedUnderSingle<'a> {
    Cards,
    Type(PartitionType<'a>),
}

/// Type of a partition: its profile. All partitions with an unknown profile are of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PartitionType<'a> {
    Profile(&'a str),
    Unknown,
}

// === impl PartitionType ===

impl<'a> PartitionType<'a> {
    /// Returns the type of a partition; `None` for a card.
    fn of_device(device: &'a Device) -> Option<Self> {
        match &device.kind {
            Kind::Card { .. } => None,
            Kind::Partition { profile, .. } => {
                let profile = profile.as_deref().map(Self::Profile);
                Some(profile.unwrap_or(Self::Unknown))
            }
        }
    }
}

impl fmt::Display for PartitionType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile(profile) => f.write_str(profile),
            Self::Unknown => f.write_str("(not known)"),
        }
    }
}

/// Returns the standing of each device under the strategy.
pub(crate) fn divide_by_strategy(strategy: Mig, entries: &[&Entry]) -> Vec<Eligibility> {
    let served = choose_served(entries);
    let standing = |entry: &&Entry| {
        let unfit = match strategy {
            Mig::None => none(&entry.device),
            Mig::Single => single(entry, &served),
            Mig::Mixed => None,
        };
        let is_whole = strategy == Mig::None || !is_partitioned(&entry.device);
        unfit.unwrap_or(if is_whole {
            Eligibility::Offered
        } else {
            Eligibility::Partitioned
        })
    };
    entries.iter().map(standing).collect()
}

/// Returns the standing of a MIG device under the strategy `none`.
fn none(device: &Device) -> Option<Eligibility> {
    let reason = "the MIG strategy is none: cards are offered whole";
    PartitionType::of_device(device).map(|_| Eligibility::Whole(reason.to_owned()))
}

/// Returns the standing of a device that the strategy `single` does not offer.
fn single(entry: &Entry, served: &ServedUnderSingle<'_>) -> Option<Eligibility> {
    let device = &entry.device;
    let reason = match (PartitionType::of_device(device), served) {
        (None, _) if is_partitioned(device) => return None,
        (None, ServedUnderSingle::Cards) => return None,
        (Some(own), ServedUnderSingle::Type(shape)) if own == *shape => return None,
        (Some(own), _) if entry.is_gone() => {
            let reason = format!("it is gone, and no {own} is served any more");
            return Some(Eligibility::Gone(reason));
        }
        (None, ServedUnderSingle::Type(shape)) => format!(
            "the MIG strategy is single and migEnabled is not the same on all cards: the MIG \
             devices of the type {shape} are served and whole cards are not; use the strategy mixed"
        ),
        (Some(own), ServedUnderSingle::Type(shape)) => format!(
            "the MIG strategy is single and there is more than one type of MIG device: {shape} is \
             served and {own} is not; use the strategy mixed"
        ),
        // Whole cards are offered only if every MIG device is gone, and those are handled above.
        (Some(_), ServedUnderSingle::Cards) => return None,
    };
    Some(Eligibility::Unfit(reason))
}

/// Chooses the devices that `single` offers: MIG devices before whole cards, of them the type with
/// the most devices, then on the most cards, then the first by name.
///
/// Devices that are gone but still listed count only if nothing else is left. An old MIG layout
/// must not block the present one.
fn choose_served<'a>(entries: &[&'a Entry]) -> ServedUnderSingle<'a> {
    let all = || entries.iter().copied();
    let present = commonest(all().filter(|entry| !entry.is_gone()));
    if let Some(shape) = present {
        return ServedUnderSingle::Type(shape);
    }
    let whole = |entry: &Entry| {
        PartitionType::of_device(&entry.device).is_none() && !is_partitioned(&entry.device)
    };
    match commonest(all()) {
        Some(shape) if !all().any(|entry| whole(entry) && !entry.is_gone()) => {
            ServedUnderSingle::Type(shape)
        }
        _ => ServedUnderSingle::Cards,
    }
}

/// Returns the commonest type of MIG device; `None` if there is no MIG device.
fn commonest<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<PartitionType<'a>> {
    let mut shapes: BTreeMap<PartitionType<'_>, (usize, BTreeSet<&DeviceId>)> = BTreeMap::new();
    for entry in entries {
        if let Some(profile) = PartitionType::of_device(&entry.device) {
            let (count, cards) = shapes.entry(profile).or_default();
            *count += 1;
            cards.insert(entry.device.card_id());
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
