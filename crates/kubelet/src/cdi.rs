//! CDI spec files: what a pool names by CDI is on the disk before the kubelet hears of it.
//!
//! This stands between the offers as they are made and the offers as the kubelet gets them. Each
//! new set of offers passes through: the specs are made of its snapshot, written where they differ
//! from what is on the disk, and only then is the set passed on, with every unit Unhealthy whose
//! names no spec has. The files are looked at again regularly, and written anew when somebody
//! removed or changed them. A name that a container was started with stays a name, whatever the config
//! says by now: the kubelet uses it again when it starts the container again.

mod gate;
mod held;
mod memory;
mod release;
mod status;

use std::{path::PathBuf, sync::Arc, time::Duration};

use config::Config;
use host::watch::{Events, Folder};
use model::Snapshot;
use pool::Offers;
use rules::Vendors;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::memory::{Memory, Round};
pub use self::status::{ListStatus, Status};

/// The most bytes that are read of a config or a spec of others.
const TEXT_LIMIT: u64 = 4 << 20;

/// Where specs are, and what they are made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The config's section.
    pub cdi: config::Cdi,
    /// The folder under which the host's files are, for the files of runtime and kubelet.
    pub host_root: PathBuf,
    /// The kubelet's device plugin folder, for its record of what containers hold.
    pub kubelet_dir: PathBuf,
    /// The time between two looks at the files.
    pub check: Duration,
    /// How long the disk may take.
    pub limit: Duration,
    /// The vendors whose kinds have specs.
    pub vendors: Vendors,
}

/// The wires in and out.
#[derive(Debug)]
pub struct Wires {
    /// The newest snapshot, for when there is no offer.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// The config that offers are made by.
    pub config: watch::Receiver<Arc<Config>>,
    /// Offers as they are made.
    pub drafts: watch::Receiver<Offers>,
    /// Offers that the kubelet may have.
    pub offers: watch::Sender<Offers>,
    /// How it goes.
    pub status: watch::Sender<Status>,
}

/// Keeps the files right and passes offers on, until cancelled. Nothing around it ends it.
pub async fn run(settings: Settings, mut wires: Wires, cancel: CancellationToken) {
    let mut memory = Memory::default();
    let mut folder = Folder::new(&settings.cdi.dir, Events::Inotify, settings.check);
    let mut again = true;
    let mut due = Instant::now() + settings.check;
    loop {
        let draft = Arc::clone(&wires.drafts.borrow_and_update());
        let config = Arc::clone(&wires.config.borrow_and_update());
        // The pools of a new config are here before the offers that are made of them: what either
        // asks for is in place, so that no name goes before what names it, or comes after it.
        let new = config.pools.pools.iter();
        let old = draft.iter().map(|offer| &*offer.pool);
        memory.ask(new.chain(old), settings.check * 2);
        let newest = || Arc::clone(&wires.snapshots.borrow());
        let round = Round {
            snapshot: draft
                .first()
                .map_or_else(newest, |o| Arc::clone(&o.snapshot)),
            draft,
            config,
        };
        let (offers, status) = memory.round(&settings, &round, again).await;
        wires.offers.send_replace(offers);
        // A write that fails stirs the folder itself, and would be tried again at once.
        let calm = status.files.iter().all(|file| file.problem.is_none());
        let used = !status.files.is_empty();
        status.log(&wires.status.borrow());
        wires.status.send_replace(status);
        again = tokio::select! {
            () = cancel.cancelled() => return,
            changed = wires.drafts.changed() => match changed {
                Ok(()) => false,
                // Nobody makes offers any more: the last ones stand.
                Err(_) => return cancel.cancelled().await,
            },
            Ok(()) = wires.config.changed() => false,
            // Offers that come all the time must not put the look off.
            () = look(&mut folder, calm && used, due) => {
                due = Instant::now() + settings.check;
                true
            }
        };
    }
}

/// Waits until the files are to be looked at: at this time, or, if `early`, when the folder changes.
async fn look(folder: &mut Folder, early: bool, due: Instant) {
    match early {
        true => drop(timeout_at(due, folder.changed()).await),
        false => sleep_until(due).await,
    }
}

// === impl Settings ===

impl Settings {
    /// The usual patience.
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
