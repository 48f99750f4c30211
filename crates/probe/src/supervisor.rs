//! Keeps a backend's probe running and survives it.
//!
//! One main process looks at everything. A call that does not return is named, its process is
//! given up and replaced by one that leaves the stuck card out, and the card is tried alone with
//! growing pauses, so that one bad card stays one bad card. Nothing here waits for a probe.

mod admit;
mod aside;
mod backends;
mod children;
mod hear;
mod obey;
mod orders;
mod picture;
mod process;
mod settings;
mod start;
mod stuck;
mod trouble;

use std::{collections::BTreeMap, time::Duration};

use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

pub use self::{
    backends::{GivenUp, OrdersByBackend},
    children::Children,
    orders::{Occupied, Orders, Which},
    process::Program,
    settings::{Limits, Settings},
};
use self::{
    children::Estate,
    obey::CLOSED_WITHIN,
    picture::Picture,
    process::{Heard, Left, Number, Process, Role},
    stuck::{Concern, Ledger, Timing},
};
use crate::sighting::Update;

/// How often limits are checked.
const TICK: Duration = Duration::from_secs(1);

/// How long processes get to end before a supervisor does.
const FAREWELL: Duration = Duration::from_millis(300);

/// What a main process can do without.
const OPTIONAL: [Concern; 2] = [Concern::Events, Concern::Links];

/// A process with what it said.
#[derive(Debug)]
struct Running {
    process: Process,
    timing: Timing,
    reported: bool,
    calm: u32,
    nonsense: u32,
    /// Lines that it wrote since limits were checked last.
    lines: u32,
    /// What it was told to leave out.
    without: Vec<Concern>,
}

#[derive(Debug)]
struct Supervisor {
    settings: Settings,
    updates: mpsc::Sender<Update>,
    heard: mpsc::Sender<(Number, Heard)>,
    readers: JoinSet<()>,
    running: BTreeMap<Number, Running>,
    /// What the next supervisor of this backend has to know.
    estate: Estate,
    ledger: Ledger,
    /// How many new looks were ordered so far.
    refreshes: u64,
    picture: Picture,
    /// How often the main process failed in a row, and when it is started again.
    failures: u32,
    restart: Instant,
    /// When limits were checked last.
    checked: Instant,
}

/// Runs a backend's probes until `cancel`, and sends what they see to `updates`.
pub async fn run(settings: Settings, updates: mpsc::Sender<Update>, cancel: CancellationToken) {
    let (heard, mut ears) = mpsc::channel(64);
    let mut orders = settings.orders.subscribe();
    let mut supervisor = Supervisor::new(settings, updates, heard);
    supervisor.obey(&orders.borrow_and_update().clone());
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        supervisor.start_due(Instant::now());
        supervisor.publish().await;
        tokio::select! {
            () = cancel.cancelled() => break,
            Some((number, heard)) = ears.recv() => supervisor.hear(number, heard).await,
            Some(Ok(left)) = supervisor.estate.leaving.join_next() => supervisor.left(&left),
            Some(Ok(left)) = supervisor.estate.abandoned.join_next() => supervisor.left(&left),
            Some(_) = supervisor.readers.join_next() => {}
            Ok(()) = orders.changed() => supervisor.obey(&orders.borrow_and_update().clone()),
            _ = tick.tick() => supervisor.check(Instant::now()),
        }
    }
    supervisor.stop().await;
}

// === impl Supervisor ===

impl Supervisor {
    fn new(
        settings: Settings,
        updates: mpsc::Sender<Update>,
        heard: mpsc::Sender<(Number, Heard)>,
    ) -> Self {
        Self {
            picture: Picture::new(&settings.name),
            estate: settings.children.inherit(&settings.name),
            settings,
            updates,
            heard,
            readers: JoinSet::new(),
            running: BTreeMap::new(),
            ledger: Ledger::default(),
            refreshes: 0,
            failures: 0,
            restart: Instant::now(),
            checked: Instant::now(),
        }
    }

    /// Lets the main process go, so that another starts with another choice of cards.
    fn replace_main(&mut self) {
        if let Some((number, _)) = self.main() {
            self.dismiss(number, self.settings.limits.call);
        }
    }

    fn dismiss(&mut self, number: Number, limit: Duration) {
        if let Some(running) = self.running.remove(&number) {
            running.process.dismiss(limit, &mut self.estate.leaving);
        }
    }

    fn left(&mut self, left: &Left) {
        self.estate.live.remove(&left.number);
        let status = left.status.map(|status| status.to_string());
        tracing::debug!(
            probe = self.settings.name,
            pid = left.pid,
            status,
            "a probe has ended"
        );
    }

    fn main(&self) -> Option<(Number, &Running)> {
        self.running
            .iter()
            .find(|(_, running)| running.process.role == Role::Main)
            .map(|(number, running)| (*number, running))
    }

    async fn publish(&mut self) {
        let released = self.estate.released();
        self.picture.held = self.estate.aside.holds_all();
        if let Some(sighting) = self.picture.changed(&self.ledger, released) {
            self.send(Update::Sighting(Box::new(sighting))).await;
        }
    }

    async fn send(&self, update: Update) {
        // The receiver lives as long as the agent; when it is gone we are being stopped.
        let _ = self.updates.send(update).await;
    }

    /// Asks every process to end, by closing its input. What has not ended in time is left to the next
    /// supervisor; if there is none, dropping it kills it.
    async fn stop(mut self) {
        let numbers: Vec<_> = self.running.keys().copied().collect();
        for number in numbers {
            self.dismiss(number, CLOSED_WITHIN);
        }
        let all = async {
            while let Some(left) = self.estate.leaving.join_next().await {
                let _ = left.inspect(|left| self.left(left));
            }
        };
        let _ = timeout(FAREWELL, all).await;
        let Settings { name, children, .. } = self.settings;
        children.leave(name, self.estate);
    }
}
