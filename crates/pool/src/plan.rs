//! Plan of a node: from the config and a snapshot to offers.
//!
//! Each device passes the same checks in the same order: its id, `include` and `exclude`, its
//! vendor's strategy for partitions, the pools, `reserved`, the resource name, `preStart`, the
//! sharing, other pools of the same name. The first check that fails gives the reason why the
//! device is not offered.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::repeat,
    sync::Arc,
};

use config::{Config, Method, Pool, Pools, PreStartMode, Sharing};
use model::{Device, DeviceId, Entry, ResourceName, Snapshot};
use rules::{Missing, Runtime, Standing, Vendor, Vendors, resolve_lists};

use crate::{
    Aside, AsideKind, Note, NoteKind, Offer, Offers,
    aside::Asides,
    assign::{Taken, assign},
    hold, name, select, share,
};

/// Offers of a node, and the devices that are not offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every resource, sorted by name.
    pub offers: Offers,
    /// Every device that is in no offer, sorted by id.
    pub aside: Vec<Aside>,
    /// Notes for the operator: on pools in the order of the config, then on resources sorted by
    /// name.
    pub notes: Vec<Note>,
}

/// Devices under one resource name: of one pool, or of several pools with equal settings.
#[derive(Debug)]
struct Group<'a> {
    /// First of the pools. Its settings are those of the resource.
    pool: &'a Pool,
    entries: Vec<&'a Entry>,
}

/// Plan in the making.
#[derive(Debug)]
struct Draft<'a> {
    config: &'a Config,
    vendors: Vendors,
    snapshot: &'a Arc<Snapshot>,
    asides: Asides,
    notes: Vec<Note>,
}

/// Plans the offers of a node by the config's pools, its settings for each vendor, and
/// `health.unknown`. Every device is either in one offer or not offered with a reason.
///
/// The plan depends on nothing else, and not on the order of the devices. Costs devices ×
/// selectors.
pub fn plan(config: &Config, vendors: Vendors, snapshot: &Arc<Snapshot>) -> Plan {
    let mut draft = Draft {
        config,
        vendors,
        snapshot,
        asides: Asides::default(),
        notes: Vec::new(),
    };
    let admitted = draft.admit();
    let (offered, partitioned) = draft.divide(admitted);
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

/// Returns the offers of a snapshot with the default pools.
pub fn offers(vendors: Vendors, snapshot: &Arc<Snapshot>) -> Offers {
    plan(&Config::default(), vendors, snapshot).offers
}

// === impl Group ===

impl<'a> Group<'a> {
    /// Lists the vendors of the devices.
    fn vendors(&self) -> BTreeSet<&'a str> {
        let entries = self.entries.iter();
        entries.map(|entry| &*entry.device.vendor).collect()
    }
}

// === impl Draft ===

impl<'a> Draft<'a> {
    /// Returns the devices that may be offered at all, sorted by id.
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

