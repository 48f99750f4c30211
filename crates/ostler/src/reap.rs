//! Reaps the orphans of the container. The agent may be its first process, or stand in for it:
//! what its probes started and left behind then becomes its child.

use std::time::Duration;

use host::tree;
use probe::supervisor::Children;
use rustix::process::{
    Pid, WaitId, WaitIdOptions, WaitOptions, getpid, set_child_subreaper, waitid, waitpid,
};
use tokio::signal::unix::{SignalKind, signal};

/// How often to look in any case: signals of children that end together become one.
const PERIOD: Duration = Duration::from_secs(30);

/// Reaps orphans, for ever. Probes are left to those who started them.
pub(crate) async fn orphans(probes: Children) {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::debug!(%error, "orphans of our probes will not come to us");
    }
    let Ok(mut ended) = signal(SignalKind::child()) else {
        return std::future::pending().await;
    };
    loop {
        if has_ended_children() {
            let strays = tree::children().into_iter();
            for pid in strays.filter(|pid| !probes.contains(*pid)) {
                let _ = waitpid(Pid::from_raw(pid.cast_signed()), WaitOptions::NOHANG);
            }
        }
        let _ = tokio::time::timeout(PERIOD, ended.recv()).await;
    }
}

/// Whether a child waits to be reaped, which a look at all processes is for.
fn has_ended_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Ok(Some(_)))
}
