//! Bases: the resource names of devices before sharing.

use crate::{
    KindName, Mig, Selector,
    nvidia::{DeviceRef, NamedPattern, ReplicatedResource, V1File},
    source::TextPlace,
};

const CARDS: &str = "nvidia.com/gpu";
pub(super) const PARTITIONS: &str = "nvidia.com/mig-{profile}";
/// Beginning of the default names of MIG devices.
const MIG_PREFIX: &str = "nvidia.com/mig-";

/// Devices with one resource name before sharing.
#[derive(Debug)]
pub(super) struct BaseResource {
    kind: KindName,
    pattern: Option<String>,
    pub(super) resource: String,
    pub(super) place: Option<TextPlace>,
}

// === impl BaseResource ===

impl BaseResource {
    /// Returns `Some` if an entry of `sharing` names this base. For the default names of MIG
    /// devices it has the profiles that the entry names.
    pub(super) fn match_entry(&self, entry: &ReplicatedResource) -> Option<Option<Vec<String>>> {
        let name = entry.name.value.as_str();
        if self.resource == PARTITIONS {
            return name
                .strip_prefix(MIG_PREFIX)
                .map(|profile| Some(possible_profiles(profile)));
        }
        (self.resource == name).then_some(None)
    }

    pub(super) fn selector(&self, profiles: Option<Vec<String>>) -> Selector {
        let patterns: Vec<String> = self.pattern.clone().into_iter().collect();
        let (model, profile) = match self.kind {
            KindName::Card => (patterns, Vec::new()),
            KindName::Partition => (Vec::new(), profiles.unwrap_or(patterns)),
        };
        Selector {
            vendor: vec!["nvidia".to_owned()],
            kind: Some(self.kind),
            model,
            profile,
            ..Selector::default()
        }
    }
}

/// Returns the bases in order: for cards, then for MIG devices, the patterns and then the default
/// name.
pub(super) fn bases(file: &V1File, mig: Mig) -> Vec<BaseResource> {
    let mut bases = Vec::new();
    let mut add = |kind, patterns: &[NamedPattern], default: &str| {
        for named in patterns {
            bases.push(BaseResource {
                kind,
                pattern: Some(named.pattern.value.clone()),
                resource: named.name.value.to_string(),
                place: Some(named.name.place),
            });
        }
        if !patterns.iter().any(|named| named.pattern.value == "*") {
            bases.push(BaseResource {
                kind,
                pattern: None,
                resource: default.to_owned(),
                place: None,
            });
        }
    };
    add(KindName::Card, &file.gpus, CARDS);
    match mig {
        Mig::None => {}
        Mig::Single => add(KindName::Partition, &file.mig, CARDS),
        Mig::Mixed => add(KindName::Partition, &file.mig, PARTITIONS),
    }
    bases
}

/// Returns the profiles whose resource name can end in `name`.
// A `+` of a profile, as in `1g.10gb+me`, is a `.` in the resource name, because Kubernetes does
// not take a `+`.
fn possible_profiles(name: &str) -> Vec<String> {
    let plus = name
        .split_once("gb.")
        .map(|(size, rest)| format!("{size}gb+{rest}"));
    std::iter::once(name.to_owned()).chain(plus).collect()
}

/// Returns selectors for single devices of a base.
pub(super) fn by_ref(whole: &Selector, list: &[DeviceRef]) -> Vec<Selector> {
    let texts = |keep: fn(&DeviceRef) -> bool| -> Vec<String> {
        let kept = list.iter().filter(|one| keep(one));
        kept.map(|one| one.as_str().to_owned()).collect()
    };
    let index = texts(|one| !matches!(one, DeviceRef::Uuid(_)));
    let uuid = texts(|one| matches!(one, DeviceRef::Uuid(_)));
    let mut selectors = Vec::new();
    if !index.is_empty() {
        selectors.push(Selector {
            index,
            ..whole.clone()
        });
    }
    if !uuid.is_empty() {
        selectors.push(Selector {
            uuid,
            ..whole.clone()
        });
    }
    selectors
}
