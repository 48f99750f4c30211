//! Choice of a container's devices: the rules of the device manager without its calls
//! (`pkg/kubelet/cm/devicemanager/manager.go`, `devicesToAllocate`).

use std::{
    collections::{BTreeSet, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::state::KubeletState;

/// Device ids of one resource.
pub(super) type DeviceIds = BTreeSet<String>;

/// Request of one container for one resource.
pub(super) struct DeviceNeed<'a> {
    pub(super) container: &'a str,
    pub(super) resource: &'a str,
    pub(super) count: usize,
}

/// Next step of the kubelet for a request.
pub(super) enum DeviceChoice {
    /// All devices are determined; the plugin is not asked.
    Made(DeviceIds),
    /// The plugin may choose: as many of `available` as `taken` has too few.
    Open {
        available: DeviceIds,
        taken: DeviceIds,
    },
}

// === impl DeviceNeed ===

impl DeviceNeed<'_> {
    pub(super) fn choose_devices(
        &self,
        state: &KubeletState,
        reusable: &DeviceIds,
    ) -> Result<DeviceChoice, String> {
        check_present(state, self.resource, &DeviceIds::new())?;
        // Devices of init containers come first.
        let taken: DeviceIds = reusable.iter().take(self.count).cloned().collect();
        let missing = self.count - taken.len();
        if missing == 0 {
            return Ok(DeviceChoice::Made(taken));
        }
        let in_use = state.in_use(self.resource);
        let mut available = healthy_ids(state, self.resource);
        available.retain(|id| !in_use.contains(id));
        if available.len() < missing {
            return Err(format!(
                "requested number of devices unavailable for {}. Requested: {missing}, Available: {}",
                self.resource,
                available.len()
            ));
        }
        // The kubelet asks for a preference only if there is a choice.
        if available.len() == missing {
            return Ok(DeviceChoice::Made(
                available.into_iter().chain(taken).collect(),
            ));
        }
        Ok(DeviceChoice::Open { available, taken })
    }
}

/// Checks the kubelet's conditions on a resource that a pod requests, or on devices that it holds.
pub(super) fn check_present(
    state: &KubeletState,
    resource: &str,
    held: &DeviceIds,
) -> Result<(), String> {
    let known = state.resources.get(resource);
    // Known from the checkpoint alone is enough here; such a resource fails the next check.
    if known.is_none_or(|known| known.devices.is_none()) {
        return Err(format!("cannot allocate unregistered device {resource}"));
    }
    let healthy = healthy_ids(state, resource);
    if healthy.is_empty() {
        return Err(format!(
            "no healthy devices present; cannot allocate unhealthy devices {resource}"
        ));
    }
    if !healthy.is_superset(held) {
        return Err(format!(
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices {resource}"
        ));
    }
    Ok(())
}

fn healthy_ids(state: &KubeletState, resource: &str) -> DeviceIds {
    let devices = state.listed_devices(resource).into_iter();
    let healthy = devices.filter(|(_, device)| device.healthy);
    healthy.map(|(id, _)| id).collect()
}

/// Error in a preferred allocation; `None` if it is correct.
pub(super) fn flaw(
    answer: &[String],
    available: &DeviceIds,
    must: &DeviceIds,
    size: usize,
) -> Option<String> {
    let distinct: HashSet<_> = answer.iter().collect();
    if distinct.len() != answer.len() {
        return Some("a device is named twice".to_owned());
    }
    if let Some(id) = answer.iter().find(|id| !available.contains(*id)) {
        return Some(format!("device {id} is not available"));
    }
    if let Some(id) = must.iter().find(|id| !distinct.contains(id)) {
        return Some(format!("device {id} must be included"));
    }
    (answer.len() != size).then(|| format!("{} devices instead of {size}", answer.len()))
}

/// Device ids in an arbitrary order, as Go's maps give them. The order is the same for the same
/// ids.
pub(super) fn shuffled(ids: &DeviceIds) -> Vec<String> {
    let mut ids: Vec<_> = ids.iter().cloned().collect();
    ids.sort_by_cached_key(|id| {
        let mut hash = DefaultHasher::new();
        id.hash(&mut hash);
        hash.finish()
    });
    ids
}
