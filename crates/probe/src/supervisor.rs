//! Supervisor of a backend's probe processes.
//!
//! One main process reads all cards. If a call does not return, the supervisor names the call,
//! kills its process without waiting for the end, and starts another that skips the stuck card. The
//! card is then tried in a process of its own, with growing pauses. So one stuck card does not
//! affect the others. No task of the agent waits for a probe.

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
    backends::{BackendRelease, OrdersByBackend},
    children::ChildRegistry,
    orders::{CardWork, Orders, ReleaseScope},
    process::Program,
    settings::{Limits, SupervisorSettings},
};
use self::{
    children::SupervisorHandover,
    obey::CLOSED_WITHIN,
    picture::ReportMerger,
    process::{ExitedProcess, ProbeProcess, ProcessNumber, ProcessOutput, Role},
    stuck::{CallScope, CallTimer, StuckCalls},
};
use crate::sighting::Update;

/// Time between two checks of the limits.
const TICK: Duration = Duration::from_secs(1);

/// Time for which a supervisor that stops waits for the end of its processes.
const FAREWELL: Duration = Duration::from_millis(300);

/// Work that a main process may leave out if a call of it is stuck.
const OPTIONAL: [CallScope; 2] = [CallScope::Events, CallScope::Links];

/// Running process with its state so far.
#[derive(Debug)]
struct RunningProbe {
    process: ProbeProcess,
    timing: CallTimer,
    reported: bool,
    calm: u32,
    nonsense: u32,
    /// Number of lines since the last check of the limits.
    lines: u32,
    /// Optional work that this process was started without.
    without: Vec<CallScope>,
}

#[derive(Debug)]
struct Supervisor {
    settings: SupervisorSettings,
    updates: mpsc::Sender<Update>,
    heard: mpsc::Sender<(ProcessNumber, ProcessOutput)>,
    readers: JoinSet<()>,
    running: BTreeMap<ProcessNumber, RunningProbe>,
    /// State that passes on to the next supervisor of this backend.
    estate: SupervisorHandover,
    ledger: StuckCalls,
    /// Number of refresh orders that were carried out.
    refreshes: u64,
    picture: ReportMerger,
    /// Number of failures of the main process in a row; the pause before its next start grows with
    /// it.
    failures: u32,
    restart: Instant,
    /// Time of the last check of the limits.
    checked: Instant,
}

/// Runs a backend's probe processes until `cancel`, and sends what they report to `updates`. Waits
/// up to 300 ms for the processes when it stops.
pub async fn supervise(
    settings: SupervisorSettings,
    updates: mpsc::Sender<Update>,
    cancel: CancellationToken,
) {
    let (heard, mut ears) = mpsc::channel(64);
    let mut orders = settings.orders.subscribe();
    let mut supervisor = Supervisor::new(settings, updates, heard);
    supervisor.apply_orders(&orders.borrow_and_update().clone());
    let mut tick = interval(TICK);
    // Not `Burst`: several checks in a row would find nothing new.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        supervisor.start_due(Instant::now());
        supervisor.publish_state().await;
        tokio::select! {
            () = cancel.cancelled() => break,
            Some((number, heard)) = ears.recv() => supervisor.handle_output(number, heard).await,
            Some(Ok(left)) = supervisor.estate.leaving.join_next() => supervisor.note_exit(&left),
            Some(Ok(left)) = supervisor.estate.abandoned.join_next() => supervisor.note_exit(&left),
            Some(_) = supervisor.readers.join_next() => {}
            Ok(()) = orders.changed() => supervisor.apply_orders(&orders.borrow_and_update().clone()),
            _ = tick.tick() => supervisor.check_limits(Instant::now()),
        }
    }
    supervisor.stop_all().await;
}

// === impl Supervisor ===

impl Supervisor {
    fn new(
        settings: SupervisorSettings,
        updates: mpsc::Sender<Update>,
        heard: mpsc::Sender<(ProcessNumber, ProcessOutput)>,
    ) -> Self {
        Self {
            picture: ReportMerger::new(&settings.name),
            estate: settings.children.adopt_handover(&settings.name),
            settings,
            updates,
            heard,
            readers: JoinSet::new(),
            running: BTreeMap::new(),
            ledger: StuckCalls::default(),
            refreshes: 0,
            failures: 0,
            restart: Instant::now(),
            checked: Instant::now(),
        }
    }

    /// Asks the main process to exit. The next start chooses the cards and the optional work again.
    fn replace_main(&mut self) {
        if let Some((number, _)) = self.main_probe() {
            self.stop_process(number, self.settings.limits.call);
        }
    }

    fn stop_process(&mut self, number: ProcessNumber, limit: Duration) {
        if let Some(running) = self.running.remove(&number) {
            running
                .process
                .stop_gracefully(limit, &mut self.estate.leaving);
        }
    }

    fn note_exit(&mut self, left: &ExitedProcess) {
        self.estate.live.remove(&left.number);
        let status = left.status.map(|status| status.to_string());
        tracing::debug!(
            probe = self.settings.name,
            pid = left.pid,
            status,
            "a probe has ended"
        );
    }

    fn main_probe(&self) -> Option<(ProcessNumber, &RunningProbe)> {
        self.running
            .iter()
            .find(|(_, running)| running.process.role == Role::Main)
            .map(|(number, running)| (*number, running))
    }

    async fn publish_state(&mut self) {
        let released = self.estate.describe_releases();
        self.picture.held = self.estate.aside.holds_all();
        if let Some(sighting) = self.picture.take_changed(&self.ledger, released) {
            self.send_update(Update::State(Box::new(sighting))).await;
        }
    }

    async fn send_update(&self, update: Update) {
        // The receiver lives as long as the agent: without it the agent is stopping.
        let _ = self.updates.send(update).await;
    }

    /// Asks every process to exit, by closing its input. Processes that are still there after the
    /// limit pass on to the next supervisor; without one they are killed when the handover is
    /// dropped.
    async fn stop_all(mut self) {
        let numbers: Vec<_> = self.running.keys().copied().collect();
        for number in numbers {
            self.stop_process(number, CLOSED_WITHIN);
        }
        let all = async {
            while let Some(left) = self.estate.leaving.join_next().await {
                let _ = left.inspect(|left| self.note_exit(left));
            }
        };
        let _ = timeout(FAREWELL, all).await;
        let SupervisorSettings { name, children, .. } = self.settings;
        children.park_handover(name, self.estate);
    }
}
