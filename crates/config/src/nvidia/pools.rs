//! Makes pools of the resource names and the sharing in NVIDIA's file.
//!
//! Each resource name is a base: the cards or MIG devices that match a pattern. The first pattern
//! that matches wins, and the default names come last. The shared devices of a base are pools of
//! their own, before the pool with the rest of the base.
//!
//! NVIDIA's plugin v0.20.0 parses `resources`, `rename` and `devices` and then drops them with a
//! warning (api/config/v1/config.go, DisableResourceNamingInConfig). Here they work.

mod base;

use self::base::{BaseResource, PARTITIONS, bases, by_ref};
use super::{
    V1File,
    merge::FlagMerge,
    sharing::{ReplicatedResources, SharedDevices},
};
use crate::{
    Distinct, Handover, Method, Mig, Placement, Policy, Pool, ProblemSeverity, Selector, Sharing,
    Template, ValueOrigin, Weights, source::TextPlace,
};

/// Options that hold for every pool.
#[derive(Debug)]
pub(super) struct PoolOptions {
    pub(super) mig: Mig,
    pub(super) shared_policy: Policy,
    pub(super) handover: Handover,
}

/// Pool with the places of the file that it comes from.
#[derive(Debug)]
pub(super) struct BuiltPool {
    pub(super) pool: Pool,
    name: Option<ValueOrigin>,
    sharing: Option<ValueOrigin>,
    /// Place at which a problem with the pool is shown.
    place: Option<TextPlace>,
}

/// Section of `sharing` that is used.
#[derive(Debug)]
struct ActiveSharing<'f> {
    method: Method,
    key: &'static str,
    section: &'f ReplicatedResources,
}

/// Returns the pools in order.
pub(super) fn build_pools(merge: &mut FlagMerge<'_>, wishes: &PoolOptions) -> Vec<BuiltPool> {
    let file = merge.file;
    let active = ActiveSharing::from_v1_file(file);
    let bases = bases(file, wishes.mig);
    let mut built = Vec::new();
    let mut builder = PoolBuilder {
        merge,
        wishes,
        built: &mut built,
    };
    for base in &bases {
        builder.add_base(base, active.as_ref());
    }
    if let Some(active) = &active {
        builder.warn_absent(&bases, active);
    }
    builder.note_conflicts();
    built
}

struct PoolBuilder<'b, 'm> {
    merge: &'b mut FlagMerge<'m>,
    wishes: &'b PoolOptions,
    built: &'b mut Vec<BuiltPool>,
}

// === impl PoolBuilder ===

impl PoolBuilder<'_, '_> {
    /// Adds the pools of one base: those with shared devices, then the one with the rest.
    fn add_base(&mut self, base: &BaseResource, active: Option<&ActiveSharing<'_>>) {
        let mut rest = true;
        let entries = active.map_or(&[][..], |active| &active.section.resources);
        for (n, entry) in entries.iter().enumerate() {
            let Some(profiles) = base.match_entry(entry) else {
                continue;
            };
            let Some(active) = active else { continue };
            if !rest {
                let key = active.entry_key(n);
                let message = format!("nothing of `{}` is left for it", entry.name.value);
                let help = "name its devices in an entry further up, or remove this one";
                self.warn_at_place(entry.name.place, &key, message, help);
                continue;
            }
            self.add_shared(base, active, n, profiles.clone());
            // A name with a profile takes only the MIG devices of that profile.
            rest = entry.devices.value != SharedDevices::All || profiles.is_some();
        }
        if rest {
            let selectors = vec![base.selector(None)];
            let placement = Placement::default();
            let resource = base.resource.clone();
            let pool = self.make_pool(selectors, resource, Sharing::default(), placement);
            self.built.push(BuiltPool {
                pool,
                name: base.place.map(|place| self.merge.file.source.origin(place)),
                sharing: None,
                place: base.place,
            });
        }
    }

    fn add_shared(
        &mut self,
        base: &BaseResource,
        active: &ActiveSharing<'_>,
        n: usize,
        profiles: Option<Vec<String>>,
    ) {
        let entry = &active.section.resources[n];
        let whole = base.selector(profiles);
        let selectors = match &entry.devices.value {
            SharedDevices::List(list) => by_ref(&whole, list),
            SharedDevices::All | SharedDevices::Count(_) => vec![whole],
        };
        let resource = self.choose_name(active, n);
        let distinct = match self.wishes.shared_policy {
            Policy::Packed => Distinct::Off,
            _ => Distinct::Prefer,
        };
        let sharing = Sharing {
            method: active.method,
            replicas: entry.replicas.value,
            one_per_request: active.one_per_request(),
            distinct,
        };
        let placement = Placement {
            policy: self.wishes.shared_policy,
            weights: Weights::default(),
        };
        let mut pool = self.make_pool(selectors, resource, sharing, placement);
        if let SharedDevices::Count(count) = entry.devices.value {
            pool.limit = Some(count);
        }
        let source = &self.merge.file.source;
        let name = entry
            .rename
            .as_ref()
            .map_or(entry.name.place, |said| said.place);
        self.built.push(BuiltPool {
            pool,
            name: Some(source.origin(name)),
            sharing: Some(source.origin(entry.replicas.place)),
            place: Some(entry.name.place),
        });
    }

