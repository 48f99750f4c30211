//! What NVIDIA's device plugin must offer on a node: worked out from the node's profile, and not
//! from what the simulated library answers.

use std::collections::BTreeMap;

use sim::state::{Gpu, MigDevice, MigProfile, NodePlatform, NodeState};

use super::{report::Verdict, run::Seen};

/// The resource of whole cards.
const GPU: &str = "nvidia.com/gpu";

/// How MIG devices are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Not at all: a card is a card.
    None,
    /// As `nvidia.com/gpu`, if all cards are cut alike.
    Single,
    /// Under a name for each profile.
    Mixed,
}

/// What the plugin must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Offer these.
    Offers(Offers),
    /// End, with words that contain these.
    Dies(&'static str),
}

/// Resources, the ids of each, and the NUMA node of each id.
pub(crate) type Offers = BTreeMap<String, BTreeMap<String, Option<u32>>>;

/// A MIG device with what it is a part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// The card.
    pub(super) gpu: &'a Gpu,
    /// The device.
    pub(super) mig: &'a MigDevice,
    /// The shape of its GPU instance.
    pub(super) shape: &'a MigProfile,
}

// === impl Strategy ===

impl Strategy {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::None, Self::Single, Self::Mixed];

    /// The value of `--mig-strategy`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Single => "single",
            Self::Mixed => "mixed",
        }
    }
}

// === impl Part ===

impl Part<'_> {
    /// The name of its profile as it stands in resources and labels: `1g.5gb.me`.
    pub(super) fn name(&self) -> String {
        self.mig.mig_name(self.shape).replace('+', ".")
    }
}

/// What the plugin must do on a node.
pub(crate) fn plugin(state: &NodeState, strategy: Strategy) -> Expected {
    if state.machine.platform == NodePlatform::Wsl {
        let all = [("all".to_owned(), None)].into();
        return Expected::Offers([(GPU.to_owned(), all)].into());
    }
    let mut offers = Offers::new();
    let whole = |gpu: &&Gpu| strategy == Strategy::None || !gpu.mig_enabled;
    for gpu in state.gpus.iter().filter(whole) {
        let devices = offers.entry(GPU.to_owned()).or_default();
        devices.insert(gpu.uuid.clone(), gpu.numa);
    }
    let parts = match strategy {
        Strategy::None => Vec::new(),
        Strategy::Single | Strategy::Mixed => parts(state),
    };
    let flaw = match strategy {
        Strategy::None => None,
        Strategy::Single => uneven(state, &parts),
        Strategy::Mixed => None,
    };
    if let Some(flaw) = flaw {
        return Expected::Dies(flaw);
    }
    for part in parts {
        let resource = match strategy {
            Strategy::Mixed => format!("nvidia.com/mig-{}", kind(state, &part)),
            _ => GPU.to_owned(),
        };
        let devices = offers.entry(resource).or_default();
        devices.insert(part.mig.uuid.clone(), part.gpu.numa);
    }
    Expected::Offers(offers)
}

/// Whether the plugin did what it must.
pub(crate) fn judge(expected: &Expected, seen: &Seen) -> Verdict {
    let problems = match (expected, seen) {
        (Expected::Dies(why), Seen::Dies(words)) if words.contains(why) => {
            return Verdict::Well(format!("ends, as it must: {words}"));
        }
        (Expected::Dies(why), seen) => vec![format!("must end with `{why}`, and did: {seen:?}")],
        (Expected::Offers(_), Seen::Dies(words)) => vec![format!("ended: {words}")],
        (Expected::Offers(expected), Seen::Offers(seen, sick)) => {
            let sick = sick.iter().map(|id| format!("{id} is unhealthy"));
            differences(expected, seen)
                .into_iter()
                .chain(sick)
                .collect()
        }
    };
    if problems.is_empty() {
        return Verdict::Well(summary(expected));
    }
    Verdict::Wrong(problems)
}

/// Everything in which resources, ids and NUMA nodes differ.
fn differences(expected: &Offers, seen: &Offers) -> Vec<String> {
    let mut problems = Vec::new();
    for (resource, wanted) in expected {
        let Some(found) = seen.get(resource) else {
            problems.push(format!("{resource}: {} missing", wanted.len()));
            continue;
        };
        for (id, numa) in wanted {
            match found.get(id) {
                None => problems.push(format!("{resource}: {id} is missing")),
                Some(other) if other != numa => problems.push(format!(
                    "{resource}: {id} is on NUMA node {other:?}, not {numa:?}"
                )),
                Some(_) => {}
            }
        }
        let more = found.keys().filter(|id| !wanted.contains_key(*id));
        problems.extend(more.map(|id| format!("{resource}: {id} must not be there")));
    }
    let more = seen.keys().filter(|name| !expected.contains_key(*name));
    problems.extend(more.map(|name| format!("{name} must not be there")));
    problems
}

fn summary(expected: &Expected) -> String {
    let Expected::Offers(offers) = expected else {
        return String::new();
    };
    if offers.is_empty() {
        return "nothing offered".to_owned();
    }
    let counts = offers
        .iter()
        .map(|(name, ids)| format!("{} {name}", ids.len()));
    let counts = counts.collect::<Vec<_>>().join(", ");
    format!("{counts}; ids and NUMA nodes are the profile's")
}

/// The MIG devices of a node in the driver's order.
pub(super) fn parts(state: &NodeState) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    for gpu in &state.gpus {
        let model = state.models.get(&gpu.model);
        for mig in &gpu.migs {
            if let Some(shape) = model.and_then(|model| model.find_shape(&mig.profile)) {
                found.push(Part { gpu, mig, shape });
            }
        }
    }
    found
}

/// Why a node cannot be offered with the strategy `single`.
fn uneven(state: &NodeState, parts: &[Part<'_>]) -> Option<&'static str> {
    let empty = |gpu: &Gpu| gpu.mig_enabled && gpu.migs.is_empty();
    if state.gpus.iter().any(empty) {
        return Some("has no MIG devices configured");
    }
    let kind = |part: &Part<'_>| (part.shape.clone(), part.mig.slices);
    if parts.windows(2).any(|two| kind(&two[0]) != kind(&two[1])) {
        return Some("more than one MIG device type present on node");
    }
    let mode = |wanted| state.gpus.iter().any(|gpu| gpu.mig_enabled == wanted);
    (mode(true) && mode(false)).then_some("must be configured with the same migEnabled value")
}

/// The profile that a MIG device counts as with the strategy `mixed`. v0.19.3 takes the first one of
/// the driver's order that is found anywhere in the device's own: `1g.5gb+me` and `1c.1g.5gb`
/// count as `1g.5gb`.
fn kind(state: &NodeState, part: &Part<'_>) -> String {
    let name = part.mig.mig_name(part.shape);
    let model = state.models.get(&part.gpu.model);
    let mut shapes: Vec<_> = model.iter().flat_map(|model| &model.mig).collect();
    shapes.sort_by_key(|shape| shape.profile);
    let first = shapes.into_iter().find(|shape| name.contains(&shape.name));
    first
        .map_or(name, |shape| shape.name.clone())
        .replace('+', ".")
}

#[cfg(test)]
mod tests;
