//! Ownership of devices: a backend may report only its own.

use model::DeviceId;
use probe::{BackendState, Update};

use super::Inventory;

/// Limit of refused devices that are named in a backend's message.
const NAMED: usize = 3;

// === impl Inventory ===

impl Inventory {
    /// True for an update about a device of another backend. Logs each pair of backends once.
    pub(super) fn refuses(&mut self, update: &Update) -> bool {
        let Some((backend, device)) = update.subject_device() else {
            return false;
        };
        let known = self.known.get(device);
        let Some(other) = known.filter(|known| known.backend != backend) else {
            return false;
        };
        let pair = (backend.to_owned(), other.backend.clone());
        if self.told_foreign.insert(pair) {
            tracing::warn!(
                backend,
                %device,
                owner = other.backend,
                "a probe told of a device of another backend: what it says of them is ignored"
            );
        }
        true
    }

    /// True for a known device of the backend.
    pub(crate) fn has_device(&self, backend: &str, device: &DeviceId) -> bool {
        let known = self.known.get(device);
        known.is_some_and(|known| known.backend == backend)
    }

    /// Removes devices from a report that have the id of another backend's device, or are on a card
    /// with such an id. The backend that reported an id first keeps it. The backend's message names
    /// them.
    pub(super) fn leave_to_others(&self, sighting: &mut BackendState) {
        let BackendState {
            backend, devices, ..
        } = sighting;
        let mut refused = Vec::new();
        devices.retain(|device| {
            // A partition that names a card of another backend would take over the verdict of that
            // card.
            let ids = [&device.id, device.card_id()];
            let mut known = ids.into_iter().filter_map(|id| self.known.get(id));
            let other = known.find(|known| known.backend != backend.name);
            refused.extend(other.map(|other| {
                format!(
                    "{} of the backend {} is left out: the backend {} has the device {}",
                    device.id, backend.name, other.backend, other.device.id
                )
            }));
            other.is_none()
        });
        let more = refused.len().saturating_sub(NAMED);
        refused.truncate(NAMED);
        refused.extend((more > 0).then(|| format!("{more} more are left out for the same reason")));
        let message = std::mem::take(&mut backend.message);
        refused.splice(0..0, Some(message).filter(|message| !message.is_empty()));
        backend.message = refused.join("; ");
    }
}
