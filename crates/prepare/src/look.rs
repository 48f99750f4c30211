//! Looks at devices that are ordered and waited for, and what their samples say of who is on them.

use std::{collections::BTreeSet, time::Duration};

use inventory::Readers;
use model::{DeviceId, Samples, Telemetry};
use probe::supervisor::OrdersByBackend;
use tokio::time::{Instant, timeout_at};

/// The longest time that a new look may take before it is decided without it.
pub(super) const FRESH_WITHIN: Duration = Duration::from_secs(5);

/// Orders a look, and waits until it has come for every device; whether it came until then.
pub(super) async fn fresh(
    readers: &Readers,
    orders: &OrdersByBackend,
    ids: &[DeviceId],
    until: Instant,
) -> bool {
    let mut samples = readers.samples.clone();
    let asked = samples.borrow().count();
    for backend in backends(readers, ids) {
        orders.of(&backend).refresh();
    }
    let is_fresh = |samples: &Samples| ids.iter().all(|id| samples.is_newer(id, asked));
    let look = timeout_at(until, samples.wait_for(is_fresh)).await;
    matches!(look, Ok(Ok(_)))
}

/// The backends of the devices.
fn backends(readers: &Readers, ids: &[DeviceId]) -> BTreeSet<String> {
    let snapshot = readers.snapshots.borrow();
    let entries = ids.iter().filter_map(|id| snapshot.find(id.as_str()));
    entries.map(|entry| entry.device.vendor.clone()).collect()
}

/// The processes that compute on a device.
pub(super) fn computes(telemetry: &Telemetry) -> Option<String> {
    let processes = telemetry.processes.iter().flatten();
    let named: Vec<String> = processes
        .map(|process| {
            let name = process.name.as_deref().unwrap_or("name not known");
            let memory = process.memory_bytes.map(mebibytes);
            let memory = memory.map_or_else(String::new, |memory| format!(" with {memory}"));
            format!("process {} ({name}){memory}", process.pid)
        })
        .collect();
    let computes = || format!("{} computes on it", named.join(", "));
    (!named.is_empty()).then(computes)
}

pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
