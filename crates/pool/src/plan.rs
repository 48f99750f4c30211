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
use rules::{CdiSupport, Eligibility, MissingRequirement, Vendor, Vendors, resolve_lists};

use crate::{
    DeviceNotOffered, NotOfferedKind, NoteKind, Offer, Offers, PlanNote,
    aside::NotOfferedList,
    assign::{PoolMembers, assign},
    hold, name, select, share,
};

/// Offers of a node, and the devices that are not offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePlan {
    /// Every resource, sorted by name.
    pub offers: Offers,
    /// Every device that is in no offer, sorted by id.
    pub aside: Vec<DeviceNotOffered>,
    /// Notes for the operator: on pools in the order of the config, then on resources sorted by
    /// name.
    pub notes: Vec<PlanNote>,
}

/// Devices under one resource name: of one pool, or of several pools with equal settings.
#[derive(Debug)]
struct ResourceGroup<'a> {
    /// First of the pools. Its settings are those of the resource.
    pool: &'a Pool,
    entries: Vec<&'a Entry>,
}

/// Plan in the making.
#[derive(Debug)]
struct PlanDraft<'a> {
    config: &'a Config,
    vendors: Vendors,
    snapshot: &'a Arc<Snapshot>,
    asides: NotOfferedList,
    notes: Vec<PlanNote>,
}

/// Plans the offers of a node by the config's pools, its settings for each vendor, and
/// `health.unknown`. Every device is either in one offer or not offered with a reason.
///
/// The plan depends on nothing else, and not on the order of the devices. Costs devices ×
/// selectors.
pub fn plan_offers(config: &Config, vendors: Vendors, snapshot: &Arc<Snapshot>) -> NodePlan {
    let mut draft = PlanDraft {
        config,
        vendors,
        snapshot,
        asides: NotOfferedList::default(),
        notes: Vec::new(),
    };
    let admitted = draft.admit_devices();
    let (offered, partitioned) = draft.divide_by_vendor(admitted);
    let taken = assign(&config.pools.pools, offered, &mut draft.asides);
    draft.notice(&taken);
    let groups = draft.group_by_name(taken);
    draft.account(&partitioned, &groups);
    let offers = groups
        .into_iter()
        .map(|(resource, group)| draft.make_offer(resource, group));
    let offers: Offers = offers.collect();
    NodePlan {
        offers,
        aside: draft.asides.into_sorted(),
        notes: draft.notes,
    }
}

/// Returns the offers of a snapshot with the default pools.
pub fn offers(vendors: Vendors, snapshot: &Arc<Snapshot>) -> Offers {
    plan_offers(&Config::default(), vendors, snapshot).offers
}

// === impl ResourceGroup ===

impl<'a> ResourceGroup<'a> {
    /// Lists the vendors of the devices.
    fn vendors(&self) -> BTreeSet<&'a str> {
        let entries = self.entries.iter();
        entries.map(|entry| &*entry.device.vendor).collect()
    }
}

// === impl PlanDraft ===

