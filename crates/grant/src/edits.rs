//! The edits to a container: environment and device nodes.

use std::collections::BTreeMap;

use pool::Offer;
use serde::Serialize;

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

/// What a container gets for `ids` of `offer`.
pub fn grant(offer: &Offer, ids: &[String]) -> Result<Edits, Error> {
    let _ = (offer, ids);
    Ok(Edits::default())
}
