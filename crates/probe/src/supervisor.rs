//! Keeps a backend's probe running and survives it.
//!
//! One main process looks at everything. A call that does not return is named, its process is
//! given up and replaced by one that leaves the stuck card out, and the card is tried alone with
//! growing pauses, so that one bad card stays one bad card. Nothing here waits for a probe.

mod picture;
mod process;
mod stuck;

use std::{collections::BTreeMap, time::Duration};

use model::StuckCall;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

pub use self::process::{Children, Program};
use self::{
    picture::Picture,
    process::{Heard, Left, Number, Process, Role, choice},
    stuck::{Concern, Ledger, Timing},
};
use crate::{
    protocol::{self, Message, Scope},
    sighting::Update,
};

/// How often limits are checked.
const TICK: Duration = Duration::from_secs(1);

/// Lines without sense after which a probe is replaced.
const NONSENSE_LIMIT: u32 = 100;

/// Beats without a slow call after which what was stuck counts as well again.
const CALM_BEATS: u32 = 2;

/// What a supervisor keeps running, and how patiently.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The backend's name: `nvidia`.
    pub name: String,
    /// How its probe is started.
    pub program: Program,
    /// How patient to be.
    pub limits: Limits,
    /// Where its processes are written down.
    pub children: Children,
}

/// How patient a supervisor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A call on a card that takes longer is stuck; any call that takes longer is named.
    pub call: Duration,
    /// A call that concerns the whole driver is given up after this.
    pub driver_call: Duration,
    /// A probe that says nothing for this long is stuck.
    pub silence: Duration,
    /// The pause before the second try; it doubles with each further one.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// At most this many processes that were given up and are still there.
    pub stuck_processes: usize,
}

/// A process with what it said.
#[derive(Debug)]
struct Running {
    process: Process,
    timing: Timing,
    reported: bool,
    calm: u32,
    nonsense: u32,
    /// Whether it was started to watch for events.
    events: bool,
}

#[derive(Debug)]
struct Supervisor {
    settings: Settings,
    updates: mpsc::Sender<Update>,
    heard: mpsc::Sender<(Number, Heard)>,
    readers: JoinSet<()>,
    leaving: JoinSet<Left>,
    running: BTreeMap<Number, Running>,
    started: Number,
    ledger: Ledger,
    picture: Picture,
    /// How often the main process failed in a row, and when it is started again.
    failures: u32,
    restart: Instant,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(10),
            driver_call: Duration::from_secs(60),
            silence: Duration::from_secs(10),
            pause: Duration::from_secs(5),
            longest_pause: Duration::from_secs(300),
            stuck_processes: 2,
        }
    }
}

impl Limits {
    /// The pause after `tries` earlier ones.
    fn pause(&self, tries: u32) -> Duration {
        let factor = 2u32.saturating_pow(tries);
        self.pause.saturating_mul(factor).min(self.longest_pause)
    }
}

