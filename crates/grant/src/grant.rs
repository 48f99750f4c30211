//! Devices → edits, as the rules of their vendors make them, for any front end; and ids → edits, for the
//! device plugin.

use std::collections::BTreeMap;

use config::{Handover, ListStrategy, Sharing};
use model::{Device, Extras, ResourceName, Snapshot};
use pool::Offer;
use rules::{EditRequest, Grant, Lists, Reason, Vendors};

use crate::{Error, check, extra};

/// Devices that a container is to be given, and all that the edits for them depend on.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The resource, or what else the devices are asked for under.
    pub resource: &'a ResourceName,
    /// The devices, in the order of the request, each once. They may be of several vendors.
    pub devices: &'a [&'a Device],
    /// The sharing of the devices; its method is not `auto`.
    pub sharing: &'a Sharing,
    /// The parts that are handed over.
    pub handover: &'a Handover,
    /// The ways in which the container runtime is told.
    pub lists: &'a Lists,
    /// The snapshot that the devices are of.
    pub snapshot: &'a Snapshot,
    /// The vendors whose rules the devices follow.
    pub vendors: Vendors,
}

// === impl Ask ===

impl<'a> Ask<'a> {
    /// Asks for devices of an offer as its pool hands them over.
    pub(crate) fn of(offer: &'a Offer, devices: &'a [&'a Device], lists: &'a Lists) -> Self {
        Self {
            resource: &offer.resource,
            devices,
            sharing: &offer.pool.sharing,
            handover: &offer.pool.handover,
            lists,
            snapshot: &offer.snapshot,
            vendors: offer.vendors,
        }
    }
}

/// Makes what a container gets for `ids` of `offer`. It depends on nothing but the two.
///
/// # Errors
/// The reason why the ids are not granted, see [`check()`].
pub fn grant(offer: &Offer, ids: &[String]) -> Result<Grant, Error> {
    let devices = check(offer, ids)?;
    Ok(edits(&Ask::of(offer, &devices, &offer.lists)))
}

/// Makes the edits for devices, vendor by vendor, and what goes with them to the kubelet. Device nodes are
/// among them unless the handover says not to, or a CDI device carries them (rule 8).
pub fn edits(ask: &Ask<'_>) -> Grant {
    let mut by_vendor: BTreeMap<&str, Vec<&Device>> = BTreeMap::new();
    for device in ask.devices {
        by_vendor.entry(&device.vendor).or_default().push(device);
    }
    let nothing = Extras::default();
    let mut grant = Grant::default();
    for (vendor, devices) in by_vendor {
        let backend = ask.snapshot.backend(vendor);
        grant.add(ask.vendors.of(vendor).edits(&EditRequest {
            resource: ask.resource,
            devices: &devices,
            sharing: ask.sharing,
            handover: ask.handover,
            lists: ask.lists,
            extras: backend.map_or(&nothing, |backend| &backend.extras),
        }));
    }
    extra::add_edits(ask, &mut grant);
    let nodes = &mut grant.edits.device_nodes;
    if !ask.handover.device_nodes {
        nodes.clear();
    }
    nodes.sort();
    nodes.dedup();
    grant
}

/// Lists the CDI names that a container is given with one device of the offer.
pub fn cdi_names(offer: &Offer, device: &Device) -> Vec<String> {
    let lists = Lists {
        strategies: vec![ListStrategy::CdiCri],
        reason: Reason::Configured,
    };
    edits(&Ask::of(offer, &[device], &lists)).cdi_devices
}

#[cfg(test)]
mod tests;
