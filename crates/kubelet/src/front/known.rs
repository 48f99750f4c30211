//! Calls to the pod resources API for the resources that the kubelet counts. They are the only
//! evidence if the kubelet forgot a registration and kept the stream open.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use api::Phase;
use tokio::{sync::watch, time::Instant};

use crate::{pod_resources::PodResourcesClient, status::Status};

/// Answer of the kubelet's pod resources API.
#[derive(Clone, Debug)]
pub(crate) struct AllocatableAnswer {
    /// Time at which the call was sent.
    pub(crate) asked: Instant,
    /// Resources of which the kubelet counts at least one healthy device.
    pub(crate) resources: Arc<BTreeSet<String>>,
}

/// Calls the kubelet every `pause` while a resource is registered, once for all resources. A missing
/// answer is no evidence for a loss. Runs until dropped.
pub(crate) async fn poll_allocatable(
    client: PodResourcesClient,
    pause: Duration,
    status: watch::Receiver<Status>,
    answers: watch::Sender<Option<AllocatableAnswer>>,
) {
    let mut silent = false;
    loop {
        tokio::time::sleep(pause).await;
        // The kubelet limits the calls of all clients together to 100 per second
        // (pkg/kubelet/apis/grpc/ratelimit.go), so no useless call is made.
        if !is_worthwhile(&status.borrow()) {
            continue;
        }
        let asked = Instant::now();
        match client.list_allocatable().await {
            Ok(answer) => {
                silent = false;
                let rows = answer.devices.into_iter();
                let counted = rows.filter(|row| !row.device_ids.is_empty());
                let resources = Arc::new(counted.map(|row| row.resource_name).collect());
                answers.send_replace(Some(AllocatableAnswer { asked, resources }));
            }
            Err(error) if !silent => {
                silent = true;
                tracing::info!(
                    %error,
                    "the kubelet does not tell what it counts, so a registration is judged by \
                     its stream alone; in a pod, mount the folder of the pod resources socket"
                );
            }
            Err(_) => {}
        }
    }
}

fn is_worthwhile(status: &Status) -> bool {
    let mut rows = status.resources.iter();
    rows.any(|row| row.phase == Phase::Registered && row.healthy > 0)
}
