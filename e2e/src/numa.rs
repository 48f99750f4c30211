//! Two NUMA nodes for the kubelet, on a machine that may have one: each node has half of the
//! processors. The kubelet reads the nodes from a folder in sysfs, so another folder is mounted
//! over it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rustix::mount::UnmountFlags;

use crate::place;

/// Folder of the NUMA nodes in sysfs.
const NODES: &str = "/sys/devices/system/node";
/// Folder of the processors in sysfs.
const CPUS: &str = "/sys/devices/system/cpu";

/// Processors of each of the two nodes.
pub type Halves = [Vec<u32>; 2];

/// Shows two nodes until [`hide`] is called. Returns their processors.
///
/// # Errors
/// If the machine has one processor, or the mount fails.
pub fn show() -> Result<Halves> {
    hide()?;
    let online = fs_err::read_to_string(format!("{CPUS}/online"))?;
    let mut first = numbers(&online);
    let second = first.split_off(first.len() / 2);
    ensure!(
        !first.is_empty(),
        "two NUMA nodes need two processors, and this machine has one"
    );
    let halves = [first, second];
    for (node, cpus) in halves.iter().enumerate() {
        make(node, cpus)?;
    }
    fs_err::write(format!("{}/online", place::NUMA), "0-1\n")?;
    rustix::mount::mount_bind(place::NUMA, NODES)
        .with_context(|| format!("cannot bind {} to {NODES}", place::NUMA))?;
    Ok(halves)
}

/// Shows the machine's own nodes again. Does nothing if they are shown already.
///
/// # Errors
/// If the kernel rejects the unmount.
pub fn hide() -> Result<()> {
    let mounts = fs_err::read_to_string("/proc/self/mounts")?;
    let is_ours = |line: &&str| line.split(' ').nth(1) == Some(NODES);
    for _ in mounts.lines().filter(is_ours) {
        rustix::mount::unmount(NODES, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {NODES}"))?;
    }
    Ok(())
}

/// Parses numbers as the kernel lists them: `0-3,8`.
pub fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().ok()?;
        Some(first..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Formats numbers for a config file: `0,1,2`.
pub fn list(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(",")
}

/// Creates the files of a node that the kubelet reads.
fn make(node: usize, cpus: &[u32]) -> Result<()> {
    let folder = Path::new(place::NUMA).join(format!("node{node}"));
    fs_err::create_dir_all(folder.join("hugepages"))?;
    let distance = if node == 0 { "10 21\n" } else { "21 10\n" };
    let memory = format!("Node {node} MemTotal: 4194304 kB\nNode {node} MemFree: 4194304 kB\n");
    for (name, text) in [
        ("cpulist", format!("{}\n", list(cpus))),
        ("distance", distance.to_owned()),
        ("meminfo", memory),
    ] {
        fs_err::write(folder.join(name), text)?;
    }
    for cpu in cpus {
        let link = folder.join(format!("cpu{cpu}"));
        if !fs_err::exists(&link)? {
            fs_err::os::unix::fs::symlink(format!("{CPUS}/cpu{cpu}"), link)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ranges_and_single_numbers() {
        assert_eq!(numbers("0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(numbers("\n"), [0u32; 0]);
        assert_eq!(list(&numbers("1-3")), "1,2,3");
    }
}
