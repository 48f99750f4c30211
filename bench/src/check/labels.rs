//! Which labels NVIDIA's feature discovery must write on a node: worked out from the node's
//! profile, and not from what the simulated library answers.

use std::collections::{BTreeMap, BTreeSet};

use sim::state::{Gpu, GpuModel, NodeState};

use super::{
    expect::{Part, Strategy, parts},
    report::Verdict,
};

/// When the labels were made.
const TIMESTAMP: &str = "gfd.timestamp";

/// Labels without the prefix `nvidia.com/`.
pub(crate) type Labels = BTreeMap<String, String>;

/// The labels that must be there. Where cards of several models are on a node upstream lets one of
/// them speak for all, and which one is chance: one of these sets must be there.
pub(crate) fn labels(state: &NodeState, strategy: Strategy) -> Vec<Labels> {
    let mut common = versions(state);
    common.extend(machine(state));
    if strategy != Strategy::None {
        put(&mut common, "mig.strategy", strategy.name());
    }
    let partitions = match strategy {
        Strategy::None => Labels::new(),
        Strategy::Single => single(state),
        Strategy::Mixed => mixed(state),
    };
    let with = |gpu: Labels| {
        let mut labels = common.clone();
        labels.extend(gpu);
        labels.extend(partitions.clone());
        labels
    };
    whole(state).into_iter().map(with).collect()
}

/// Whether one of the sets of labels is there, and a time.
pub(crate) fn judge(expected: &[Labels], seen: &Labels) -> Verdict {
    let mut seen = seen.clone();
    let time = seen
        .remove(TIMESTAMP)
        .and_then(|time| time.parse::<u64>().ok());
    let tried = expected.iter().map(|wanted| differences(wanted, &seen));
    let mut problems = tried.min_by_key(Vec::len).unwrap_or_default();
    if time.is_none() {
        problems.push(format!("{TIMESTAMP} is no time"));
    }
    if problems.is_empty() {
        return Verdict::Well(format!("{} labels are the profile's", seen.len()));
    }
    Verdict::Wrong(problems)
}

fn differences(expected: &Labels, seen: &Labels) -> Vec<String> {
    let names: BTreeSet<_> = expected.keys().chain(seen.keys()).collect();
    let side = |value: Option<&String>| value.map_or("absent".to_owned(), |v| format!("`{v}`"));
    let wrong = names.into_iter().filter_map(|name| {
        let (wanted, found) = (expected.get(name), seen.get(name));
        let text = || format!("{name} is {}, not {}", side(found), side(wanted));
        (wanted != found).then(text)
    });
    wrong.collect()
}

fn put(labels: &mut Labels, name: &str, value: impl ToString) {
    labels.insert(name.to_owned(), value.to_string());
}

fn versions(state: &NodeState) -> Labels {
    let mut labels = Labels::new();
    let driver = &state.driver.version;
    let mut parts = driver.split('.');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    let (major, minor, revision) = (part(), part(), part());
    for (name, value) in [
        ("cuda.driver.major", &major),
        ("cuda.driver.minor", &minor),
        ("cuda.driver.rev", &revision),
        ("cuda.driver-version.major", &major),
        ("cuda.driver-version.minor", &minor),
        ("cuda.driver-version.revision", &revision),
        ("cuda.driver-version.full", driver),
    ] {
        put(&mut labels, name, value);
    }
    let (major, minor) = (state.driver.cuda / 1000, state.driver.cuda % 1000 / 10);
    for stem in ["cuda.runtime", "cuda.runtime-version"] {
        put(&mut labels, &format!("{stem}.major"), major);
        put(&mut labels, &format!("{stem}.minor"), minor);
    }
    let full = format!("{major}.{minor}");
    put(&mut labels, "cuda.runtime-version.full", full);
    labels
}

fn machine(state: &NodeState) -> Labels {
    let mut labels = Labels::new();
    let product = match sanitised(&state.machine.product) {
        product if product.is_empty() => "unknown".to_owned(),
        product => product,
    };
    put(&mut labels, "gpu.machine", product);
    let capable = used(state).any(|model| !model.mig.is_empty());
    put(&mut labels, "mig.capable", capable);
    put(&mut labels, "mps.capable", false);
    put(&mut labels, "gpu.mode", mode(state));
    if let Some(fabric) = &state.machine.fabric {
        let clique = format!("{}.{}", fabric.cluster, fabric.clique);
        put(&mut labels, "gpu.clique", clique);
    }
    let host = state.machine.vgpu.as_ref();
    put(&mut labels, "vgpu.present", host.is_some());
    if let Some(host) = host {
        put(&mut labels, "vgpu.host-driver-version", &host.driver);
        put(&mut labels, "vgpu.host-driver-branch", &host.branch);
    }
    labels
}

/// The models of which there are cards.
fn used(state: &NodeState) -> impl Iterator<Item = &GpuModel> {
    let models = state.gpus.iter().map(|gpu| &gpu.model);
    models.filter_map(|key| state.models.get(key))
}

