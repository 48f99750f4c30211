//! Texts and tables of the demo.

use std::collections::BTreeMap;

use api::{DevicePage, ListedDevice};
use comfy_table::Table;
use model::{AttributeName, Kind, Value};
use sim::kubelet::{AdmittedPod, DeviceCounts, Kubelet};
use tokio::time::Instant;

use super::super::{
    super::table::new_table,
    tell::{bad, good, list, time},
};

/// Suggestions for after the demo.
pub(super) const NEXT: &str = "
To play on:
  ostler demo                        in a terminal, without --oneshot: the node stays up
  ostler demo --profile a100-mig     GPUs in parts; `ostler sim profiles` lists more machines
  ostler sim create /tmp/node        a simulated node for the agent or any program that uses NVML";

/// Reason for which the demo is shorter on some machines.
pub(super) const TOGETHER: &str = "
On this machine a container gets all GPUs or none, so that for Kubernetes they are one device. On
others the story goes on: a GPU fails under a pod, and comes back.";

/// Short name of a device.
pub(in crate::cli::demo) fn name(entry: &ListedDevice) -> String {
    let device = &entry.device;
    let index = index_or_id(entry);
    match &device.kind {
        Kind::Card { .. } => format!("GPU {index}"),
        Kind::Partition { profile, .. } => {
            let profile = profile.as_deref().unwrap_or("-");
            format!("MIG device {index} ({profile})")
        }
    }
}

/// Short name of several devices: `GPUs 0 and 1`.
pub(super) fn names(entries: &[&ListedDevice]) -> String {
    let [first, _, ..] = entries else {
        return entries
            .first()
            .map_or_else(String::new, |entry| name(entry));
    };
    let noun = match first.device.kind {
        Kind::Card { .. } => "GPUs",
        Kind::Partition { .. } => "MIG devices",
    };
    let all: Vec<String> = entries.iter().map(|entry| index_or_id(entry)).collect();
    format!("{noun} {}", list(&all))
}

fn index_or_id(entry: &ListedDevice) -> String {
    let ListedDevice { device, .. } = entry;
    device
        .index
        .map_or_else(|| device.id.to_string(), |index| index.to_string())
}

/// Sorts into the driver's order: by card, then by GPU instance and compute instance.
pub(super) fn sort(entries: &mut [&ListedDevice]) {
    let number = |entry: &&ListedDevice, name: AttributeName| {
        entry.device.attributes.get(&name).and_then(Value::as_int)
    };
    let key = |entry: &&ListedDevice| {
        let gpu = number(entry, nvidia_rules::names::GPU_INSTANCE);
        let compute = number(entry, nvidia_rules::names::COMPUTE_INSTANCE);
        (entry.device.pci, gpu, compute)
    };
    entries.sort_by_key(key);
}

/// Describes the driver and the number of devices.
pub(super) fn driver(snapshot: &DevicePage) -> String {
    let (cards, parts): (Vec<_>, Vec<_>) = snapshot
        .devices
        .iter()
        .partition(|entry| matches!(entry.device.kind, Kind::Card { .. }));
    let mut found = count(cards.len(), "GPU", "GPUs");
    if !parts.is_empty() {
        let parts = count(parts.len(), "MIG device", "MIG devices");
        found = format!("{found}, some of them cut into {parts}");
    }
    let driver = snapshot.backends.iter().find_map(|b| b.driver.as_ref());
    let Some(driver) = driver else {
        return format!("It finds {found}:");
    };
    let Some(library) = &driver.library else {
        let release = &driver.version;
        return format!(
            "There is no driver library. By the system's files (release {release}) it finds {found}:"
        );
    };
    let cuda = driver.cuda.as_deref().unwrap_or("-");
    format!(
        "It loads {library}\n(driver {}, CUDA {cuda}) and finds {found}:",
        driver.version
    )
}

