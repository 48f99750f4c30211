//! CDI spec files: what a pool names by CDI is on the disk before the kubelet hears of it.
//!
//! This stands between the offers as they are made and the offers as the kubelet gets them. Each
//! new set of offers passes through: the specs are made of its snapshot, written where they differ
//! from what is on the disk, and only then is the set passed on, with every unit Unhealthy whose
//! names no spec has. The files are looked at again regularly, and written anew when somebody
//! removed or changed them.

mod folder;
mod gate;
mod runtime;
mod status;
mod text;

use std::{path::PathBuf, sync::Arc, time::Duration};

use config::Pools;
use grant::cdi::{CLASSES, Spec, Wish, specs};
use host::watch::{Events, Folder};
use model::{Phase, Snapshot};
use pool::Offers;
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

pub use self::{
    folder::FileStatus,
    runtime::{Evidence, evidence},
    status::{ListStatus, Status},
};
use self::{
    folder::{Outcome, Wanted, read, sync},
    gate::gate,
};

/// The vendor whose devices have specs.
const VENDOR: &str = "nvidia";

/// Where specs are, and what they are made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The config's section.
    pub cdi: config::Cdi,
    /// The folder under which the host's files are, for the runtime's config.
    pub host_root: PathBuf,
    /// The time between two looks at the files.
    pub check: Duration,
    /// How long the disk may take.
    pub limit: Duration,
}

/// The wires in and out.
#[derive(Debug)]
pub struct Wires {
    /// The newest snapshot, for when there is no offer.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// The pools of the config.
    pub pools: watch::Receiver<Pools>,
    /// Offers as they are made.
    pub drafts: watch::Receiver<Offers>,
    /// Offers that the kubelet may have.
    pub offers: watch::Sender<Offers>,
    /// How it goes.
    pub status: watch::Sender<Status>,
}

/// The files as they were left.
#[derive(Debug, Default)]
struct Memory {
    /// What was last asked of the disk, and what came of it.
    last: Option<(Vec<Wanted>, Outcome)>,
    /// The newest specs, for devices whose nodes vanish.
    specs: Vec<Spec>,
    /// Work on the disk that has not ended.
    pending: Option<JoinHandle<Outcome>>,
}

