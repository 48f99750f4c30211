//! What a container says that it was given.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The report of the program `witness`, printed as one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The mount points.
    pub mounts: BTreeSet<String>,
    /// What opening each `nvidia…` node below `/dev` answered, by path.
    pub nodes: BTreeMap<String, Answer>,
    /// What opening a node that the container made for itself answered, by minor number.
    pub tried: BTreeMap<u32, Answer>,
}

/// What an attempt to open a device node came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It opened.
    Opened,
    /// Allowed, but no driver has this number: what our nodes answer to those who may use them.
    NoDevice,
    /// Forbidden by the device cgroup.
    Forbidden,
    /// Another error.
    Error(i32),
}
