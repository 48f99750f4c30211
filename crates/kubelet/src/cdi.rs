//! CDI spec files: the device names of a pool are in a spec on the disk before the kubelet is
//! offered them.
//!
//! This stage stands between the offers as the pools make them and the offers as the kubelet gets
//! them. For each new set of offers it makes the specs from the snapshot, writes the files that
//! differ from the disk, and then passes the offers on. A unit whose names are in no spec is passed
//! on as Unhealthy. The files are checked regularly, and written again if they were removed or
//! changed. A name that a container was started with stays in a spec after the config has changed:
//! the kubelet keeps the answer of `Allocate` in its checkpoint and uses it again for every restart
//! of the container (`pkg/kubelet/cm/devicemanager/pod_devices.go`, `deviceRunContainerOptions`).

mod gate;
mod held;
mod memory;
mod release;
mod status;

use std::{path::PathBuf, sync::Arc, time::Duration};

use config::Config;
use host::watch::{WatchMode, WatchedFolder};
use model::Snapshot;
use pool::Offers;
use rules::Vendors;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::memory::{RoundInput, SpecKeeper};
pub use self::status::{CdiStageStatus, ListStatus};

/// Size limit, in bytes, of the kubelet's files that are read here.
const TEXT_LIMIT: u64 = 4 << 20;

/// Folders, times and vendors of the CDI stage.
#[derive(Clone, Debug)]
pub struct CdiSettings {
    /// Section `cdi` of the config: the folder of the specs among others.
    pub cdi: config::Cdi,
    /// Folder that stands for `/` of the host, for the files of the container runtime and the kubelet.
    pub host_root: PathBuf,
    /// The kubelet's device plugin folder, which has its checkpoint of allocated devices.
    pub kubelet_dir: PathBuf,
    /// Time between two checks of the files.
    pub check: Duration,
    /// Limit for one job on the disk. After it the offers are passed on without the job's result.
    pub limit: Duration,
    /// Vendors whose CDI kinds have specs.
    pub vendors: Vendors,
}

/// Channels into the CDI stage and out of it.
#[derive(Debug)]
pub struct CdiChannels {
    /// Newest snapshot. It is used only while there is no offer, because an offer has its own.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// Config that the offers are made from.
    pub config: watch::Receiver<Arc<Config>>,
    /// Offers as the pools make them.
    pub drafts: watch::Receiver<Offers>,
    /// Offers for the front end, published after their specs are on the disk.
    pub offers: watch::Sender<Offers>,
    /// State of the CDI stage, for `/v1/status`.
    pub status: watch::Sender<CdiStageStatus>,
}

/// Keeps the spec files up to date and passes offers on, until cancelled. Errors of the disk do not
/// end the task: they are in the status and in the reasons of the units.
pub async fn run_stage(settings: CdiSettings, mut wires: CdiChannels, cancel: CancellationToken) {
    let mut memory = SpecKeeper::default();
    let mut folder = WatchedFolder::new(&settings.cdi.dir, WatchMode::Inotify, settings.check);
    let mut again = true;
    let mut due = Instant::now() + settings.check;
    loop {
        let draft = Arc::clone(&wires.drafts.borrow_and_update());
        let config = Arc::clone(&wires.config.borrow_and_update());
        // The pools of a new config arrive before the offers made from them. The specs have the
        // names of both, so that no name is removed while an offer uses it, and none is written
        // after the offer that needs it.
        let new = config.pools.pools.iter();
        let old = draft.iter().map(|offer| &*offer.pool);
        memory.set_asked(new.chain(old), settings.check * 2);
        let newest = || Arc::clone(&wires.snapshots.borrow());
        let round = RoundInput {
            snapshot: draft
                .first()
                .map_or_else(newest, |o| Arc::clone(&o.snapshot)),
            draft,
            config,
        };
        let (offers, status) = memory.round(&settings, &round, again).await;
        wires.offers.send_replace(offers);
        // A failed write changes the folder too (a temporary file comes and goes). Its event would
        // start the next try at once, in a loop, so after a failure only the timer counts.
        let calm = status.files.iter().all(|file| file.problem.is_none());
        let used = !status.files.is_empty();
        status.log_changes(&wires.status.borrow());
        wires.status.send_replace(status);
        again = tokio::select! {
            () = cancel.cancelled() => return,
            changed = wires.drafts.changed() => match changed {
                Ok(()) => false,
                // The sender of offers has ended. The last offers stay in force.
                Err(_) => return cancel.cancelled().await,
            },
            Ok(()) = wires.config.changed() => false,
            // `due` is a fixed time, not a pause: frequent offers must not delay the check.
            () = wait_for_check(&mut folder, calm && used, due) => {
                due = Instant::now() + settings.check;
                true
            }
        };
    }
}

/// Waits for the next check of the files: at the time `due`, or, if `early`, when the folder changes.
async fn wait_for_check(folder: &mut WatchedFolder, early: bool, due: Instant) {
    match early {
        true => drop(timeout_at(due, folder.wait_for_change()).await),
        false => sleep_until(due).await,
    }
}

// === impl CdiSettings ===

impl CdiSettings {
    /// Settings with the default times: a check every 10 s, and 5 s for a job on the disk.
    pub fn new(
        cdi: config::Cdi,
        vendors: Vendors,
        host_root: PathBuf,
        kubelet_dir: PathBuf,
    ) -> Self {
        Self {
            cdi,
            host_root,
            kubelet_dir,
            check: Duration::from_secs(10),
            limit: Duration::from_secs(5),
            vendors,
        }
    }
}

#[cfg(test)]
mod tests;