/// Runs a backend's probes until `cancel`, and sends what they see to `updates`.
pub async fn run(settings: Settings, updates: mpsc::Sender<Update>, cancel: CancellationToken) {
    let (heard, mut ears) = mpsc::channel(64);
    let mut supervisor = Supervisor::new(settings, updates, heard);
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        supervisor.start_due(Instant::now());
        supervisor.publish().await;
        tokio::select! {
            () = cancel.cancelled() => break,
            Some((number, heard)) = ears.recv() => supervisor.hear(number, heard).await,
            Some(Ok(left)) = supervisor.leaving.join_next() => supervisor.left(&left),
            Some(_) = supervisor.readers.join_next() => {}
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
            settings,
            updates,
            heard,
            readers: JoinSet::new(),
            leaving: JoinSet::new(),
            running: BTreeMap::new(),
            started: 0,
            ledger: Ledger::default(),
            failures: 0,
            restart: Instant::now(),
        }
    }

    /// Starts every process that is due and allowed.
    fn start_due(&mut self, now: Instant) {
        let driver_rests =
            self.ledger.holds(Concern::Driver) && !self.ledger.due(Concern::Driver, now);
        if self.main().is_none() && now >= self.restart && !driver_rests {
            let cards: Vec<_> = self.ledger.cards().map(|(card, _)| card).collect();
            let events =
                !self.ledger.holds(Concern::Events) || self.ledger.due(Concern::Events, now);
            let scope = match cards.is_empty() {
                true => Scope::All,
                false => Scope::Skip(cards),
            };
            self.start(Role::Main, &scope, events, now);
        }
        let cards: Vec<_> = self.ledger.cards().map(|(card, _)| card).collect();
        for card in cards {
            let alone = |r: &Running| r.process.role == Role::Solo(card);
            if self.ledger.due(Concern::Card(card), now) && !self.running.values().any(alone) {
                self.start(Role::Solo(card), &Scope::Only(card), true, now);
            }
        }
    }

    fn start(&mut self, role: Role, scope: &Scope, events: bool, now: Instant) {
        if self.leaving.len() >= self.settings.limits.stuck_processes {
            if role == Role::Main {
                self.picture.unwatched = Some(format!(
                    "{} probe processes that were given up are still there; no other is started \
                     until one has ended",
                    self.leaving.len()
                ));
            }
            return;
        }
        self.started += 1;
        let mut args = choice(scope);
        if !events {
            args.push("--no-events".to_owned());
        }
        let process = Process::start(
            &self.settings,
            self.started,
            role,
            &args,
            &mut self.readers,
            self.heard.clone(),
        );
        match process {
            Ok(process) => {
                tracing::debug!(
                    probe = self.settings.name,
                    pid = process.pid(),
                    ?args,
                    "probe started"
                );
                let running = Running {
                    process,
                    timing: Timing::default(),
                    reported: false,
                    calm: 0,
                    nonsense: 0,
                    events,
                };
                self.running.insert(self.started, running);
            }
            Err(error) => {
                let program = self.settings.program.path.display();
                let why = format!("the probe {program} cannot be started: {error}");
                match role {
                    Role::Main => self.main_failed(why, now),
                    Role::Solo(card) => {
                        let later = now + self.settings.limits.pause;
                        self.ledger.postpone(Concern::Card(card), later);
                    }
                }
            }
        }
    }

    async fn hear(&mut self, number: Number, heard: Heard) {
        let now = Instant::now();
        // What a process said that was let go meanwhile is of no interest any more.
        let Some(running) = self.running.get_mut(&number) else {
            return;
        };
        running.process.heard = now;
        let role = running.process.role;
        match heard {
            Heard::Message(message) => match *message {
                Message::Hello(hello) if hello.protocol != protocol::VERSION => self.fail(
                    number,
                    format!(
                        "the probe speaks version {} of the protocol, this agent version {}",
                        hello.protocol,
                        protocol::VERSION
                    ),
                    now,
                ),
                Message::Hello(_) => {}
                Message::Report(report) => {
                    running.reported = true;
                    self.picture.report(role, report);
                    if role == Role::Main {
                        self.ledger.heal(Concern::Driver, now);
                    }
                }
                Message::Beat(beat) => self.beat(number, &beat, now),
                Message::Sample(sample) => self.send(Update::Sample(Box::new(sample))).await,
                Message::Event(event) => self.send(Update::Event(event)).await,
            },
            Heard::Nonsense(error) => {
                running.nonsense += 1;
                match running.nonsense {
                    1 => tracing::warn!(probe = self.settings.name, %error, "a line is ignored"),
                    NONSENSE_LIMIT.. => self.fail(number, error.to_string(), now),
                    _ => {}
                }
            }
            Heard::End(why) => self.fail(number, format!("the probe stopped: {why}"), now),
        }
    }

    fn beat(&mut self, number: Number, beat: &protocol::Beat, now: Instant) {
        let Some(running) = self.running.get_mut(&number) else {
            return;
        };
        running.timing.hear(beat, now);
        running.calm = match beat.calls.is_empty() && running.reported {
            true => running.calm.saturating_add(1),
            false => 0,
        };
        if running.calm < CALM_BEATS {
            return;
        }
        match running.process.role {
            Role::Main => {
                self.failures = 0;
                if running.events {
                    self.ledger.heal(Concern::Events, now);
                }
            }
            Role::Solo(card) => {
                tracing::info!(probe = self.settings.name, %card, "the card answers again");
                self.ledger.heal(Concern::Card(card), now);
                self.dismiss(number);
                self.replace_main();
            }
        }
    }

    /// Looks for calls and processes beyond their limits.
    fn check(&mut self, now: Instant) {
        let limits = self.settings.limits;
        let mut given_up: Vec<(Number, StuckCall)> = Vec::new();
        let mut slow = Vec::new();
        for (number, running) in &self.running {
            slow.extend(running.timing.slow(&limits, now).cloned());
            if let Some(call) = running.timing.stuck(&limits, now) {
                given_up.push((*number, call.clone()));
            } else if now.duration_since(running.process.heard) >= limits.silence {
                given_up.push((*number, silent(running)));
            }
        }
        for call in self.picture.name(slow) {
            tracing::error!(
                probe = self.settings.name, call = call.call, device = call.device,
                since = %call.since, "a driver call does not return"
            );
        }
        for (number, call) in given_up {
            self.give_up(number, call, now);
        }
        self.ledger.forgive(now);
        let without_events = self.main().is_some_and(|(_, main)| !main.events);
        if without_events && self.ledger.due(Concern::Events, now) {
            self.replace_main();
        }
    }

    /// A call of this process does not return: leave its card out and go on without it.
    fn give_up(&mut self, number: Number, call: StuckCall, now: Instant) {
        let Some(running) = self.running.remove(&number) else {
            return;
        };
        tracing::error!(
            probe = self.settings.name, pid = running.process.pid(), call = call.call,
            device = call.device, since = %call.since, "a probe is stuck and was given up"
        );
        let mut call = call;
        // A card that is tried alone answers for whatever its process hangs in.
        if let Role::Solo(card) = running.process.role {
            call.device = Some(card.to_string());
        }
        running.process.abandon(&mut self.leaving);
        self.ledger.add(call, &self.settings.limits, now);
    }

    /// A process ended or talks nonsense.
    fn fail(&mut self, number: Number, why: String, now: Instant) {
        let Some(running) = self.running.remove(&number) else {
            return;
        };
        match running.process.role {
            Role::Main => self.main_failed(why, now),
            Role::Solo(card) => {
                let later = now + self.settings.limits.pause;
                self.ledger.postpone(Concern::Card(card), later);
            }
        }
        running.process.abandon(&mut self.leaving);
    }

    fn main_failed(&mut self, why: String, now: Instant) {
        // The first time at once: most often somebody upgraded or killed it.
        let pause = match self.failures {
            0 => Duration::ZERO,
            failures => self.settings.limits.pause(failures - 1),
        };
        tracing::warn!(
            probe = self.settings.name,
            why,
            ?pause,
            "the probe is started again"
        );
        self.failures = self.failures.saturating_add(1);
        self.restart = now + pause;
        self.picture.unwatched = Some(why);
    }

    /// Lets the main process go, so that another starts with another choice of cards.
    fn replace_main(&mut self) {
        if let Some((number, _)) = self.main() {
            self.dismiss(number);
        }
    }

    fn dismiss(&mut self, number: Number) {
        if let Some(running) = self.running.remove(&number) {
            let limit = self.settings.limits.call;
            running.process.dismiss(limit, &mut self.leaving);
        }
    }

    fn left(&self, left: &Left) {
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
        if let Some(sighting) = self.picture.changed(&self.ledger) {
            self.send(Update::Sighting(Box::new(sighting))).await;
        }
    }

    async fn send(&self, update: Update) {
        // The receiver lives as long as the agent; when it is gone we are being stopped.
        let _ = self.updates.send(update).await;
    }

    /// Ends every process: closing its input asks it to, dropping it kills it.
    async fn stop(mut self) {
        let numbers: Vec<_> = self.running.keys().copied().collect();
        for number in numbers {
            self.dismiss(number);
        }
        let all = async { while self.leaving.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(Duration::from_millis(300), all).await;
    }
}

/// What is held against a process that says nothing any more.
fn silent(running: &Running) -> StuckCall {
    running.timing.any().cloned().unwrap_or_else(|| StuckCall {
        call: "(no sign of life from the probe)".to_owned(),
        device: None,
        since: jiff::Timestamp::now(),
    })
}
