//! The way from the config and a snapshot to offers. Each device goes through the same gates in
//! the same order, and the first that holds it back says why: its id, `include` and `exclude`, the
//! MIG strategy, the pools, `reserved`, the name, `preStart`, the sharing, other pools of the same
//! name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use config::{Config, Method, Pool, Pools, PreStartMode, Sharing};
use model::{Device, DeviceId, Entry, ResourceName, Snapshot};
use rules::Vendors;

use crate::{
    Aside, AsideKind, Note, NoteKind, Offer, Offers,
    aside::Asides,
    assign::{Taken, assign},
    hold::Hold,
    mig::{self, Division},
    name, select, share,
};

/// What the node offers, and what it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every resource, sorted by name.
    pub offers: Offers,
    /// Every device that is in no offer, sorted by id.
    pub aside: Vec<Aside>,
    /// What else is to be known: of pools in their order, then of resources in theirs.
    pub notes: Vec<Note>,
}

/// Devices of one pool, or of several that agree, under one name.
#[derive(Debug)]
struct Group<'a> {
    /// The first of the pools.
    pool: &'a Pool,
    entries: Vec<&'a Entry>,
}

/// A plan in the making.
#[derive(Debug)]
struct Draft<'a> {
    config: &'a Config,
    vendors: Vendors,
    snapshot: &'a Arc<Snapshot>,
    asides: Asides,
    notes: Vec<Note>,
}

/// What a config makes of a snapshot: its pools, its rules for a vendor's devices, and `health.unknown`. Every device is in one offer or set aside, once.
///
/// Depends on nothing else, not even on the order of the devices. Cost: devices × selectors.
pub fn plan(config: &Config, vendors: Vendors, snapshot: &Arc<Snapshot>) -> Plan {
    let mut draft = Draft {
        config,
        vendors,
        snapshot,
        asides: Asides::default(),
        notes: Vec::new(),
    };
    let admitted = draft.admit();
    let parents: BTreeSet<&DeviceId> = snapshot
        .devices
        .iter()
        .filter(|entry| !mig::is_gone(entry))
        .map(|entry| &entry.device)
        .filter(|device| device.card() != &device.id)
        .map(|device| device.card())
        .collect();
    let Division {
        offered,
        partitioned,
    } = mig::divide(
        config.backends.nvidia.mig,
        admitted,
        &parents,
        &mut draft.asides,
    );
    let taken = assign(&config.pools.pools, offered, &mut draft.asides);
    draft.notice(&taken);
    let groups = draft.group(taken);
    draft.account(&partitioned, &groups);
    let offers = groups
        .into_iter()
        .map(|(resource, group)| draft.offer(resource, group));
    let offers: Offers = offers.collect();
    Plan {
        offers,
        aside: draft.asides.sorted(),
        notes: draft.notes,
    }
}

/// The offers of a snapshot with the default pools.
pub fn offers(vendors: Vendors, snapshot: &Arc<Snapshot>) -> Offers {
    plan(&Config::default(), vendors, snapshot).offers
}

// === impl Draft ===