impl<'a> PlanDraft<'a> {
    /// Returns the devices that may be offered at all, sorted by id.
    fn admit_devices(&mut self) -> Vec<&'a Entry> {
        let mut entries: Vec<&Entry> = self.snapshot.devices.iter().collect();
        entries.sort_by(|a, b| a.device.id.cmp(&b.device.id));
        entries.retain(|entry| match self.find_refusal(&entry.device) {
            Some((kind, reason)) => {
                self.asides.add_device(&entry.device, kind, reason);
                false
            }
            None => true,
        });
        entries
    }

    /// Divides devices by the rules of their vendors. Returns the devices that pools may take, and
    /// the cards that are offered as their partitions. All others are not offered.
    fn divide_by_vendor(&mut self, entries: Vec<&'a Entry>) -> (Vec<&'a Entry>, Vec<&'a Entry>) {
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
            let rules = self.vendors.find_rules(vendor);
            let standings = rules.divide_devices(&entries, &self.config.backends);
            // A device without an answer from its vendor is offered: an error in a vendor's rules
            // must not take a device away.
            let standings = standings.into_iter().chain(repeat(Eligibility::Offered));
            for (entry, standing) in entries.into_iter().zip(standings) {
                let (kind, reason) = match standing {
                    Eligibility::Offered => {
                        offered.push(entry);
                        continue;
                    }
                    Eligibility::Partitioned if parents.contains(&entry.device.id) => {
                        partitioned.push(entry);
                        continue;
                    }
                    Eligibility::Partitioned => (
                        NotOfferedKind::NoPartitions,
                        explain_no_partitions(rules.vendor()),
                    ),
                    Eligibility::Whole(reason) => (NotOfferedKind::Whole, reason),
                    Eligibility::Unfit(reason) => (NotOfferedKind::Strategy, reason),
                    Eligibility::Gone(reason) => (NotOfferedKind::Gone, reason),
                };
                self.asides.add_device(&entry.device, kind, reason);
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
        let partitions = there.filter(|entry| entry.device.card_id() != &entry.device.id);
        partitions.map(|entry| entry.device.card_id()).collect()
    }

    /// Returns the vendor's words for a device.
    fn vendor_words(&self, device: &Device) -> &'static Vendor {
        self.vendors.find_rules(&device.vendor).vendor()
    }

    fn find_refusal(&self, device: &Device) -> Option<(NotOfferedKind, String)> {
        let id = device.id.as_str();
        // `::` separates the id from the number of a replica, here and in NVIDIA's plugin
        // (`internal/rm/devices.go, AnnotatedID`). An id with `::` could be equal to another
        // device's replica.
        if id.is_empty() || id.contains("::") {
            let reason = format!("its id `{id}` is empty or has `::` in it, which marks replicas");
            return Some((NotOfferedKind::BadId, reason));
        }
        let Pools {
            include, exclude, ..
        } = &self.config.pools;
        if let Some(reason) = select::first_reason(exclude, device) {
            return Some((NotOfferedKind::Excluded, format!("excluded by {reason}")));
        }
        if !include.is_empty() && select::find_selector(include, device).is_none() {
            let reason = "`include` does not name it".to_owned();
            return Some((NotOfferedKind::Excluded, reason));
        }
        None
    }

    /// Notes pools without devices. A pool that takes all devices of a kind gets no note: the
    /// default pools exist on every node.
    fn notice(&mut self, taken: &[PoolMembers<'_>]) {
        let none = taken.iter().filter(|(_, members)| members.is_empty());
        let none = none.filter(|(pool, _)| !select::is_of_kind(&pool.selectors));
        for (pool, _) in none.filter(|_| !self.snapshot.devices.is_empty()) {
            self.notes.push(PlanNote {
                pool: pool.name.clone(),
                resource: None,
                kind: NoteKind::Empty,
                text: format!("pool `{}` takes no device of this node", pool.name),
            });
        }
    }

    /// Groups the devices of the pools by resource name. A name belongs to the first pool with a
    /// device for it, and to later pools with the same settings.
    fn group_by_name(
        &mut self,
        taken: Vec<PoolMembers<'a>>,
    ) -> BTreeMap<ResourceName, ResourceGroup<'a>> {
        let mut groups: BTreeMap<ResourceName, ResourceGroup<'a>> = BTreeMap::new();
        for (pool, entries) in taken {
            for entry in entries {
                let fit = self.fit_to_pool(pool, &entry.device).and_then(|resource| {
                    let group = groups
                        .entry(resource.clone())
                        .or_insert_with(|| ResourceGroup {
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
    fn fit_to_pool(
        &self,
        pool: &Pool,
        device: &Device,
    ) -> Result<ResourceName, (NotOfferedKind, String)> {
        if let Some(reason) = select::first_reason(&pool.reserved, device) {
            return Err((NotOfferedKind::Reserved, format!("reserved by {reason}")));
        }
        let resource = name::resource_name(&pool.resource, device).map_err(|why| {
            let reason = format!("{why}; change `resource` of pool `{}`", pool.name);
            (NotOfferedKind::NoName, reason)
        })?;
        // A card is reset as a whole: a reset for one partition would end the work on the others.
        if pool.pre_start.mode == PreStartMode::Reset && device.card_id() != &device.id {
            let reason = format!(
                "a {} cannot be reset alone, and its pool `{}` has `preStart: reset`: give it a pool \
                 with another `preStart`",
                self.vendor_words(device).partition,
                pool.name
            );
            return Err((NotOfferedKind::PreStart, reason));
        }
        match share::find_obstacle(device, &pool.sharing, self.vendors) {
            Some(reason) => Err((NotOfferedKind::Sharing, reason)),
            None => Ok(resource),
        }
    }

    /// Notes for each partitioned card how many of its partitions are offered.
    fn account(&mut self, cards: &[&Entry], groups: &BTreeMap<ResourceName, ResourceGroup<'_>>) {
        let offered = groups.values().flat_map(|group| &group.entries);
        let there = offered.filter(|entry| !entry.is_gone());
        let parents: Vec<&DeviceId> = there.map(|entry| entry.device.card_id()).collect();
        for card in cards {
            let device = &card.device;
            let Vendor {
                partition,
                partition_mode: mode,
                ..
            } = self.vendor_words(device);
            let reason = match parents.iter().filter(|id| **id == &device.id).count() {
                0 => format!("it is in {mode}, and none of its {partition}s is offered"),
                count => format!("it is in {mode} and offered as its {partition}s: {count}"),
            };
            self.asides
                .add_device(device, NotOfferedKind::Partitioned, reason);
        }
    }

    fn make_offer(&mut self, resource: ResourceName, group: ResourceGroup<'a>) -> Arc<Offer> {
        let pool = Pool {
            sharing: self.resolve_sharing(&resource, &group),
            ..group.pool.clone()
        };
        let missing = self.note_missing(&resource, &pool, &group);
        let unknown = self.config.health.unknown;
        let units = group.entries.iter().flat_map(|entry| {
            let keep = |unit| match missing.get(&*entry.device.vendor) {
                Some(missing) => hold::mark_waiting(missing, unit),
                None => unit,
            };
            let units = share::make_units(entry, &pool.sharing, unknown).into_iter();
            units.map(keep).collect::<Vec<_>>()
        });
        let mut units: Vec<_> = units.collect();
        units.sort_by(|a, b| a.id.cmp(&b.id));
        Arc::new(Offer {
            resource,
            units,
            snapshot: Arc::clone(self.snapshot),
            // The CDI stage decides `auto` later. Specs, runtime and kubelet are not known here.
            lists: resolve_lists(&pool.handover, CdiSupport::default()),
            pool: Arc::new(pool),
            vendors: self.vendors,
        })
    }

    /// Returns what is missing for the resource, by vendor, and notes it.
    fn note_missing(
        &mut self,
        resource: &ResourceName,
        pool: &Pool,
        group: &ResourceGroup<'a>,
    ) -> BTreeMap<&'a str, MissingRequirement> {
        let mut all = BTreeMap::new();
        for vendor in group.vendors() {
            let rules = self.vendors.find_rules(vendor);
            let missing =
                hold::check_needs(rules, Some(resource), pool, self.config, self.snapshot);
            let Some(missing) = missing else { continue };
            self.notes.push(PlanNote {
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
    fn auto_obstacle(&self, resource: &ResourceName, group: &ResourceGroup<'a>) -> Option<String> {
        let obstacle = share::auto_obstacle(&group.entries, &group.pool.sharing, self.vendors);
        let daemon = || {
            group.vendors().into_iter().find_map(|vendor| {
                let rules = self.vendors.find_rules(vendor);
                hold::check_needs(
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
    fn resolve_sharing(&mut self, resource: &ResourceName, group: &ResourceGroup<'a>) -> Sharing {
        let sharing = group.pool.sharing.clone();
        match (sharing.method, sharing.replicas) {
            (Method::Auto, 0 | 1) => Sharing {
                method: Method::None,
                ..sharing
            },
            (Method::Auto, _) => {
                let obstacle = self.auto_obstacle(resource, group);
                let (method, text) = share::choose_auto_method(resource, obstacle);
                self.notes.push(PlanNote {
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
fn explain_no_partitions(words: &Vendor) -> String {
    let Vendor {
        partition,
        partition_mode: mode,
        ..
    } = words;
    format!("it is in {mode} and has no {partition}s: create some, or switch {mode} off")
}

/// Checks that two pools have the same settings for the units of one resource.
fn agree(
    first: &Pool,
    later: &Pool,
    resource: &ResourceName,
) -> Result<(), (NotOfferedKind, String)> {
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
    Err((NotOfferedKind::Conflict, reason))
}

#[cfg(test)]
mod tests;
