//! Checks of a profile: the machine's keys, PCI addresses, UUIDs and minor numbers, and the
//! profile's own models.

use std::collections::{BTreeMap, BTreeSet};

use sim_node::{
    BusId,
    state::{Gpu, GpuModel, MigProfile, NodePlatform},
};

use super::{NodeProfile, ProfileProblems};

/// Longest version and branch of a vGPU host, in characters: NVML's structure has no room for more.
const HOST_TEXT: usize = 10;
/// Largest numbers of compute slices and of memory slices in a MIG profile.
const SLICES: (u32, u32) = (8, 8);

/// Checks the keys of the machine: name, NUMA nodes, platform, fabric.
pub(super) fn check_machine(profile: &NodeProfile, problems: &mut ProfileProblems) {
    if profile.name.trim().is_empty() {
        problems.add_problem("name", "the profile has no name; UUIDs are made from it");
    }
    check_numa(profile, problems);
    let platform = profile.platform;
    if profile.vgpu.is_some() && platform != NodePlatform::Vgpu {
        let what = "`vgpu` is for virtual machines; set `platform: vgpu`, or remove it";
        problems.add_problem("vgpu", what);
    }
    if profile.tegra.is_some() && platform != NodePlatform::Tegra {
        let what = "`tegra` is for Tegra systems; set `platform: tegra`, or remove it";
        problems.add_problem("tegra", what);
    }
    if platform == NodePlatform::Tegra && !profile.gpus.is_empty() {
        let what = "a Tegra system shows no cards; use `gpus: []`, or another platform";
        problems.add_problem("gpus", what);
    }
    for text in profile.vgpu.iter().flat_map(|h| [&h.driver, &h.branch]) {
        if text.is_empty() || text.len() > HOST_TEXT || !text.is_ascii() {
            let what = format!("`{text}` in vgpu must have 1 to {HOST_TEXT} ASCII characters");
            problems.add_problem("vgpu", what);
        }
    }
    if let Some(fabric) = &profile.fabric
        && fabric.cluster_bytes().is_none()
    {
        let cluster = &fabric.cluster;
        let what =
            format!("`{cluster}` is no cluster UUID such as 6fe0c40c-6b1d-4a7c-9d0c-1f2e3d4c5b6a");
        problems.add_problem("fabric/cluster", what);
    }
}

fn check_numa(profile: &NodeProfile, problems: &mut ProfileProblems) {
    let mut nodes = BTreeSet::new();
    for (at, node) in profile.numa.iter().enumerate() {
        if !nodes.insert(node.node) {
            let what = format!("NUMA node {} is there twice; number them anew", node.node);
            problems.add_problem(&format!("numa/{at}/node"), what);
        }
        if !node.cpus.is_empty() && !node.cpus.split(',').all(is_range) {
            let what = format!("`{}` is no list of CPUs such as 0-15,128-143", node.cpus);
            problems.add_problem(&format!("numa/{at}/cpus"), what);
        }
    }
    let known = nodes.iter().map(u32::to_string).collect::<Vec<_>>();
    let cards = profile.gpus.iter().enumerate();
    let cards = cards.flat_map(|(at, card)| {
        let near = (format!("gpus/{at}/numa"), card.pci, card.numa);
        let own = (format!("gpus/{at}/memory_numa"), card.pci, card.memory_numa);
        [near, own]
    });
    let switches = profile.nvswitches.iter().enumerate();
    let switches = switches.map(|(at, s)| (format!("nvswitches/{at}/numa"), s.pci, s.numa));
    let others = profile.others.iter().enumerate();
    let others = others.map(|(at, o)| (format!("others/{at}/numa"), o.pci, o.numa));
    for (path, pci, node) in cards.chain(switches).chain(others) {
        if let Some(node) = node.filter(|node| !nodes.contains(node)) {
            let known = known.join(", ");
            let what = format!("{pci} is on NUMA node {node}; `numa` has only: {known}");
            problems.add_problem(&path, what);
        }
    }
}

fn is_range(text: &str) -> bool {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
        (Ok(first), Ok(last)) => first <= last,
        _ => false,
    }
}

