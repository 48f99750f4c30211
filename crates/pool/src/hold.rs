//! What a resource waits for. While something is missing that its containers cannot do without, its
//! units are listed and Unhealthy, with the reason; they are well again when it is there.

use config::{Config, Pool};
use model::{Companions, ResourceName, Snapshot};
use rules::{Missing, Need, Rules};

use crate::Unit;

/// The first thing that the config requires of a vendor and the node does not have, for a person.
pub fn missing_requirement(
    config: &Config,
    rules: &dyn Rules,
    snapshot: &Snapshot,
) -> Option<String> {
    let pools = config.pools.pools.iter();
    let mut all = pools.filter_map(|pool| missing(rules, None, pool, config, snapshot));
    let required = all.find(|missing| missing.is_required)?;
    Some(required.reason)
}

/// The first thing that is missing for a resource of this pool on devices of a vendor.
pub(crate) fn missing(
    rules: &dyn Rules,
    resource: Option<&ResourceName>,
    pool: &Pool,
    config: &Config,
    snapshot: &Snapshot,
) -> Option<Missing> {
    let backend = snapshot.backend(rules.vendor().name);
    let nothing = Companions::default();
    rules.missing(&Need {
        resource,
        pool,
        companions: backend.map_or(&nothing, |backend| &backend.extras.companions),
        settings: &config.backends,
    })
}

/// Holds a unit back. One that is Unhealthy keeps its own reason.
pub(crate) fn keep(missing: &Missing, mut unit: Unit) -> Unit {
    if unit.healthy {
        unit.healthy = false;
        unit.reason.clone_from(&missing.reason);
    }
    unit
}

#[cfg(test)]
mod tests;
