//! Things that a resource cannot do without on its node.

use config::{Backends, Pool};
use model::{Companions, ResourceName};

/// A resource that is to be handed out on this node.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// The resource; absent where the question is only what the config requires of every resource of the pool.
    pub resource: Option<&'a ResourceName>,
    /// Its pool. The method `auto` asks only for what the vendor's best method needs; any
    /// other is decided.
    pub pool: &'a Pool,
    /// The things that the vendor's driver has beside the devices.
    pub companions: &'a Companions,
    /// The settings of each vendor.
    pub settings: &'a Backends,
}

/// Something that is missing. Units of the resource are listed and Unhealthy until it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The thing and its remedy, for a person.
    pub reason: String,
    /// True if the config requires it, so that `failOnInitError` ends the agent without it.
    pub is_required: bool,
}
