//! What a resource waits for. While something is missing that its containers cannot do without, its
//! units are listed and Unhealthy, with the reason; they are well again when it is there.

use config::{Config, Method, NvidiaBackend, Pool};
use model::{Companions, Device, ResourceName, Snapshot, classes};

use crate::{NoteKind, Unit};

/// The vendor whose devices have MPS and IMEX.
const VENDOR: &str = "nvidia";

/// Why units may not be handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    /// What is missing.
    pub(crate) kind: NoteKind,
    /// The same for a person.
    pub(crate) reason: String,
}

/// The IMEX channels that the config requires and the node does not have, sorted.
pub fn missing_channels(config: &Config, snapshot: &Snapshot) -> Vec<u32> {
    let missing = config.pools.pools.iter();
    let missing = missing.flat_map(|pool| channels(pool, &config.backends.nvidia, snapshot));
    let mut missing: Vec<u32> = missing.collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// Whether the MPS daemon of a resource is up.
pub(crate) fn has_daemon(resource: &ResourceName, snapshot: &Snapshot) -> bool {
    let up = |name: &String| name == resource.as_str();
    companions(snapshot).any(|there| there.of(classes::MPS).iter().any(up))
}

// === impl Hold ===

impl Hold {
    /// What a resource of this pool waits for, if anything. The pool's sharing is no more `auto`.
    pub(crate) fn of(
        resource: &ResourceName,
        pool: &Pool,
        nvidia: &NvidiaBackend,
        snapshot: &Snapshot,
    ) -> Option<Self> {
        if let (Method::Mps, Some(path)) = (pool.sharing.method, &nvidia.probe.mps_path)
            && !has_daemon(resource, snapshot)
        {
            let reason = format!(
                "no MPS control daemon is up for it: {}/{resource}/.started is not there; start \
                 the daemon, or share by time-slicing",
                path.display()
            );
            let kind = NoteKind::MpsDaemon;
            return Some(Self { kind, reason });
        }
        let missing = channels(pool, nvidia, snapshot);
        let first = missing.first()?;
        let reason = format!(
            "IMEX channel {first} is required and \
             /dev/nvidia-caps-imex-channels/channel{first} is not visible to the agent; have the \
             driver make it, or do not require it (`backends.nvidia.imexRequired`, in \
             NVIDIA's config `imex.required`)"
        );
        let kind = NoteKind::ImexChannel;
        Some(Self { kind, reason })
    }

    /// Whether units of this device are held back.
    pub(crate) fn concerns(&self, device: &Device) -> bool {
        device.vendor == VENDOR
    }

    /// Holds a unit of a device back. One that is Unhealthy keeps its own reason.
    pub(crate) fn keep(&self, device: &Device, mut unit: Unit) -> Unit {
        if self.concerns(device) && unit.healthy {
            unit.healthy = false;
            unit.reason.clone_from(&self.reason);
        }
        unit
    }
}

/// The channels that a pool must have and the node does not, sorted.
fn channels(pool: &Pool, nvidia: &NvidiaBackend, snapshot: &Snapshot) -> Vec<u32> {
    let there = |channel: &u32| {
        let mut all = companions(snapshot);
        all.any(|there| there.numbers(classes::IMEX_CHANNEL).any(|n| n == *channel))
    };
    let asked = pool.handover.nvidia.imex.iter();
    let wanted = asked.filter(|_| nvidia.imex_required);
    let mut missing: Vec<u32> = wanted.filter(|channel| !there(channel)).copied().collect();
    missing.sort_unstable();
    missing
}

fn companions(snapshot: &Snapshot) -> impl Iterator<Item = &Companions> {
    let backends = snapshot.backends.iter();
    backends.map(|backend| &backend.extras.companions)
}

#[cfg(test)]
mod tests;
