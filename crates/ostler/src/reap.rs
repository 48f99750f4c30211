//! Reaps the orphans of the container. The agent may be its first process, or stand in for it:
//! what its probes started and left behind then becomes its child.

use std::time::Duration;

use probe::supervisor::Children;
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};
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
        for pid in children() {
            if !probes.contains(pid.as_raw_nonzero().get().cast_unsigned()) {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        let _ = tokio::time::timeout(PERIOD, ended.recv()).await;
    }
}

/// Our children, as far as the kernel lists them.
fn children() -> Vec<Pid> {
    let Ok(tasks) = fs_err::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let lists = tasks
        .flatten()
        .filter_map(|task| fs_err::read_to_string(task.path().join("children")).ok());
    let pids = |list: String| -> Vec<Pid> {
        list.split_whitespace()
            .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            .collect()
    };
    lists.flat_map(pids).collect()
}
