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
use rules::Standing;

/// Devices that are offered under [`Mig::Single`].
#[derive(Debug)]
enum Served<'a> {
    Cards,
    Type(PartType<'a>),
}

/// Type of a partition: its profile. All partitions with an unknown profile are of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PartType<'a> {
    Profile(&'a str),
    Unknown,
}

// === impl PartType ===

impl<'a> PartType<'a> {
    /// Returns the type of a partition; `None` for a card.
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

/// Returns the standing of each device under the strategy.
pub(crate) fn divide(strategy: Mig, entries: &[&Entry]) -> Vec<Standing> {
    let served = serve(entries);
    let standing = |entry: &&Entry| {
        let unfit = match strategy {
            Mig::None => none(&entry.device),
            Mig::Single => single(entry, &served),
            Mig::Mixed => None,
        };
        let is_whole = strategy == Mig::None || !is_partitioned(&entry.device);
        unfit.unwrap_or(if is_whole {
            Standing::Offered
        } else {
            Standing::Partitioned
        })
    };
    entries.iter().map(standing).collect()
}

/// Returns the standing of a MIG device under the strategy `none`.
fn none(device: &Device) -> Option<Standing> {
    let reason = "the MIG strategy is none: cards are offered whole";
    PartType::of(device).map(|_| Standing::Whole(reason.to_owned()))
}

/// Returns the standing of a device that the strategy `single` does not offer.
fn single(entry: &Entry, served: &Served<'_>) -> Option<Standing> {
    let device = &entry.device;
    let reason = match (PartType::of(device), served) {
        (None, _) if is_partitioned(device) => return None,
        (None, Served::Cards) => return None,
        (Some(own), Served::Type(shape)) if own == *shape => return None,
        (Some(own), _) if entry.is_gone() => {
            let reason = format!("it is gone, and no {own} is served any more");
            return Some(Standing::Gone(reason));
        }
        (None, Served::Type(shape)) => format!(
            "the MIG strategy is single and migEnabled is not the same on all cards: the MIG \
             devices of the type {shape} are served and whole cards are not; use the strategy mixed"
        ),
        (Some(own), Served::Type(shape)) => format!(
            "the MIG strategy is single and there is more than one type of MIG device: {shape} is \
             served and {own} is not; use the strategy mixed"
        ),
        // Whole cards are offered only if every MIG device is gone, and those are handled above.
        (Some(_), Served::Cards) => return None,
    };
    Some(Standing::Unfit(reason))
}

/// Chooses the devices that `single` offers: MIG devices before whole cards, of them the type with
/// the most devices, then on the most cards, then the first by name.
///
/// Devices that are gone but still listed count only if nothing else is left. An old MIG layout
/// must not block the present one.
fn serve<'a>(entries: &[&'a Entry]) -> Served<'a> {
    let all = || entries.iter().copied();
    let present = commonest(all().filter(|entry| !entry.is_gone()));
    if let Some(shape) = present {
        return Served::Type(shape);
    }
    let whole =
        |entry: &Entry| PartType::of(&entry.device).is_none() && !is_partitioned(&entry.device);
    match commonest(all()) {
        Some(shape) if !all().any(|entry| whole(entry) && !entry.is_gone()) => Served::Type(shape),
        _ => Served::Cards,
    }
}

/// Returns the commonest type of MIG device; `None` if there is no MIG device.
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