fn mode(state: &NodeState) -> &'static str {
    if !state.machine.platform.has_bus() {
        return "unknown";
    }
    let classes: BTreeSet<_> = used(state).map(|m| m.class.as_str()).collect();
    let mut classes = classes.into_iter();
    match (classes.next(), classes.next()) {
        (Some("030000"), None) => "graphics",
        (Some("030200"), None) => "compute",
        _ => "unknown",
    }
}

/// The labels of whole cards, once for each model that may speak. Cards with MIG mode on speak
/// only where there are no others.
fn whole(state: &NodeState) -> Vec<Labels> {
    let free = state.gpus.iter().any(|gpu| !gpu.mig_enabled);
    let speaks = |gpu: &&Gpu| !(free && gpu.mig_enabled);
    let models: BTreeSet<_> = state
        .gpus
        .iter()
        .filter(speaks)
        .map(|gpu| &gpu.model)
        .collect();
    let found = models.into_iter().filter_map(|key| {
        let model = state.models.get(key)?;
        let count = state.gpus.iter().filter(|gpu| gpu.model == *key).count();
        Some(card(model, count, free))
    });
    found.collect()
}

fn card(model: &GpuModel, count: usize, free: bool) -> Labels {
    let mut labels = Labels::new();
    let (major, minor) = model.compute_capability;
    put(&mut labels, "gpu.product", sanitised(&model.name));
    put(&mut labels, "gpu.count", count);
    put(&mut labels, "gpu.replicas", i32::from(free));
    put(&mut labels, "gpu.sharing-strategy", "none");
    put(&mut labels, "gpu.memory", model.memory_mib);
    put(&mut labels, "gpu.family", family(major, minor));
    put(&mut labels, "gpu.compute.major", major);
    put(&mut labels, "gpu.compute.minor", minor);
    labels
}

/// The names of v0.19.3, which knows none for compute capability 11 and from 13 on.
fn family(major: i32, minor: i32) -> &'static str {
    match (major, minor) {
        (6, _) => "pascal",
        (7, ..5) => "volta",
        (7, _) => "turing",
        (8, ..9) => "ampere",
        (8, _) => "ada-lovelace",
        (9, _) => "hopper",
        (10 | 12, _) => "blackwell",
        _ => "undefined",
    }
}

/// What MIG devices add with the strategy `single`.
fn single(state: &NodeState) -> Labels {
    let Some(first) = state.gpus.iter().find(|gpu| gpu.mig_enabled) else {
        return Labels::new();
    };
    let parts = parts(state);
    let names: BTreeSet<_> = parts.iter().map(Part::name).collect();
    let whole = |gpu: &Gpu| !gpu.mig_enabled || gpu.migs.is_empty();
    if state.gpus.iter().any(whole) || names.len() != 1 {
        return invalid(state, first);
    }
    partition(state, "gpu", &parts)
}

fn invalid(state: &NodeState, first: &Gpu) -> Labels {
    let mut labels = Labels::new();
    let product = format!("{}-MIG-INVALID", product(state, first));
    put(&mut labels, "gpu.product", product);
    put(&mut labels, "gpu.count", 0);
    put(&mut labels, "gpu.replicas", 0);
    put(&mut labels, "gpu.sharing-strategy", "");
    put(&mut labels, "gpu.memory", 0);
    labels
}

/// What MIG devices add with the strategy `mixed`.
fn mixed(state: &NodeState) -> Labels {
    let mut kinds: BTreeMap<String, Vec<Part<'_>>> = BTreeMap::new();
    for part in parts(state) {
        kinds.entry(part.name()).or_default().push(part);
    }
    let labels = kinds.iter();
    labels
        .flat_map(|(name, parts)| partition(state, &format!("mig-{name}"), parts))
        .collect()
}

/// The labels of MIG devices that are alike.
fn partition(state: &NodeState, resource: &str, parts: &[Part<'_>]) -> Labels {
    let mut labels = Labels::new();
    let Some(part) = parts.first() else {
        return labels;
    };
    let Part { gpu, mig, shape } = *part;
    let product = format!("{}-MIG-{}", product(state, gpu), sanitised(&part.name()));
    let multiprocessors = shape.multiprocessors * mig.slices / shape.slices.max(1);
    let mut put = |name: &str, value: String| labels.insert(format!("{resource}.{name}"), value);
    put("product", product);
    put("sharing-strategy", "none".to_owned());
    put("count", parts.len().to_string());
    put("replicas", "1".to_owned());
    put("memory", shape.memory_mib.to_string());
    for (name, value) in [
        ("multiprocessors", multiprocessors),
        ("slices.gi", shape.slices),
        ("slices.ci", mig.slices),
        ("engines.copy", shape.copy),
        ("engines.decoder", shape.decoders),
        ("engines.encoder", 0),
        ("engines.jpeg", shape.jpeg),
        ("engines.ofa", shape.ofa),
    ] {
        put(name, value.to_string());
    }
    labels
}

fn product(state: &NodeState, gpu: &Gpu) -> String {
    let model = state.models.get(&gpu.model);
    model
        .map(|model| sanitised(&model.name))
        .unwrap_or_default()
}

/// A value as a label may have it.
fn sanitised(text: &str) -> String {
    let fine = |c: &char| c.is_ascii_alphanumeric() || "-_. ".contains(*c);
    let text: String = text.chars().filter(fine).collect();
    text.split_whitespace().collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests;