impl<'a> Draft<'a> {
    /// The devices that may be offered at all, sorted by id.
    fn admit(&mut self) -> Vec<&'a Entry> {
        let mut entries: Vec<&Entry> = self.snapshot.devices.iter().collect();
        entries.sort_by(|a, b| a.device.id.cmp(&b.device.id));
        entries.retain(|entry| match self.refusal(&entry.device) {
            Some((kind, reason)) => {
                self.asides.put(&entry.device, kind, reason);
                false
            }
            None => true,
        });
        entries
    }

    fn refusal(&self, device: &Device) -> Option<(AsideKind, String)> {
        let id = device.id.as_str();
        if id.is_empty() || id.contains("::") {
            let reason = format!("its id `{id}` is empty or has `::` in it, which marks replicas");
            return Some((AsideKind::BadId, reason));
        }
        let Pools {
            include, exclude, ..
        } = &self.config.pools;
        if let Some(reason) = select::first_reason(exclude, device) {
            return Some((AsideKind::Excluded, format!("excluded by {reason}")));
        }
        if !include.is_empty() && select::first(include, device).is_none() {
            let reason = "`include` does not name it".to_owned();
            return Some((AsideKind::Excluded, reason));
        }
        None
    }

    /// Notes the pools that have nothing. For one that takes whatever there is of a kind, that is
    /// no news: the default pools are there on every node.
    fn notice(&mut self, taken: &[Taken<'_>]) {
        let none = taken.iter().filter(|(_, members)| members.is_empty());
        let none = none.filter(|(pool, _)| !select::is_of_kind(&pool.selectors));
        for (pool, _) in none.filter(|_| !self.snapshot.devices.is_empty()) {
            self.notes.push(Note {
                pool: pool.name.clone(),
                resource: None,
                kind: NoteKind::Empty,
                text: format!("pool `{}` takes no device of this node", pool.name),
            });
        }
    }

    /// Puts the devices of the pools under their names. A name belongs to the first pool that
    /// has a device for it, and to later ones that agree with it.
    fn group(&mut self, taken: Vec<Taken<'a>>) -> BTreeMap<ResourceName, Group<'a>> {
        let mut groups: BTreeMap<ResourceName, Group<'a>> = BTreeMap::new();
        for (pool, entries) in taken {
            for entry in entries {
                let fit = Self::fit(pool, &entry.device).and_then(|resource| {
                    let group = groups.entry(resource.clone()).or_insert_with(|| Group {
                        pool,
                        entries: Vec::new(),
                    });
                    agree(group.pool, pool, &resource)?;
                    group.entries.push(entry);
                    Ok(())
                });
                if let Err((kind, reason)) = fit {
                    self.asides.put_of(pool, &entry.device, kind, reason);
                }
            }
        }
        groups
    }

    /// The name of a device in its pool, or why it has none there.
    fn fit(pool: &Pool, device: &Device) -> Result<ResourceName, (AsideKind, String)> {
        if let Some(reason) = select::first_reason(&pool.reserved, device) {
            return Err((AsideKind::Reserved, format!("reserved by {reason}")));
        }
        let resource = name::name(&pool.resource, device).map_err(|why| {
            let reason = format!("{why}; change `resource` of pool `{}`", pool.name);
            (AsideKind::NoName, reason)
        })?;
        if pool.pre_start.mode == PreStartMode::Reset && device.card() != &device.id {
            let reason = format!(
                "a MIG device cannot be reset alone, and its pool `{}` has `preStart: reset`: \
                 give it a pool with another `preStart`",
                pool.name
            );
            return Err((AsideKind::PreStart, reason));
        }
        match share::obstacle(device, &pool.sharing) {
            Some(reason) => Err((AsideKind::Sharing, reason)),
            None => Ok(resource),
        }
    }

    /// Says what stands for each card in MIG mode.
    fn account(&mut self, cards: &[&Entry], groups: &BTreeMap<ResourceName, Group<'_>>) {
        let offered = groups.values().flat_map(|group| &group.entries);
        let there = offered.filter(|entry| !mig::is_gone(entry));
        let parents: Vec<&DeviceId> = there.map(|entry| entry.device.card()).collect();
        for card in cards {
            let device = &card.device;
            let reason = match parents.iter().filter(|id| **id == &device.id).count() {
                0 => "it is in MIG mode, and none of its MIG devices is offered".to_owned(),
                count => format!("it is in MIG mode and offered as its MIG devices: {count}"),
            };
            self.asides.put(device, AsideKind::Partitioned, reason);
        }
    }

    fn offer(&mut self, resource: ResourceName, group: Group<'a>) -> Arc<Offer> {
        let pool = Pool {
            sharing: self.resolve(&resource, &group),
            ..group.pool.clone()
        };
        let held = self.hold(&resource, &pool, &group);
        let unknown = self.config.health.unknown;
        let units = group.entries.iter().flat_map(|entry| {
            let keep = |unit| match &held {
                Some(hold) => hold.keep(&entry.device, unit),
                None => unit,
            };
            let units = share::units(entry, &pool.sharing, unknown).into_iter();
            units.map(keep).collect::<Vec<_>>()
        });
        let mut units: Vec<_> = units.collect();
        units.sort_by(|a, b| a.id.cmp(&b.id));
        Arc::new(Offer {
            resource,
            units,
            snapshot: Arc::clone(self.snapshot),
            pool: Arc::new(pool),
            vendors: self.vendors,
        })
    }

    /// What the resource waits for; it is noted, too.
    fn hold(&mut self, resource: &ResourceName, pool: &Pool, group: &Group<'_>) -> Option<Hold> {
        let hold = Hold::of(resource, pool, &self.config.backends.nvidia, self.snapshot)?;
        let concerned = |entry: &&Entry| hold.concerns(&entry.device);
        if !group.entries.iter().any(concerned) {
            return None;
        }
        self.notes.push(Note {
            pool: pool.name.clone(),
            resource: Some(resource.clone()),
            kind: hold.kind,
            text: format!("{resource} is not handed out: {}", hold.reason),
        });
        Some(hold)
    }

    /// The sharing with a method that is not `auto`.
    fn resolve(&mut self, resource: &ResourceName, group: &Group<'_>) -> Sharing {
        let sharing = group.pool.sharing.clone();
        match (sharing.method, sharing.replicas) {
            (Method::Auto, 0 | 1) => Sharing {
                method: Method::None,
                ..sharing
            },
            (Method::Auto, _) => {
                let (method, text) =
                    share::choose(resource, &group.entries, &sharing, self.snapshot);
                self.notes.push(Note {
                    pool: group.pool.name.clone(),
                    resource: Some(resource.clone()),
                    kind: NoteKind::Sharing,
                    text,
                });
                Sharing { method, ..sharing }
            }
            (Method::None | Method::TimeSlicing | Method::Mps, _) => sharing,
        }
    }
}

/// Whether two pools treat the units of one resource alike.
fn agree(first: &Pool, later: &Pool, resource: &ResourceName) -> Result<(), (AsideKind, String)> {
    let differ = [
        ("sharing", first.sharing != later.sharing),
        ("placement", first.placement != later.placement),
        ("handover", first.handover != later.handover),
        ("preStart", first.pre_start != later.pre_start),
    ];
    let differ: Vec<&str> = differ.iter().filter(|d| d.1).map(|d| d.0).collect();
    if differ.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "pool `{}` and pool `{}` both offer {resource} and differ in {}: give one another \
         `resource`, or both the same settings",
        first.name,
        later.name,
        differ.join(" and ")
    );
    Err((AsideKind::Conflict, reason))
}

#[cfg(test)]
mod tests;
