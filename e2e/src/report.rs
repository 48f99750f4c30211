//! Report of a container about its environment, mounts and devices.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::device::{self, Own};

/// Variable with the container's own devices.
const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES";

/// Report of the program `witness`, printed as one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Mounts, by path in the container.
    pub mounts: BTreeMap<String, Mount>,
    /// All device nodes below `/dev`, by path.
    pub dev: BTreeMap<String, Node>,
    /// Groups of the process.
    pub groups: BTreeSet<u32>,
    /// Result of opening each `nvidia…` node below `/dev`, by path.
    pub nodes: BTreeMap<String, Answer>,
    /// Result of opening nodes that the container created itself, by minor number.
    pub tried: BTreeMap<u32, Answer>,
}

/// A device node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// `c` or `b`.
    pub kind: String,
    /// Major and minor number.
    pub numbers: (u32, u32),
    /// Permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// `r` and `w`, as far as the device cgroup allows them. Containers may create nodes of any
    /// number, so `m` cannot be tested.
    pub rights: String,
}

/// A mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Mounted folder of the file system.
    pub from: String,
    /// Options of this mount: `ro`, `nosuid`.
    pub options: BTreeSet<String>,
    /// True if mounts below it propagate in either direction.
    pub spreads: bool,
}

/// Result of opening a device node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The node was opened.
    Opened,
    /// Allowed, but the number has no driver: the result for our nodes if access is allowed.
    NoDevice,
    /// Forbidden by the device cgroup.
    Forbidden,
    /// Another error.
    Error(i32),
}

// === impl Report ===

impl Report {
    /// Devices of this container, after a check that environment, nodes and rights agree. `all` has
    /// the nodes of each device of the node.
    ///
    /// # Errors
    /// If they disagree.
    pub fn devices(&self, all: &BTreeMap<String, Own>) -> Result<BTreeSet<String>> {
        let ids = self.visible();
        self.has(&ids, all)?;
        Ok(ids)
    }

    /// Checks that nodes and rights are exactly those of these devices. `all` has the nodes of each
    /// device of the node.
    ///
    /// # Errors
    /// If they are not.
    pub fn has(&self, ids: &BTreeSet<String>, all: &BTreeMap<String, Own>) -> Result<()> {
        let mut own = Own::new();
        for id in ids {
            let its = all.get(id).with_context(|| format!("{id} is no device"))?;
            own.extend(its.clone());
        }
        let minors: BTreeSet<u32> = own.values().copied().collect();
        let mut nodes: BTreeSet<String> = own.into_keys().collect();
        if !ids.is_empty() {
            nodes.extend(device::SHARED.map(|(name, _)| format!("/dev/{name}")));
        }
        let seen: BTreeSet<String> = self.nodes.keys().cloned().collect();
        ensure!(
            seen == nodes,
            "{ids:?} have {nodes:?}, but there are {seen:?}"
        );
        for (path, answer) in &self.nodes {
            ensure!(
                *answer == Answer::NoDevice,
                "opening {path} answered {answer:?}"
            );
        }
        ensure!(!self.tried.is_empty(), "it tried no node of its own making");
        for (minor, answer) in &self.tried {
            let expected = match minors.contains(minor) {
                true => Answer::NoDevice,
                false => Answer::Forbidden,
            };
            ensure!(
                *answer == expected,
                "a node {minor} of its own making answered {answer:?}, not {expected:?}"
            );
        }
        Ok(())
    }

    /// Devices in the environment.
    fn visible(&self) -> BTreeSet<String> {
        let value = self.env.get(VISIBLE).map(String::as_str);
        let ids = value.unwrap_or_default().split(',');
        ids.filter(|id| !id.is_empty()).map(str::to_owned).collect()
    }
}

// === impl Mount ===

impl Mount {
    /// Reads a line of `/proc/self/mountinfo`: the mount point and the mount.
    pub fn parse(line: &str) -> Option<(String, Self)> {
        let (mount, _) = line.split_once(" - ")?;
        let words: Vec<&str> = mount.split(' ').collect();
        let (from, point, options) = (words.get(3)?, words.get(4)?, words.get(5)?);
        let spreads = |word: &&str| word.starts_with("shared:") || word.starts_with("master:");
        let mount = Self {
            from: (*from).to_owned(),
            options: options.split(',').map(str::to_owned).collect(),
            spreads: words.iter().skip(6).any(spreads),
        };
        Some(((*point).to_owned(), mount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cards() -> BTreeMap<String, Own> {
        let own = |minor| Own::from([device::card(minor)]);
        BTreeMap::from([("GPU-a".to_owned(), own(0)), ("GPU-b".to_owned(), own(1))])
    }

    /// Report of a correct container with card 1.
    fn good() -> Report {
        let shared = device::SHARED.map(|(name, _)| name);
        let names = shared.into_iter().chain(["nvidia1"]);
        Report {
            env: BTreeMap::from([(VISIBLE.to_owned(), "GPU-b".to_owned())]),
            mounts: BTreeMap::new(),
            dev: BTreeMap::new(),
            groups: BTreeSet::new(),
            nodes: names
                .map(|name| (format!("/dev/{name}"), Answer::NoDevice))
                .collect(),
            tried: BTreeMap::from([(0, Answer::Forbidden), (1, Answer::NoDevice)]),
        }
    }

    #[test]
    fn agrees_when_all_is_of_the_same_card() {
        let devices = good().devices(&cards()).unwrap();
        assert_eq!(devices, BTreeSet::from(["GPU-b".to_owned()]));
    }

    #[test]
    fn disagrees_when_a_node_is_missing_or_too_many() {
        let mut missing = good();
        missing.nodes.remove("/dev/nvidia1");
        assert!(missing.devices(&cards()).is_err());
        let mut more = good();
        more.nodes
            .insert("/dev/nvidia0".to_owned(), Answer::NoDevice);
        assert!(more.devices(&cards()).is_err());
    }

    #[test]
    fn disagrees_when_a_granted_node_is_forbidden() {
        let mut report = good();
        report
            .nodes
            .insert("/dev/nvidia1".to_owned(), Answer::Forbidden);
        assert!(report.devices(&cards()).is_err());
    }

    #[test]
    fn disagrees_when_another_card_can_be_opened() {
        let mut report = good();
        report.tried.insert(0, Answer::NoDevice);
        assert!(report.devices(&cards()).is_err());
    }

    #[test]
    fn disagrees_when_nothing_was_tried() {
        let mut report = good();
        report.tried.clear();
        assert!(report.devices(&cards()).is_err());
    }

    #[test]
    fn reads_mounts_of_the_kernels_list() {
        let line = "36 35 98:0 /a/lib.so /usr/lib.so ro,nodev - ext4 /dev/root rw";
        let (point, mount) = Mount::parse(line).unwrap();
        assert_eq!(
            (point.as_str(), mount.from.as_str()),
            ("/usr/lib.so", "/a/lib.so")
        );
        assert_eq!(mount.options, ["ro", "nodev"].map(str::to_owned).into());
        assert!(!mount.spreads);
        let (_, mount) = Mount::parse("36 35 98:0 / /x rw master:1 - tmpfs none rw").unwrap();
        assert!(mount.spreads);
        assert_eq!(Mount::parse("36 35 98:0 / /x rw"), None);
    }
}