    /// Returns the resource name of an entry's shared devices.
    fn choose_name(&mut self, active: &ActiveSharing<'_>, n: usize) -> String {
        let entry = &active.section.resources[n];
        let key = active.entry_key(n);
        let name = match &entry.rename {
            Some(name) => return name.value.to_string(),
            None if active.section.rename_by_default => entry.name.value.shared_name(),
            None if entry.devices.value == SharedDevices::All => {
                return entry.name.value.to_string();
            }
            // One resource cannot have shared and exclusive devices: a pod could not choose.
            None => {
                let name = entry.name.value.shared_name();
                let message = format!(
                    "exclusive and shared devices cannot both be `{}`; the shared ones are \
                     offered as `{name}`",
                    entry.name.value
                );
                let help = "choose their name with `rename`";
                self.warn_at_place(
                    entry.devices.place,
                    &format!("{key}.devices"),
                    message,
                    help,
                );
                name
            }
        };
        if let Err(message) = name.parse::<super::NvidiaResourceName>() {
            let help = "choose a shorter name with `rename`";
            let key = format!("{key}.name");
            self.merge.note_file_problem(
                ProblemSeverity::Error,
                entry.name.place,
                &key,
                (message, help),
            );
        }
        name
    }

    fn make_pool(
        &self,
        selectors: Vec<Selector>,
        resource: String,
        sharing: Sharing,
        placement: Placement,
    ) -> Pool {
        let base = match resource.as_str() {
            PARTITIONS => "mig",
            name => name.rsplit('/').next().unwrap_or(name),
        };
        let taken = |name: &String| self.built.iter().any(|other| other.pool.name == *name);
        let numbered = (2..).map(|n| format!("{base}-{n}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        let name = names.find(|name| !taken(name)).unwrap_or_default();
        Pool {
            selectors,
            sharing,
            placement,
            handover: self.wishes.handover.clone(),
            resource: Template(resource),
            ..Pool::of_all_devices(&name, "")
        }
    }

    /// Warns of entries with a name that no device has.
    fn warn_absent(&mut self, bases: &[BaseResource], active: &ActiveSharing<'_>) {
        for (n, entry) in active.section.resources.iter().enumerate() {
            if !bases.iter().any(|base| base.match_entry(entry).is_some()) {
                let name = &entry.name.value;
                let message = format!("no device is called `{name}`; this is not used");
                let help = "check the name, `resources` and the MIG strategy";
                self.warn_at_place(
                    entry.name.place,
                    &format!("{}.name", active.entry_key(n)),
                    message,
                    help,
                );
            }
        }
    }

    /// Reports two pools with one resource name that are shared in different ways.
    fn note_conflicts(&mut self) {
        let mut found = Vec::new();
        for (n, pool) in self.built.iter().enumerate() {
            let clash = self.built[..n].iter().find(|other| {
                other.pool.resource == pool.pool.resource && other.pool.sharing != pool.pool.sharing
            });
            let place = clash.and_then(|clash| pool.place.or(clash.place));
            found.extend(place.map(|place| (place, pool.pool.resource.0.clone())));
        }
        for (place, name) in found {
            let message = format!("`{name}` would be shared in two ways");
            let help = "give one of them another name with `rename`";
            self.merge
                .note_file_problem(ProblemSeverity::Error, place, "sharing", (message, help));
        }
    }

    fn warn_at_place(&mut self, place: TextPlace, key: &str, message: String, help: &str) {
        self.merge
            .note_file_problem(ProblemSeverity::Warning, place, key, (message, help));
    }
}

// === impl BuiltPool ===

impl BuiltPool {
    /// Returns the origins of the pool's values. `policy` is the origin of the policy of shared
    /// pools.
    pub(super) fn list_pool_origins(
        &self,
        policy: &ValueOrigin,
    ) -> Vec<(&'static str, ValueOrigin)> {
        let mut origins = Vec::new();
        origins.extend(self.name.clone().map(|origin| ("resource", origin)));
        if let Some(origin) = &self.sharing {
            origins.push(("sharing", origin.clone()));
            origins.push(("select", origin.clone()));
            origins.push(("placement", policy.clone()));
        }
        origins
    }
}

// === impl ActiveSharing ===

impl<'f> ActiveSharing<'f> {
    fn from_v1_file(file: &'f V1File) -> Option<Self> {
        // If the file has both sections, NVIDIA's plugin uses `mps` everywhere.
        let mps = file.mps.as_ref().map(|section| Self {
            method: Method::Mps,
            key: "sharing.mps",
            section,
        });
        mps.or_else(|| {
            file.time_slicing.as_ref().map(|section| Self {
                method: Method::TimeSlicing,
                key: "sharing.timeSlicing",
                section,
            })
        })
    }

    /// Returns true if a container gets at most one unit. That is the default with MPS (NVIDIA's
    /// api/config/v1/config.go, NewConfig).
    fn one_per_request(&self) -> bool {
        let said = self.section.fail_requests_greater_than_one.as_ref();
        said.map_or(self.method == Method::Mps, |said| said.value)
    }

    fn entry_key(&self, n: usize) -> String {
        format!("{}.resources[{n}]", self.key)
    }
}

#[cfg(test)]
mod tests;