/// Keeps the files right and passes offers on, until cancelled. Nothing around it ends it.
pub async fn run(settings: Settings, mut wires: Wires, cancel: CancellationToken) {
    let mut memory = Memory::load(&settings).await;
    let mut folder = Folder::new(&settings.cdi.dir, Events::Inotify, settings.check);
    let mut again = true;
    let mut due = Instant::now() + settings.check;
    loop {
        let draft = Arc::clone(&wires.drafts.borrow_and_update());
        let pools = wires.pools.borrow_and_update().clone();
        // The pools of a new config are here before the offers that are made of them: what either
        // asks for is in place, so that no name goes before what names it, or comes after it.
        let new = pools.pools.iter().map(|pool| &pool.handover);
        let old = draft.iter().map(|offer| &offer.pool.handover);
        let wish = Wish::of(new.chain(old));
        let (offers, status) = memory
            .round(&settings, &wires, &draft, wish.as_ref(), again)
            .await;
        wires.offers.send_replace(offers);
        // A write that fails stirs the folder itself, and would be tried again at once.
        let calm = status.files.iter().all(|file| file.problem.is_none());
        status.log(&wires.status.borrow());
        wires.status.send_replace(status);
        again = tokio::select! {
            () = cancel.cancelled() => return,
            changed = wires.drafts.changed() => match changed {
                Ok(()) => false,
                // Nobody makes offers any more: the last ones stand.
                Err(_) => return cancel.cancelled().await,
            },
            Ok(()) = wires.pools.changed() => false,
            // Offers that come all the time must not put the look off.
            () = look(&mut folder, calm, due), if wish.is_some() => {
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
    pub fn new(cdi: config::Cdi, host_root: PathBuf) -> Self {
        Self {
            cdi,
            host_root,
            check: Duration::from_secs(10),
            limit: Duration::from_secs(5),
        }
    }
}

// === impl Memory ===

impl Memory {
    /// What an agent before this one left.
    async fn load(settings: &Settings) -> Self {
        let dir = settings.cdi.dir.clone();
        let work = timeout(settings.limit, spawn_blocking(move || read(&dir)));
        Self {
            specs: work.await.ok().and_then(Result::ok).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// One set of offers: the specs to the disk, then the offers with what is there. `again`: look
    /// at the disk even if the specs are the same.
    async fn round(
        &mut self,
        settings: &Settings,
        wires: &Wires,
        draft: &Offers,
        wish: Option<&Wish>,
        again: bool,
    ) -> (Offers, Status) {
        let newest = || Arc::clone(&wires.snapshots.borrow());
        let snapshot = draft
            .first()
            .map_or_else(newest, |offer| Arc::clone(&offer.snapshot));
        let (wanted, notes) = self.wanted(settings, &snapshot, wish);
        let outcome = self.settle(settings, wanted, again).await;
        let (offers, lists) = gate(draft, &outcome);
        let status = Status {
            dir: settings.cdi.dir.clone(),
            files: outcome.files,
            notes,
            runtime: outcome.runtime,
            lists,
        };
        (offers, status)
    }

    /// What is to become of the file of each class.
    fn wanted(
        &mut self,
        settings: &Settings,
        snapshot: &Snapshot,
        wish: Option<&Wish>,
    ) -> (Vec<Wanted>, Vec<String>) {
        let Some(wish) = wish else {
            return (vec![Wanted::Nothing; CLASSES.len()], Vec::new());
        };
        let mut backends = snapshot.backends.iter();
        let backend = backends.find(|b| b.name == VENDOR && b.phase == Phase::Running);
        let Some(backend) = backend else {
            // What is there may be right, and containers restart meanwhile.
            return (vec![Wanted::AsItIs; CLASSES.len()], Vec::new());
        };
        if backend.extras.files.is_none() {
            let note = "the probe has not told of the driver's files, so specs are not made; on \
                        Tegra boards it never does";
            return (vec![Wanted::AsItIs; CLASSES.len()], vec![note.to_owned()]);
        }
        let made = specs(snapshot, wish, &settings.cdi, &self.specs);
        self.specs = made.specs;
        let wanted = CLASSES.iter().map(|class| {
            let mut specs = self.specs.iter();
            let spec = specs.find(|spec| spec.class() == *class);
            spec.map_or(Wanted::Nothing, |spec| Wanted::Spec(Arc::new(spec.clone())))
        });
        (wanted.collect(), made.notes)
    }

    /// Makes the disk so, unless it was so when it was last looked at.
    async fn settle(&mut self, settings: &Settings, wanted: Vec<Wanted>, again: bool) -> Outcome {
        let known = self.last.as_ref().filter(|(last, outcome)| {
            // What failed is tried again with every round that looks.
            !again && *last == wanted && !outcome.late
        });
        if let Some((_, outcome)) = known {
            return outcome.clone();
        }
        let outcome = self.on_disk(settings, wanted.clone()).await;
        self.last = Some((wanted, outcome.clone()));
        outcome
    }

    /// A disk that hangs holds up one round for a while, and then no more.
    async fn on_disk(&mut self, settings: &Settings, wanted: Vec<Wanted>) -> Outcome {
        let dir = settings.cdi.dir.display();
        let late = format!(
            "{dir} does not answer within {} s; what CDI specs are in it now is not known",
            settings.limit.as_secs()
        );
        if self
            .pending
            .as_ref()
            .is_some_and(|work| !work.is_finished())
        {
            return self.unknown(settings, late);
        }
        self.pending = None;
        let (cdi, root) = (settings.cdi.clone(), settings.host_root.clone());
        let mut work = spawn_blocking(move || Outcome {
            runtime: evidence(&cdi, &root),
            ..sync(&cdi.dir, &wanted)
        });
        match timeout(settings.limit, &mut work).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => self.unknown(
                settings,
                format!("the work on the CDI specs in {dir} broke off: {error}; please report it"),
            ),
            Err(_) => {
                self.pending = Some(work);
                self.unknown(settings, late)
            }
        }
    }

    /// What was there when it was last looked at, and why no more is known. Names that were on the
    /// disk are taken to be there still.
    fn unknown(&self, settings: &Settings, problem: String) -> Outcome {
        let last = self.last.as_ref().map(|(_, outcome)| outcome.clone());
        last.unwrap_or_default()
            .with_problem(&settings.cdi.dir, problem)
    }
}

#[cfg(test)]
mod tests;
