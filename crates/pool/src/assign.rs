//! Assignment of devices to pools: a device belongs to the first pool that selects it and has room.

use config::Pool;
use model::{Device, Entry};

use crate::{NotOfferedKind, aside::NotOfferedList, select};

/// A pool with the devices that it takes.
pub(crate) type PoolMembers<'a> = (&'a Pool, Vec<&'a Entry>);

/// Divides devices among the pools. A device that no pool takes is not offered.
pub(crate) fn assign<'a>(
    pools: &'a [Pool],
    mut entries: Vec<&'a Entry>,
    asides: &mut NotOfferedList,
) -> Vec<PoolMembers<'a>> {
    let taken = pools.iter().map(|pool| {
        let (members, left) = take_members(pool, std::mem::take(&mut entries));
        entries = left;
        (pool, members)
    });
    let taken = taken.collect();
    for entry in entries {
        refuse_device(pools, &entry.device, asides);
    }
    taken
}

/// Returns the devices that a pool takes, and the devices that it leaves.
fn take_members<'a>(pool: &Pool, entries: Vec<&'a Entry>) -> (Vec<&'a Entry>, Vec<&'a Entry>) {
    let (mut members, mut left): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|entry| wants(pool, &entry.device));
    let limit = pool.limit.and_then(|limit| usize::try_from(limit).ok());
    if let Some(limit) = limit.filter(|limit| *limit < members.len()) {
        // A limit takes the lowest indices first. A device without an index comes last.
        members.sort_by_key(|entry| (entry.device.index.is_none(), entry.device.index));
        left.extend(members.split_off(limit));
    }
    (members, left)
}

fn wants(pool: &Pool, device: &Device) -> bool {
    pool.selectors.is_empty() || select::find_selector(&pool.selectors, device).is_some()
}

fn refuse_device(pools: &[Pool], device: &Device, asides: &mut NotOfferedList) {
    let full = pools.iter().find(|pool| wants(pool, device));
    match full.and_then(|pool| Some((pool, pool.limit?))) {
        Some((pool, limit)) => {
            let reason = format!(
                "pool `{}` takes no more than its limit, {limit}, and no later pool takes it",
                pool.name
            );
            asides.put_of(pool, device, NotOfferedKind::NoPool, reason);
        }
        None => {
            let reason = "no selector of a pool matches it: add one, or exclude the device";
            asides.add_device(device, NotOfferedKind::NoPool, reason);
        }
    }
}

#[cfg(test)]
mod tests;
