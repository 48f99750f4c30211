//! A start that fails, for those who want the agent to end then.

use std::sync::Arc;

use config::Config;
use model::{Phase, Snapshot};
use tokio::sync::watch;

use crate::vendors::VENDORS;

/// Waits until a backend that is to end the agent then is found not to start, or to lack something
/// that the config requires; why. Once all of them have started, nothing ends the agent.
pub(super) fn failed(
    config: &Config,
    mut snapshots: watch::Receiver<Arc<Snapshot>>,
) -> impl Future<Output = String> + use<> {
    let config = config.clone();
    async move {
        if let Some(reason) = failed_start(&mut snapshots, &config).await {
            return reason;
        }
        std::future::pending().await
    }
}

/// Waits for the start of each backend that matters; why one of them failed.
async fn failed_start(
    snapshots: &mut watch::Receiver<Arc<Snapshot>>,
    config: &Config,
) -> Option<String> {
    let startups = config.backends.startups();
    let matters = startups.filter(|(_, startup)| startup.enabled && startup.fail_on_init_error);
    for (name, _) in matters {
        let is_decided = |snapshot: &Arc<Snapshot>| {
            let phase = snapshot.backend(name).map(|backend| backend.phase);
            phase.is_some_and(|phase| !matches!(phase, Phase::Starting | Phase::Failing))
        };
        let snapshot = Arc::clone(&*snapshots.wait_for(is_decided).await.ok()?);
        let backend = snapshot.backend(name)?;
        if matches!(backend.phase, Phase::NoDriver | Phase::DriverFailed) {
            return Some(backend.message.clone());
        }
        if let Some(missing) = pool::missing_requirement(config, VENDORS.of(name), &snapshot) {
            return Some(missing);
        }
    }
    None
}
