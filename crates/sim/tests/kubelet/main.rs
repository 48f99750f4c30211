//! Tests of the simulated kubelet against a small device plugin, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall fail")]

mod admission;
mod eras;
mod plugin;
mod pods;
mod registration;
mod restart;

use std::time::Duration;

use sim::kubelet::{DeviceCounts, Era, Kubelet, KubeletSettings};
use tempfile::TempDir;

/// Timeout that is enough for any machine; reached only if a test fails.
const SOON: Duration = Duration::from_secs(20);
const GPU: &str = "example.com/gpu";
const NIC: &str = "example.com/nic";

/// A kubelet with a folder of its own.
struct Node {
    kubelet: Kubelet,
    dir: TempDir,
}

impl Node {
    async fn new() -> Self {
        Self::with(|_| ()).await
    }

    async fn of(era: Era) -> Self {
        Self::with(|settings| settings.era = era).await
    }

    async fn with(change: impl FnOnce(&mut KubeletSettings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = KubeletSettings::new(dir.path().join("plugins"));
        settings.pod_resources = Some(dir.path().join("pods.sock"));
        change(&mut settings);
        let kubelet = Kubelet::start_kubelet(settings).await.unwrap();
        Self { kubelet, dir }
    }

    /// Capacity and allocatable; `None` if the node's status does not name the resource.
    fn counts(&self, resource: &str) -> Option<(usize, usize)> {
        let node = self.kubelet.node_status();
        let DeviceCounts {
            capacity,
            allocatable,
        } = *node.get(resource)?;
        Some((capacity, allocatable))
    }

    async fn wait_counts(&self, resource: &str, counts: (usize, usize)) {
        let wanted = format!("{counts:?} for {resource}");
        let reached = |kubelet: &Kubelet| {
            let found = kubelet.node_status().get(resource).copied();
            found.is_some_and(|found| (found.capacity, found.allocatable) == counts)
        };
        let waited = self.kubelet.wait_until(&wanted, reached, SOON).await;
        waited.unwrap();
    }

    fn breaches(&self) -> Vec<String> {
        let violations = self.kubelet.violations();
        violations.iter().map(ToString::to_string).collect()
    }
}
