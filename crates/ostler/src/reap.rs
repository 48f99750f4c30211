//! Reaps orphaned processes. The agent may be PID 1 of its container, and it makes itself a
//! subreaper: processes that a probe started and left behind become children of the agent.

use std::time::Duration;

use host::tree;
use probe::supervisor::ChildRegistry;
use rustix::process::{
    Pid, WaitId, WaitIdOptions, WaitOptions, getpid, set_child_subreaper, waitid, waitpid,
};
use tokio::signal::unix::{SignalKind, signal};

/// Interval of checks without a signal. SIGCHLD is a standard signal and does not queue (signal(7)):
/// several children that end together may raise it once.
const PERIOD: Duration = Duration::from_secs(30);

/// Reaps orphans until it is cancelled. `probes` are left to the tasks that started them: those
/// need the exit status.
pub(crate) async fn orphans(probes: ChildRegistry) {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::debug!(%error, "orphans of our probes will not come to us");
    }
    // Without the signal the part does nothing: one that ended would be started again and again.
    let Ok(mut ended) = signal(SignalKind::child()) else {
        return std::future::pending().await;
    };
    loop {
        if has_ended_children() {
            let strays = tree::list_children().into_iter();
            // Not `waitpid(-1)`: it would also take the exit status of a probe.
            for pid in strays.filter(|pid| !probes.contains(*pid)) {
                let _ = waitpid(Pid::from_raw(pid.cast_signed()), WaitOptions::NOHANG);
            }
        }
        let _ = tokio::time::timeout(PERIOD, ended.recv()).await;
    }
}

/// True if a child has ended and is not reaped yet. One system call; the list of children costs a
/// scan of /proc.
fn has_ended_children() -> bool {
    // WNOWAIT leaves the child as it is: it may be a probe.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Ok(Some(_)))
}
