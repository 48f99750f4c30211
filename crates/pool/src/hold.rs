//! Requirements of a resource. While something is missing that the containers of a resource need,
//! its units are listed as Unhealthy, with the reason. They are healthy again as soon as it is
//! there.

use config::{Config, Pool};
use model::{Companions, ResourceName, Snapshot};
use rules::{MissingRequirement, ResourceNeed, Rules};

use crate::Unit;

/// Returns the first thing that the config requires of a vendor and that the node does not have,
/// for a person.
pub fn missing_requirement(
    config: &Config,
    rules: &dyn Rules,
    snapshot: &Snapshot,
) -> Option<String> {
    let pools = config.pools.pools.iter();
    let mut all = pools.filter_map(|pool| check_needs(rules, None, pool, config, snapshot));
    let required = all.find(|missing| missing.is_required)?;
    Some(required.reason)
}

/// Returns the first thing that is missing for a resource of this pool, on devices of one vendor.
pub(crate) fn check_needs(
    rules: &dyn Rules,
    resource: Option<&ResourceName>,
    pool: &Pool,
    config: &Config,
    snapshot: &Snapshot,
) -> Option<MissingRequirement> {
    let backend = snapshot.find_backend(rules.vendor().name);
    let nothing = Companions::default();
    rules.find_missing(&ResourceNeed {
        resource,
        pool,
        companions: backend.map_or(&nothing, |backend| &backend.extras.companions),
        settings: &config.backends,
    })
}

/// Marks a unit as unhealthy. A unit that is unhealthy already keeps its own reason.
pub(crate) fn mark_waiting(missing: &MissingRequirement, mut unit: Unit) -> Unit {
    if unit.healthy {
        unit.healthy = false;
        unit.reason.clone_from(&missing.reason);
    }
    unit
}

#[cfg(test)]
mod tests;
