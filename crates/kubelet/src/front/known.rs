//! Asks the kubelet which resources it counts: the evidence of last resort for a registration
//! that the kubelet forgot without a word.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use api::Phase;
use tokio::{sync::watch, time::Instant};

use crate::{pod_resources::Client, status::Status};

/// An answer of the kubelet.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// When the question was sent.
    pub(crate) asked: Instant,
    /// The resources of which the kubelet counts at least one healthy device.
    pub(crate) resources: Arc<BTreeSet<String>>,
}

/// Asks every `pause` while something is registered, once for all resources. A kubelet that does
/// not answer is no evidence of anything. Runs until it is dropped.
pub(crate) async fn ask(
    client: Client,
    pause: Duration,
    status: watch::Receiver<Status>,
    answers: watch::Sender<Option<Answer>>,
) {
    let mut silent = false;
    loop {
        tokio::time::sleep(pause).await;
        if !is_worthwhile(&status.borrow()) {
            continue;
        }
        let asked = Instant::now();
        match client.allocatable().await {
            Ok(answer) => {
                silent = false;
                let rows = answer.devices.into_iter();
                let counted = rows.filter(|row| !row.device_ids.is_empty());
                let resources = Arc::new(counted.map(|row| row.resource_name).collect());
                answers.send_replace(Some(Answer { asked, resources }));
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
