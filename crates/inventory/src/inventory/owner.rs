//! Whose a device is: a backend's word counts for its own devices alone.

use model::DeviceId;
use probe::{Sighting, Update};

use super::Inventory;

// === impl Inventory ===

impl Inventory {
    /// Returns true for a word about a device of another backend. The log has it once for two backends.
    pub(super) fn refuses(&mut self, update: &Update) -> bool {
        let Some((backend, device)) = update.subject() else {
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

    /// Returns true for a device of the backend that was seen and is not forgotten.
    pub(crate) fn has_device(&self, backend: &str, device: &DeviceId) -> bool {
        let known = self.known.get(device);
        known.is_some_and(|known| known.backend == backend)
    }

    /// Leaves out devices whose ids are those of another backend's devices: whoever told of an id first
    /// has it.
    pub(super) fn leave_to_others(&self, sighting: &mut Sighting) {
        let Sighting {
            backend, devices, ..
        } = sighting;
        devices.retain(|device| {
            let known = self.known.get(&device.id);
            let Some(other) = known.filter(|known| known.backend != backend.name) else {
                return true;
            };
            if !backend.message.is_empty() {
                backend.message += "; ";
            }
            backend.message += &format!(
                "{} is left out: the backend {} has a device of this id",
                device.id, other.backend
            );
            false
        });
    }
}
