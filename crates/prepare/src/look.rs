//! New samples of devices on request, and the processes on a device according to its sample.

use std::{collections::BTreeSet, time::Duration};

use inventory::Readers;
use model::{DeviceId, Samples, Telemetry};
use probe::supervisor::OrdersByBackend;
use tokio::time::{Instant, timeout_at};

// The kubelet waits 30 s for `PreStartContainer`. A probe that hangs must leave time for the rest.
/// Time limit for new samples. After it the decision is made without them.
pub(super) const FRESH_WITHIN: Duration = Duration::from_secs(5);

/// Requests new samples, and waits for one of each device. Returns true if all came before `until`.
pub(super) async fn request_samples(
    readers: &Readers,
    orders: &OrdersByBackend,
    ids: &[DeviceId],
    until: Instant,
) -> bool {
    let mut samples = readers.samples.clone();
    let asked = samples.borrow().sample_count();
    for backend in list_backends(readers, ids) {
        orders.orders_of(&backend).request_refresh();
    }
    let is_fresh = |samples: &Samples| ids.iter().all(|id| samples.is_newer(id, asked));
    let look = timeout_at(until, samples.wait_for(is_fresh)).await;
    matches!(look, Ok(Ok(_)))
}

/// Names of the devices' backends.
fn list_backends(readers: &Readers, ids: &[DeviceId]) -> BTreeSet<String> {
    let snapshot = readers.snapshots.borrow();
    let entries = ids.iter().filter_map(|id| snapshot.find_entry(id.as_str()));
    entries.map(|entry| entry.device.vendor.clone()).collect()
}

/// Describes the processes that compute on a device; `None` if there are none.
pub(super) fn computes(telemetry: &Telemetry) -> Option<String> {
    let processes = telemetry.processes.iter().flatten();
    let named: Vec<String> = processes
        .map(|process| {
            let name = process.name.as_deref().unwrap_or("name not known");
            let memory = process.memory_bytes.map(format_mebibytes);
            let memory = memory.map_or_else(String::new, |memory| format!(" with {memory}"));
            format!("process {} ({name}){memory}", process.pid)
        })
        .collect();
    let computes = || format!("{} computes on it", named.join(", "));
    (!named.is_empty()).then(computes)
}

pub(super) fn format_mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
