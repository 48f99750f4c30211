//! The default division of a node: whole NVIDIA cards are `nvidia.com/gpu`, the partitions of
//! partitioned cards `nvidia.com/mig-<profile>`.

use std::{collections::BTreeMap, sync::Arc};

use model::{Entry, Kind, ResourceName, Snapshot, State};

use crate::{Offer, Offers, Unit, UnitId};

/// The offers of a snapshot. Devices for which there is no valid resource name are left out.
pub fn offers(snapshot: &Arc<Snapshot>) -> Offers {
    let mut by_resource: BTreeMap<ResourceName, Vec<Unit>> = BTreeMap::new();
    for entry in &snapshot.devices {
        if let Some(resource) = resource(entry) {
            by_resource.entry(resource).or_default().push(unit(entry));
        }
    }
    by_resource
        .into_iter()
        .map(|(resource, mut units)| {
            units.sort_by(|a, b| a.id.cmp(&b.id));
            Arc::new(Offer {
                resource,
                units,
                snapshot: Arc::clone(snapshot),
            })
        })
        .collect()
}

/// The resource a device is counted under. A partitioned card itself is not on offer: what is
/// left of it is its partitions.
fn resource(entry: &Entry) -> Option<ResourceName> {
    let base = match &entry.device.kind {
        Kind::Card { partitioned: true } => return None,
        Kind::Card { partitioned: false } => "gpu".to_owned(),
        // NVIDIA's names: `1g.10gb+me` becomes `mig-1g.10gb.me`.
        Kind::Partition { profile, .. } => format!("mig-{}", profile.replace('+', ".")),
    };
    format!("{}.com/{base}", entry.device.vendor).parse().ok()
}

fn unit(entry: &Entry) -> Unit {
    Unit {
        id: UnitId::new(entry.device.id.as_str()),
        device: entry.device.id.clone(),
        // Unknown is not Unhealthy: a monitor that is down takes no card away (rule 6).
        healthy: entry.verdict.state != State::Unhealthy,
        reason: entry.verdict.reason(),
        numa: entry.device.numa,
    }
}

#[cfg(test)]
mod tests;
