//! `failOnInitError`: ends the agent if a backend does not start.

use std::sync::Arc;

use config::Config;
use model::{Phase, Snapshot};
use tokio::sync::watch;

use crate::vendors::VENDORS;

/// Waits until a backend with `failOnInitError` fails to start, or lacks something that the config
/// requires, and returns the reason. Never returns once all such backends have started: a driver that
/// fails later does not end the agent.
pub(super) fn wait_for_init_failure(
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

/// Waits until each backend with `failOnInitError` has started, or one of them failed. Returns the reason of
/// the first failure, in whatever order they are decided.
async fn failed_start(
    snapshots: &mut watch::Receiver<Arc<Snapshot>>,
    config: &Config,
) -> Option<String> {
    let startups = config.backends.startups();
    let matters = startups.filter(|(_, startup)| startup.enabled && startup.fail_on_init_error);
    let mut starting: Vec<&str> = matters.map(|(name, _)| name).collect();
    while !starting.is_empty() {
        let snapshot = Arc::clone(&*snapshots.borrow_and_update());
        let mut undecided = Vec::new();
        for name in starting {
            match check_start(config, name, &snapshot) {
                None => undecided.push(name),
                Some(Ok(())) => {}
                Some(Err(reason)) => return Some(reason),
            }
        }
        starting = undecided;
        if !starting.is_empty() {
            snapshots.changed().await.ok()?;
        }
    }
    None
}

/// Tells if a backend has started, or the reason why it failed to; `None` while neither is known.
fn check_start(config: &Config, name: &str, snapshot: &Snapshot) -> Option<Result<(), String>> {
    let backend = snapshot.find_backend(name)?;
    match backend.phase {
        Phase::Starting => None,
        Phase::NoDriver | Phase::DriverFailed => Some(Err(backend.message.clone())),
        Phase::Failing => Some(Err(format!(
            "the probe of backend {name} does not start: {}",
            backend.message
        ))),
        Phase::Running => {
            let missing = pool::missing_requirement(config, VENDORS.find_rules(name), snapshot);
            Some(missing.map_or(Ok(()), Err))
        }
    }
}