/// Table of the cards, with their partitions.
pub(super) fn cards(snapshot: &DevicePage) -> Table {
    let partition = |entry: &ListedDevice| matches!(entry.device.kind, Kind::Partition { .. });
    let any = snapshot.devices.iter().any(partition);
    let header = ["GPU", "MODEL", "MEMORY", "PCI", "NUMA", "MIG DEVICES"];
    let mut rows = new_table(&header[..header.len() - usize::from(!any)]);
    let mut entries: Vec<&ListedDevice> = snapshot.devices.iter().collect();
    sort(&mut entries);
    for entry in &entries {
        let device = &entry.device;
        let Kind::Card { partitioned } = device.kind else {
            continue;
        };
        let mib = device.memory_bytes().map(|bytes| bytes >> 20);
        let mut row = vec![
            index_or_id(entry),
            or_dash(device.product_name()),
            mib.map_or_else(|| "-".to_owned(), |mib| format!("{mib} MiB")),
            or_dash(device.pci),
            or_dash(device.numa),
        ];
        row.extend(any.then(|| parts(&entries, entry, partitioned)));
        rows.add_row(row);
    }
    rows
}

/// Describes the partitions of a card: `2 × 1g.5gb, 1 × 3g.20gb`.
fn parts(entries: &[&ListedDevice], card: &ListedDevice, partitioned: bool) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        if let Kind::Partition {
            parent, profile, ..
        } = &entry.device.kind
            && *parent == card.device.id
        {
            *counts.entry(profile.as_deref().unwrap_or("-")).or_default() += 1;
        }
    }
    if counts.is_empty() {
        return if partitioned { "none" } else { "-" }.to_owned();
    }
    let words: Vec<String> = counts
        .iter()
        .map(|(profile, count)| format!("{count} × {profile}"))
        .collect();
    words.join(", ")
}

/// Table of the registered resources: number of devices, socket, and time since the agent's start.
pub(super) fn resources(kubelet: &Kubelet, started: Instant) -> Table {
    let mut rows = new_table(&["RESOURCE", "DEVICES", "SOCKET", "AFTER"]);
    for (resource, DeviceCounts { allocatable, .. }) in kubelet.node_status() {
        let first = kubelet.device_lists(&resource).into_iter().next();
        let (socket, after) = match first {
            Some(list) => (list.endpoint, time(list.at.duration_since(started))),
            None => ("-".to_owned(), "-".to_owned()),
        };
        rows.add_row([resource, allocatable.to_string(), socket, after]);
    }
    rows
}

/// Lists everything that the containers of a pod got.
pub(super) fn granted(admitted: &AdmittedPod) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    for container in admitted.containers.values() {
        for (resource, ids) in &container.devices {
            rows.extend(ids.iter().map(|id| (resource.as_str(), id.clone())));
        }
        let envs: BTreeMap<_, _> = container.response.envs.iter().collect();
        let env = |(name, value): (&String, &String)| ("environment", format!("{name}={value}"));
        rows.extend(envs.into_iter().map(env));
        let nodes = container.response.devices.iter();
        let nodes: Vec<&str> = nodes.map(|node| node.container_path.as_str()).collect();
        rows.extend(nodes.chunks(3).map(|few| ("device nodes", few.join("  "))));
    }
    let width = rows.iter().map(|(label, _)| label.len()).max();
    let width = width.unwrap_or_default();
    let mut text = "What its container is given:\n".to_owned();
    let mut last = "";
    for (label, value) in rows {
        let shown = if label == last { "" } else { label };
        text += &format!("\n  {shown:<width$}  {value}");
        last = label;
    }
    text
}

/// Lists the conditions that end the causes of a verdict.
pub(super) fn way_out(entry: &ListedDevice) -> String {
    let mut text = "\nWhat ends this:\n".to_owned();
    for cause in &entry.verdict.causes {
        text += &format!("\n  {}", cause.ends_when);
    }
    text
}

/// Describes the change of capacity and allocatable in the node's status, for the resources that
/// changed.
pub(super) fn change(
    before: &BTreeMap<String, DeviceCounts>,
    after: &BTreeMap<String, DeviceCounts>,
) -> String {
    let mut text = "\nWhat the kubelet tells the cluster:\n".to_owned();
    for (resource, now) in after {
        let was = before.get(resource).copied().unwrap_or_default();
        if was == *now {
            continue;
        }
        let numbers = format!("{} → {}", was.allocatable, now.allocatable);
        let numbers = match now.allocatable < was.allocatable {
            true => bad(&numbers),
            false => good(&numbers),
        };
        text += &format!(
            "\n  {resource}  capacity {}, allocatable {numbers}",
            now.capacity
        );
    }
    text
}

/// Formats a number with its noun.
fn count(number: usize, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
