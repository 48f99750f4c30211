//! Admission of pods, and waits for changes at the kubelet and the agent.

use std::time::Duration;

use anyhow::Context;
use api::ListedDevice;
use model::CauseKind;
use sim::kubelet::{AdmittedPod, Kubelet, PluginDevices, Pod, WaitError};
use tokio::time::timeout;

use super::DEADLINE;

/// Admits a pod of one container.
///
/// # Errors
/// The kubelet refuses the pod, or does not answer within [`DEADLINE`].
pub(super) async fn admit(
    kubelet: &Kubelet,
    name: &str,
    resource: &str,
    count: usize,
) -> anyhow::Result<AdmittedPod> {
    let pod = Pod::new("default", name).with_container("main", [(resource, count)]);
    let admitted = timeout(DEADLINE, kubelet.admit_pod(pod)).await;
    let admitted = admitted.with_context(|| {
        let seconds = DEADLINE.as_secs();
        format!("it did not happen within {seconds} s: pod {name} is admitted")
    })?;
    admitted.with_context(|| format!("pod {name} was not admitted"))
}

/// Ids of the devices of a pod.
pub(super) fn held(admitted: &AdmittedPod) -> Vec<String> {
    let containers = admitted.containers.values();
    let ids = containers.flat_map(|granted| granted.devices.values().flatten());
    ids.cloned().collect()
}

/// Waits until `right` holds for the id and the health of every device of a resource.
pub(super) async fn wait(
    kubelet: &Kubelet,
    resource: &str,
    limit: Duration,
    right: impl Fn(&str, bool) -> bool,
) -> Result<(), WaitError> {
    let all = |devices: &PluginDevices| {
        let mut devices = devices.iter();
        devices.all(|(id, device)| right(id, device.healthy))
    };
    kubelet.wait_devices(resource, all, limit).await.map(|_| ())
}

/// True if a verdict has both causes: the event and the loss.
pub(super) fn fell(entry: &ListedDevice) -> bool {
    let has = |kind| entry.verdict.causes.iter().any(|cause| cause.kind == kind);
    has(CauseKind::Event) && has(CauseKind::Lost)
}