/// Checks that no two PCI functions have the same address, and that the path to each is valid.
pub(super) fn check_addresses(profile: &NodeProfile, problems: &mut ProfileProblems) {
    let cards = profile.gpus.iter().map(|c| (c.pci, &c.under));
    let switches = profile.nvswitches.iter().map(|s| (s.pci, &s.under));
    let others = profile.others.iter().map(|o| (o.pci, &o.under));
    let named = |list: &'static str| move |(at, thing)| (format!("{list}/{at}"), thing);
    let all = cards.enumerate().map(named("gpus"));
    let all = all.chain(switches.enumerate().map(named("nvswitches")));
    let mut seen = BTreeSet::new();
    for (path, (pci, under)) in all.chain(others.enumerate().map(named("others"))) {
        if !seen.insert(pci) {
            let what = format!("{pci} is there twice; give each function an address of its own");
            problems.add_problem(&format!("{path}/pci"), what);
        }
        if !leads(under) {
            let what = format!(
                "`{under}` is no way to {pci} such as pci0000:00/0000:00:01.1: a root, then the \
                 bridges below it"
            );
            problems.add_problem(&format!("{path}/under"), what);
        }
    }
}

/// True if a path is a PCI root and the bridges below it.
fn leads(under: &str) -> bool {
    let mut parts = under.split('/');
    let root = parts.next().and_then(|root| root.strip_prefix("pci"));
    root.is_some_and(|root| format!("{root}:00.0").parse::<BusId>().is_ok())
        && parts.all(|part| part.parse::<BusId>().is_ok())
}

/// Checks that UUIDs and minor numbers differ, and that UUIDs are well formed. `gpus` must be in
/// the order of the profile.
pub(super) fn identities(gpus: &[Gpu], problems: &mut ProfileProblems) {
    let (mut uuids, mut minors) = (BTreeSet::new(), BTreeSet::new());
    for (at, gpu) in gpus.iter().enumerate() {
        let migs = gpu.migs.iter().map(|mig| ("mig_uuids", "MIG-", &mig.uuid));
        for (key, prefix, uuid) in std::iter::once(("uuid", "GPU-", &gpu.uuid)).chain(migs) {
            let path = format!("gpus/{at}/{key}");
            if !uuid.starts_with(prefix) || uuid.len() > 90 {
                problems.add_problem(
                    &path,
                    format!("`{uuid}` is no UUID that begins with {prefix}"),
                );
            }
            if !uuids.insert(uuid) {
                problems.add_problem(&path, format!("{uuid} is there twice; UUIDs must differ"));
            }
        }
        let minor = gpu.minor;
        if !minors.insert(minor) {
            let what = format!("two cards have the device node {minor}; give each its own `minor`");
            problems.add_problem(&format!("gpus/{at}/minor"), what);
        }
    }
}

/// Checks the profile's own models.
pub(super) fn check_models(models: &BTreeMap<String, GpuModel>, problems: &mut ProfileProblems) {
    for (key, model) in models {
        let mut wrong = |field: &str, what: String| {
            problems.add_problem(
                &format!("models/{key}/{field}"),
                format!("model {key}: {what}"),
            );
        };
        let figures = [
            ("device_id", &model.device_id, 4, "20b0"),
            ("class", &model.class, 6, "030200"),
        ];
        for (field, text, length, example) in figures {
            if !is_hex(text, length) {
                let what = format!("`{text}` is no {field} of {length} hex digits, as {example}");
                wrong(field, what);
            }
        }
        let (vendor, device) = model.subsystem.split_once(':').unwrap_or_default();
        if !is_hex(vendor, 4) || !is_hex(device, 4) {
            let what = format!("`{}` is no subsystem such as 10de:134f", model.subsystem);
            wrong("subsystem", what);
        }
        if model.memory_mib == 0 || model.reserved_mib >= model.memory_mib {
            let what = "memory_mib must be more than reserved_mib, which the driver keeps";
            wrong("memory_mib", what.to_owned());
        }
        for (at, shape) in model.mig.iter().enumerate() {
            let twice = model.mig[..at].iter().any(|o| same(o, shape));
            if twice || !fits_model(model, shape) {
                let why = if twice {
                    "has the name, the number or the id of another"
                } else {
                    "does not fit on the card; it may have 8 slices and the card's memory at most"
                };
                wrong(
                    &format!("mig/{at}"),
                    format!("MIG profile {} {why}", shape.name),
                );
            }
        }
    }
}

fn same(one: &MigProfile, other: &MigProfile) -> bool {
    one.name == other.name || one.profile == other.profile || one.id == other.id
}

fn fits_model(model: &GpuModel, shape: &MigProfile) -> bool {
    (1..=SLICES.0).contains(&shape.slices)
        && (1..=SLICES.1).contains(&shape.memory_slices)
        && (1..=model.memory_mib).contains(&shape.memory_mib)
        && shape.count > 0
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| b.is_ascii_hexdigit())
}
