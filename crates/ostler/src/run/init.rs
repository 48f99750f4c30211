//! A start that fails, for those who want the agent to end then.

use std::sync::Arc;

use config::Config;
use model::{Phase, Snapshot};
use tokio::sync::watch;

use crate::vendors::VENDORS;

/// Waits until the driver is found not to start, or to lack something that the config requires,
/// where that is to end the agent; why. Once it has started, nothing ends the agent.
pub(super) fn failed(
    config: &Config,
    mut snapshots: watch::Receiver<Arc<Snapshot>>,
) -> impl Future<Output = String> + use<> {
    let wanted = config.fail_on_init_error;
    let config = config.clone();
    async move {
        if wanted && let Some(reason) = failed_start(&mut snapshots, &config).await {
            return reason;
        }
        std::future::pending().await
    }
}

/// Waits for the driver's start; why it failed, if it did.
async fn failed_start(
    snapshots: &mut watch::Receiver<Arc<Snapshot>>,
    config: &Config,
) -> Option<String> {
    let decided = |snapshot: &Arc<Snapshot>| {
        let mut phases = snapshot.backends.iter().map(|backend| backend.phase);
        phases.any(|phase| !matches!(phase, Phase::Starting | Phase::Failing))
    };
    let snapshot = Arc::clone(&*snapshots.wait_for(decided).await.ok()?);
    let failed = |phase| matches!(phase, Phase::NoDriver | Phase::DriverFailed);
    let mut backends = snapshot.backends.iter();
    if let Some(backend) = backends.find(|backend| failed(backend.phase)) {
        return Some(backend.message.clone());
    }
    pool::missing_requirement(config, VENDORS, &snapshot)
}
