//! Ids → edits: the devices behind the ids, then what the rules of their vendors give for them.

use std::collections::BTreeMap;

use config::ListStrategy;
use model::{Device, Extras};
use pool::Offer;
use rules::{EditRequest, Edits, Lists, Reason, Runtime, resolve_lists};

use crate::{Error, check::check};

/// What a container gets for `ids` of `offer`. It depends on nothing but the two. Device nodes are
/// given to the kubelet unless the pool says not to, or a CDI device carries them (rule 8).
pub fn grant(offer: &Offer, ids: &[String]) -> Result<Edits, Error> {
    let devices = check(offer, ids)?;
    // Who writes the specs has decided `auto`; where nobody does, nothing is known.
    let lists = resolve_lists(&offer.pool.handover, Runtime::default());
    let mut edits = edits(offer, &devices, &lists);
    if !offer.pool.handover.device_nodes {
        edits.devices.clear();
    }
    Ok(edits)
}

/// The CDI names that a container is given with one device of the offer.
pub fn cdi_names(offer: &Offer, device: &Device) -> Vec<String> {
    let lists = Lists {
        strategies: vec![ListStrategy::CdiCri],
        reason: Reason::Configured,
    };
    edits(offer, &[device], &lists).cdi_devices
}

/// The edits for devices of an offer, vendor by vendor.
pub(crate) fn edits(offer: &Offer, devices: &[&Device], lists: &Lists) -> Edits {
    let mut by_vendor: BTreeMap<&str, Vec<&Device>> = BTreeMap::new();
    for device in devices {
        by_vendor.entry(&device.vendor).or_default().push(device);
    }
    let nothing = Extras::default();
    let mut edits = Edits::default();
    for (vendor, devices) in by_vendor {
        let backend = offer.snapshot.backend(vendor);
        edits.add(offer.vendors.of(vendor).edits(&EditRequest {
            resource: &offer.resource,
            devices: &devices,
            sharing: &offer.pool.sharing,
            handover: &offer.pool.handover,
            lists,
            extras: backend.map_or(&nothing, |backend| &backend.extras),
        }));
    }
    edits.devices.sort();
    edits.devices.dedup();
    edits
}

#[cfg(test)]
mod tests;
