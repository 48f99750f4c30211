//! Requirements of a resource on its node.

use config::{Backends, Pool};
use model::{Companions, ResourceName};

/// Resource that this node is to offer.
#[derive(Clone, Copy, Debug)]
pub struct ResourceNeed<'a> {
    /// Name of the resource; absent for the requirements that hold for every resource of the pool.
    pub resource: Option<&'a ResourceName>,
    /// Pool of the resource. With the method `auto` the vendor checks only what its best method
    /// needs; any other method is final.
    pub pool: &'a Pool,
    /// Findings of the vendor's probe: device nodes, channels and daemons, by class.
    pub companions: &'a Companions,
    /// Settings of each vendor.
    pub settings: &'a Backends,
}

/// Missing requirement. Units of the resource are listed as Unhealthy until it is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRequirement {
    /// The missing thing and the remedy, for a person.
    pub reason: String,
    /// True if the config requires it, so that `failOnInitError` ends the agent without it.
    pub is_required: bool,
}
