//! Which devices have which name before anything is shared.

use crate::{
    KindName, Mig, Selector,
    nvidia::{DeviceRef, File, NamedPattern, ReplicatedResource},
    source::Place,
};

const CARDS: &str = "nvidia.com/gpu";
pub(super) const PARTITIONS: &str = "nvidia.com/mig-{profile}";
/// What the names of MIG devices begin with.
const MIG_PREFIX: &str = "nvidia.com/mig-";

/// Devices that have one name before they are shared.
#[derive(Debug)]
pub(super) struct Base {
    kind: KindName,
    pattern: Option<String>,
    pub(super) resource: String,
    pub(super) place: Option<Place>,
}

// === impl Base ===

impl Base {
    /// Whether an entry speaks of this base; for the default names of MIG devices, the profiles
    /// that it speaks of.
    pub(super) fn covers(&self, entry: &ReplicatedResource) -> Option<Option<Vec<String>>> {
        let name = entry.name.value.as_str();
        if self.resource == PARTITIONS {
            return name
                .strip_prefix(MIG_PREFIX)
                .map(|profile| Some(profiles(profile)));
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

/// The bases, in order: patterns, then the default names.
pub(super) fn bases(file: &File, mig: Mig) -> Vec<Base> {
    let mut bases = Vec::new();
    let mut add = |kind, patterns: &[NamedPattern], default: &str| {
        for named in patterns {
            bases.push(Base {
                kind,
                pattern: Some(named.pattern.value.clone()),
                resource: named.name.value.to_string(),
                place: Some(named.name.place),
            });
        }
        if !patterns.iter().any(|named| named.pattern.value == "*") {
            bases.push(Base {
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

/// The profiles whose resource name ends in `name`: a `+` is a `.` there.
fn profiles(name: &str) -> Vec<String> {
    let plus = name
        .split_once("gb.")
        .map(|(size, rest)| format!("{size}gb+{rest}"));
    std::iter::once(name.to_owned()).chain(plus).collect()
}

/// Selectors for single devices.
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
