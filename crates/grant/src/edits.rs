//! The edits to a container: environment and device nodes.

use std::collections::{BTreeMap, BTreeSet};

use model::Entry;
use pool::{Offer, Unit};
use serde::Serialize;

/// The variable by which NVIDIA's container runtime and CUDA images learn what is theirs.
const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

/// What a container is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Edits {
    /// Environment variables.
    pub envs: BTreeMap<String, String>,
    /// Device nodes, sorted by path, each once.
    pub devices: Vec<DeviceEdit>,
}

/// A device node in a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DeviceEdit {
    /// The path inside the container.
    pub container_path: String,
    /// The path on the host.
    pub host_path: String,
    /// Some of `r`, `w`, `m`.
    pub permissions: String,
}

/// Why ids are not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was asked for.
    #[error("a request for {resource} names no device")]
    Empty {
        /// Of which resource.
        resource: String,
    },
    /// More ids than the resource has.
    #[error("{requested} of {resource} requested, but this node has only {total}")]
    Oversized {
        /// How many ids were given.
        requested: usize,
        /// Of which resource.
        resource: String,
        /// How many there are.
        total: usize,
    },
    /// The same id twice.
    #[error("{id} is requested twice in one container")]
    Duplicate {
        /// The id.
        id: String,
    },
    /// An id that the resource does not have.
    #[error("{id} is not a device of {resource} on this node")]
    Unknown {
        /// The id.
        id: String,
        /// Of which resource.
        resource: String,
    },
    /// A device that must not be handed out.
    #[error("{id} is unhealthy: {reason}")]
    Unhealthy {
        /// The id.
        id: String,
        /// Why.
        reason: String,
    },
}

/// What a container gets for `ids` of `offer`: the variable, and every device node of every
/// device. Device nodes are never left to the runtime's hooks, which lose them (rule 8).
pub fn grant(offer: &Offer, ids: &[String]) -> Result<Edits, Error> {
    let entries = check(offer, ids)?;
    let visible: Vec<&str> = entries.iter().map(|e| e.device.id.as_str()).collect();
    let paths: BTreeSet<&str> = entries
        .iter()
        .flat_map(|entry| &entry.device.nodes)
        .map(|node| node.path.as_str())
        .collect();
    Ok(Edits {
        envs: BTreeMap::from([(VISIBLE_DEVICES.to_owned(), visible.join(","))]),
        devices: paths.into_iter().map(DeviceEdit::plain).collect(),
    })
}

// === impl DeviceEdit ===

impl DeviceEdit {
    /// The same path inside and outside, to read and write.
    fn plain(path: &str) -> Self {
        Self {
            container_path: path.to_owned(),
            host_path: path.to_owned(),
            permissions: "rw".to_owned(),
        }
    }
}

/// The devices behind `ids` in the order of the request.
fn check<'a>(offer: &'a Offer, ids: &[String]) -> Result<Vec<&'a Entry>, Error> {
    let resource = || offer.resource.to_string();
    if ids.is_empty() {
        return Err(Error::Empty {
            resource: resource(),
        });
    }
    if ids.len() > offer.units.len() {
        return Err(Error::Oversized {
            requested: ids.len(),
            resource: resource(),
            total: offer.units.len(),
        });
    }
    let mut seen = BTreeSet::new();
    ids.iter()
        .map(|id| {
            if !seen.insert(id) {
                return Err(Error::Duplicate { id: id.clone() });
            }
            let unknown = || Error::Unknown {
                id: id.clone(),
                resource: resource(),
            };
            let unit = offer.unit(id).ok_or_else(unknown)?;
            healthy(unit)?;
            offer.entry(unit).ok_or_else(unknown)
        })
        .collect()
}

fn healthy(unit: &Unit) -> Result<(), Error> {
    if unit.healthy {
        return Ok(());
    }
    Err(Error::Unhealthy {
        id: unit.id.to_string(),
        reason: unit.reason.clone(),
    })
}

#[cfg(test)]
mod tests;
