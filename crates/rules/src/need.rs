//! Requirements of a resource on its node.

use config::{Backends, Pool};
use model::{Companions, ResourceName};

/// Resource that this node is to offer, with the facts and settings that its requirements depend
/// on.
#[derive(Clone, Copy, Debug)]
pub struct ResourceNeed<'a> {
    /// Name of the resource; absent for the requirements that hold for every resource of the pool.
    pub resource: Option<&'a ResourceName>,
    /// Pool of the resource. The sharing method `auto` means that no method is chosen yet: the
    /// vendor checks only what its best method needs. Any other method is the one that is used.
    pub pool: &'a Pool,
    /// Device nodes, channels and daemons that the vendor's probe reports, by class.
    pub companions: &'a Companions,
    /// Settings of each vendor.
    pub settings: &'a Backends,
}

/// Missing requirement. Until the requirement is met, units of the resource are listed as
/// Unhealthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRequirement {
    /// The missing thing and the remedy, for a person.
    pub reason: String,
    /// True if the config demands the requirement. If it is missing when the agent starts,
    /// `failOnInitError` ends the agent.
    pub is_required: bool,
}
