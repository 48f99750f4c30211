//! Edits for devices, made by the rules of their vendors, for any front end; and edits for ids, for
//! the device plugin.

use std::collections::BTreeMap;

use config::{Handover, ListStrategy, Sharing};
use model::{Device, Extras, ResourceName, Snapshot};
use pool::Offer;
use rules::{EditRequest, Grant, ListReason, ResolvedLists, Vendors};

use crate::{Error, check_ids, extra};

/// Devices for a container, with everything that their edits depend on.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRequest<'a> {
    /// Name of the resource, or of the request that stands for it.
    pub resource: &'a ResourceName,
    /// Devices in the order of the request, each once. They may be of several vendors.
    pub devices: &'a [&'a Device],
    /// Sharing of the devices. Its method is never `auto`.
    pub sharing: &'a Sharing,
    /// Parts that are handed over.
    pub handover: &'a Handover,
    /// Strategies by which the container runtime learns of the devices.
    pub lists: &'a ResolvedLists,
    /// Snapshot with the devices and their backends.
    pub snapshot: &'a Snapshot,
    /// Vendors whose rules apply to the devices.
    pub vendors: Vendors,
}

// === impl DeviceRequest ===

impl<'a> DeviceRequest<'a> {
    /// Asks for devices of an offer, with the handover of its pool.
    pub(crate) fn for_offer(
        offer: &'a Offer,
        devices: &'a [&'a Device],
        lists: &'a ResolvedLists,
    ) -> Self {
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

/// Makes the edits for `ids` of `offer`. The answer depends on nothing else.
///
/// The kubelet stores the answer in its checkpoint and uses it again for each restart of the
/// container, after a reboot of the node too. Paths and CDI names in it must stay valid as long as
/// the pod lives.
///
/// # Errors
/// The ids may not be granted, see [`check_ids`].
pub fn grant_ids(offer: &Offer, ids: &[String]) -> Result<Grant, Error> {
    let devices = check_ids(offer, ids)?;
    Ok(make_edits(&DeviceRequest::for_offer(
        offer,
        &devices,
        &offer.lists,
    )))
}

/// Makes the edits for devices, vendor by vendor, with the annotations and CDI names for the
/// kubelet. The edits contain the device nodes, unless the handover excludes them or a CDI device
/// contains them (rule 8).
pub fn make_edits(ask: &DeviceRequest<'_>) -> Grant {
    let mut by_vendor: BTreeMap<&str, Vec<&Device>> = BTreeMap::new();
    for device in ask.devices {
        by_vendor.entry(&device.vendor).or_default().push(device);
    }
    let nothing = Extras::default();
    let mut grant = Grant::default();
    for (vendor, devices) in by_vendor {
        let backend = ask.snapshot.find_backend(vendor);
        grant.add_grant(ask.vendors.find_rules(vendor).edit_container(&EditRequest {
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
    // Nodes that only the runtime's hook adds are missing in the cgroup's device list of runc and
    // systemd. A container loses them at the next `systemctl daemon-reload`
    // (NVIDIA/nvidia-container-toolkit issue 48), so that only the config can leave them out.
    if !ask.handover.device_nodes {
        nodes.clear();
    }
    // Two MIG devices of one card share the node of the card.
    nodes.sort();
    nodes.dedup();
    grant
}

/// Lists the CDI names of a container with one device of the offer.
pub fn cdi_names(offer: &Offer, device: &Device) -> Vec<String> {
    let lists = ResolvedLists {
        strategies: vec![ListStrategy::CdiCri],
        reason: ListReason::Configured,
    };
    make_edits(&DeviceRequest::for_offer(offer, &[device], &lists)).cdi_devices
}

#[cfg(test)]
mod tests;
