//! The node's `/dev`: the usual nodes, and the driver's device nodes under a major number without a
//! driver. A container that may open such a node gets ENXIO, any other one EPERM.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use anyhow::{Context as _, Result};

use crate::root::{make_node, mount};

/// Nodes that all cards share, and their minor numbers.
pub const SHARED: [(&str, u32); 4] = [
    ("nvidiactl", 255),
    ("nvidia-uvm", 254),
    ("nvidia-uvm-tools", 253),
    ("nvidia-modeset", 252),
];

/// A node that only one group may use, and the id of the group.
const GROUPED: (&str, u32) = ("nvidia-modeset", 4044);

/// Number of cards that get a node; more than any profile has.
const CARDS: u32 = 16;

/// Offset of the minor numbers of capability nodes, above those of the cards.
const CAPABILITIES: u32 = 1000;
/// Number of capabilities that get a node; as many as eight cards have.
const CAPABILITY_COUNT: u32 = 1100;

/// Nodes that only some devices have: paths and minor numbers.
pub type Own = BTreeMap<String, u32>;

/// Usual nodes of a Linux machine.
const USUAL: [(&str, u32, u32); 7] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("kmsg", 1, 11),
    ("tty", 5, 0),
];

/// Creates the node's `/dev`.
///
/// # Errors
/// If a node cannot be created.
pub fn populate(dev: &Path) -> Result<()> {
    mount("tmpfs", dev, "tmpfs", "mode=755")?;
    for (name, major, minor) in USUAL {
        make_node(&dev.join(name), major, minor)?;
    }
    for folder in ["pts", "shm", "mqueue"] {
        fs_err::create_dir(dev.join(folder))?;
    }
    mount(
        "devpts",
        &dev.join("pts"),
        "devpts",
        "ptmxmode=0666,mode=620",
    )?;
    mount("tmpfs", &dev.join("shm"), "tmpfs", "")?;
    mount("mqueue", &dev.join("mqueue"), "mqueue", "")?;
    for (name, target) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ] {
        fs_err::os::unix::fs::symlink(target, dev.join(name))?;
    }
    let major = major()?;
    fs_err::create_dir(dev.join("nvidia-caps"))?;
    let capabilities = (1..=CAPABILITY_COUNT).map(capability);
    for (path, minor) in driver_nodes().chain(capabilities) {
        make_node(&dev.join(path.trim_start_matches("/dev/")), major, minor)?;
    }
    let (name, group) = GROUPED;
    let path = dev.join(name);
    fs_err::os::unix::fs::chown(&path, None, Some(group))?;
    fs_err::set_permissions(&path, PermissionsExt::from_mode(0o660))?;
    Ok(())
}

/// Node of a card: path and minor number.
pub fn card(minor: u32) -> (String, u32) {
    (format!("/dev/nvidia{minor}"), minor)
}

/// Node of a MIG capability: path and minor number.
pub fn capability(right: u32) -> (String, u32) {
    let path = format!("/dev/nvidia-caps/nvidia-cap{right}");
    (path, CAPABILITIES + right)
}

/// Device nodes of the driver: paths and minor numbers.
pub fn driver_nodes() -> impl Iterator<Item = (String, u32)> {
    (0..CARDS)
        .map(card)
        .chain(SHARED.map(|(name, minor)| (format!("/dev/{name}"), minor)))
}

/// Major number for local use that no driver of this machine has.
///
/// # Errors
/// If all are in use.
pub fn major() -> Result<u32> {
    let text = fs_err::read_to_string("/proc/devices")?;
    free(&text).context("each of the device numbers 120 to 127 has a driver; unload one of them")
}

/// Majors 120 to 127 are for local and experimental use (`Documentation/admin-guide/devices.txt`).
fn free(devices: &str) -> Option<u32> {
    let first = |line: &str| line.split_whitespace().next()?.parse().ok();
    let taken: BTreeSet<u32> = devices.lines().filter_map(first).collect();
    (120..=127).find(|major| !taken.contains(major))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_first_number_without_a_driver() {
        assert_eq!(
            free("Character devices:\n  1 mem\n120 a\n121 b\n"),
            Some(122)
        );
    }

    #[test]
    fn finds_none_when_all_are_taken() {
        let all: Vec<String> = (120..=127).map(|n| format!("{n} x")).collect();
        assert_eq!(free(&all.join("\n")), None);
    }
}
