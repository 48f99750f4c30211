//! Removal of devices from the inventory, and what is kept of them.

use health::Now;
use model::CauseKind;
use probe::BackendState;

use super::{Inventory, restore::lasting_releases};
use crate::sight::was_dissolved;

// === impl Inventory ===

impl Inventory {
    /// Drops devices that have been absent for longer than `health.goneGrace`. Their records are
    /// kept.
    pub(super) fn drop_long_absent(&mut self, now: Now) {
        let (grace, policy) = (self.policy.health.gone_grace, &self.policy);
        let waiting = &mut self.waiting;
        let dirty = &mut self.dirty;
        self.known.retain(|id, known| {
            // A device that is not in the list any more counts as Healthy in the status of its pod
            // (KEP-4680; kubelet: pkg/kubelet/cm/devicemanager/manager.go,
            // UpdateAllocatedResourcesStatus). So an absent device stays listed as Unhealthy for
            // the grace.
            let gone = known.record.finding_age(CauseKind::Gone, now);
            let keep = gone.is_none_or(|lasting| lasting < grace);
            if !keep {
                tracing::info!(device = %id, "the device has been gone for long and is forgotten");
                waiting.keep_record(known, policy, now);
                *dirty = true;
            }
            keep
        });
    }

    /// Drops a backend with its devices. Their records and releases are kept for its return.
    pub(super) fn drop_backend(&mut self, backend: &str, now: Now) {
        let (policy, waiting) = (&self.policy, &mut self.waiting);
        self.known.retain(|_, known| {
            let stays = known.backend != backend;
            if !stays {
                waiting.keep_record(known, policy, now);
            }
            stays
        });
        self.backends.remove(backend);
        if let Some(picture) = self.pictures.remove(backend) {
            let releases = lasting_releases(&picture, now);
            self.absent_releases.insert(backend.to_owned(), releases);
        }
        self.dirty = true;
    }

    /// Drops partitions that were destroyed. Only a cordon is kept: a partition of the same UUID
    /// may be created again.
    pub(super) fn dissolve(&mut self, sighting: &BackendState, now: Now) {
        let (name, policy) = (&sighting.backend.name, &self.policy);
        let waiting = &mut self.waiting;
        self.known.retain(|_, known| {
            let dissolved = known.backend == *name && was_dissolved(&known.device, sighting);
            if dissolved && known.record.is_cordoned() {
                waiting.keep_record(known, policy, now);
            }
            !dissolved
        });
    }
}