    /// Divides devices by the rules of their vendors. Returns the devices that pools may take, and
    /// the cards that are offered as their partitions. All others are not offered.
    fn divide(&mut self, entries: Vec<&'a Entry>) -> (Vec<&'a Entry>, Vec<&'a Entry>) {
        let parents = self.parents();
        let mut by_vendor: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            by_vendor
                .entry(&entry.device.vendor)
                .or_default()
                .push(entry);
        }
        let (mut offered, mut partitioned) = (Vec::new(), Vec::new());
        for (vendor, entries) in by_vendor {
            let rules = self.vendors.of(vendor);
            let standings = rules.divide(&entries, &self.config.backends);
            // A device without an answer from its vendor is offered: an error in a vendor's rules
            // must not take a device away.
            let standings = standings.into_iter().chain(repeat(Standing::Offered));
            for (entry, standing) in entries.into_iter().zip(standings) {
                let (kind, reason) = match standing {
                    Standing::Offered => {
                        offered.push(entry);
                        continue;
                    }
                    Standing::Partitioned if parents.contains(&entry.device.id) => {
                        partitioned.push(entry);
                        continue;
                    }
                    Standing::Partitioned => (AsideKind::NoPartitions, empty(rules.vendor())),
                    Standing::Whole(reason) => (AsideKind::Whole, reason),
                    Standing::Unfit(reason) => (AsideKind::Strategy, reason),
                    Standing::Gone(reason) => (AsideKind::Gone, reason),
                };
                self.asides.put(&entry.device, kind, reason);
            }
        }
        offered.sort_by(|a, b| a.device.id.cmp(&b.device.id));
        partitioned.sort_by(|a, b| a.device.id.cmp(&b.device.id));
        (offered, partitioned)
    }

    /// Returns the cards of all partitions that the driver lists, excluded partitions among them.
    fn parents(&self) -> BTreeSet<&'a DeviceId> {
        let there = self
            .snapshot
            .devices
            .iter()
            .filter(|entry| !entry.is_gone());
        let partitions = there.filter(|entry| entry.device.card() != &entry.device.id);
        partitions.map(|entry| entry.device.card()).collect()
    }

    /// Returns the vendor's words for a device.
    fn words(&self, device: &Device) -> &'static Vendor {
        self.vendors.of(&device.vendor).vendor()
    }

    fn refusal(&self, device: &Device) -> Option<(AsideKind, String)> {
        let id = device.id.as_str();
        // `::` separates the id from the number of a replica, here and in NVIDIA's plugin
        // (`internal/rm/devices.go, AnnotatedID`). An id with `::` could be equal to another
        // device's replica.
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

    /// Notes pools without devices. A pool that takes all devices of a kind gets no note: the
    /// default pools exist on every node.
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

    /// Groups the devices of the pools by resource name. A name belongs to the first pool with a
    /// device for it, and to later pools with the same settings.
    fn group(&mut self, taken: Vec<Taken<'a>>) -> BTreeMap<ResourceName, Group<'a>> {
        let mut groups: BTreeMap<ResourceName, Group<'a>> = BTreeMap::new();
        for (pool, entries) in taken {
            for entry in entries {
                let fit = self.fit(pool, &entry.device).and_then(|resource| {
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

    /// Returns the resource name of a device in its pool, or the reason why it has none there.
    fn fit(&self, pool: &Pool, device: &Device) -> Result<ResourceName, (AsideKind, String)> {
        if let Some(reason) = select::first_reason(&pool.reserved, device) {
            return Err((AsideKind::Reserved, format!("reserved by {reason}")));
        }
        let resource = name::name(&pool.resource, device).map_err(|why| {
            let reason = format!("{why}; change `resource` of pool `{}`", pool.name);
            (AsideKind::NoName, reason)
        })?;
        // A card is reset as a whole: a reset for one partition would end the work on the others.
        if pool.pre_start.mode == PreStartMode::Reset && device.card() != &device.id {
            let reason = format!(
                "a {} cannot be reset alone, and its pool `{}` has `preStart: reset`: give it a pool \
                 with another `preStart`",
                self.words(device).partition,
                pool.name
            );
            return Err((AsideKind::PreStart, reason));
        }
        match share::obstacle(device, &pool.sharing, self.vendors) {
            Some(reason) => Err((AsideKind::Sharing, reason)),
            None => Ok(resource),
        }
    }

    /// Notes for each partitioned card how many of its partitions are offered.
    fn account(&mut self, cards: &[&Entry], groups: &BTreeMap<ResourceName, Group<'_>>) {
        let offered = groups.values().flat_map(|group| &group.entries);
        let there = offered.filter(|entry| !entry.is_gone());
        let parents: Vec<&DeviceId> = there.map(|entry| entry.device.card()).collect();
        for card in cards {
            let device = &card.device;
            let Vendor {
                partition,
                partition_mode: mode,
                ..
            } = self.words(device);
            let reason = match parents.iter().filter(|id| **id == &device.id).count() {
                0 => format!("it is in {mode}, and none of its {partition}s is offered"),
                count => format!("it is in {mode} and offered as its {partition}s: {count}"),
            };
            self.asides.put(device, AsideKind::Partitioned, reason);
        }
    }

    fn offer(&mut self, resource: ResourceName, group: Group<'a>) -> Arc<Offer> {
        let pool = Pool {
            sharing: self.resolve(&resource, &group),
            ..group.pool.clone()
        };
        let missing = self.missing(&resource, &pool, &group);
        let unknown = self.config.health.unknown;
        let units = group.entries.iter().flat_map(|entry| {
            let keep = |unit| match missing.get(&*entry.device.vendor) {
                Some(missing) => hold::keep(missing, unit),
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
            // The CDI stage decides `auto` later. Specs, runtime and kubelet are not known here.
            lists: resolve_lists(&pool.handover, Runtime::default()),
            pool: Arc::new(pool),
            vendors: self.vendors,
        })
    }

    /// Returns what is missing for the resource, by vendor, and notes it.
    fn missing(
        &mut self,
        resource: &ResourceName,
        pool: &Pool,
        group: &Group<'a>,
    ) -> BTreeMap<&'a str, Missing> {
        let mut all = BTreeMap::new();
        for vendor in group.vendors() {
            let rules = self.vendors.of(vendor);
            let missing = hold::missing(rules, Some(resource), pool, self.config, self.snapshot);
            let Some(missing) = missing else { continue };
            self.notes.push(Note {
                pool: pool.name.clone(),
                resource: Some(resource.clone()),
                kind: NoteKind::Waiting,
                text: format!("{resource} is not handed out: {}", missing.reason),
            });
            all.insert(vendor, missing);
        }
        all
    }

    /// Returns the reason why `auto` does not choose MPS for a resource, if there is one.
    fn auto_obstacle(&self, resource: &ResourceName, group: &Group<'a>) -> Option<String> {
        let obstacle = share::auto_obstacle(&group.entries, &group.pool.sharing, self.vendors);
        let daemon = || {
            group.vendors().into_iter().find_map(|vendor| {
                let rules = self.vendors.of(vendor);
                hold::missing(
                    rules,
                    Some(resource),
                    group.pool,
                    self.config,
                    self.snapshot,
                )
            })
        };
        obstacle.or_else(|| daemon().map(|missing| missing.reason))
    }

    /// Returns the sharing of a resource, with `auto` replaced by a method.
    fn resolve(&mut self, resource: &ResourceName, group: &Group<'a>) -> Sharing {
        let sharing = group.pool.sharing.clone();
        match (sharing.method, sharing.replicas) {
            (Method::Auto, 0 | 1) => Sharing {
                method: Method::None,
                ..sharing
            },
            (Method::Auto, _) => {
                let obstacle = self.auto_obstacle(resource, group);
                let (method, text) = share::choose(resource, obstacle);
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

/// Returns the reason why a partitioned card without partitions is not offered.
fn empty(words: &Vendor) -> String {
    let Vendor {
        partition,
        partition_mode: mode,
        ..
    } = words;
    format!("it is in {mode} and has no {partition}s: create some, or switch {mode} off")
}

/// Checks that two pools have the same settings for the units of one resource.
fn agree(first: &Pool, later: &Pool, resource: &ResourceName) -> Result<(), (AsideKind, String)> {
    // The kubelet knows one endpoint for each resource name, with one set of options, so that two
    // settings of `preStart` cannot both hold. Nor may an answer depend on the pool of a unit.
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
