//! Keeps a backend's probe running and survives it.
//!
//! One main process looks at everything. A call that does not return is named, its process is
//! given up and replaced by one that leaves the stuck card out, and the card is tried alone with
//! growing pauses, so that one bad card stays one bad card. Nothing here waits for a probe.

mod aside;
mod obey;
mod orders;
mod picture;
mod process;
mod settings;
mod stuck;

use std::{collections::BTreeMap, time::Duration};

use model::StuckCall;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use self::{
    aside::Aside,
    picture::Picture,
    process::{Heard, Left, Number, Process, Role, choice},
    stuck::{Concern, Ledger, Timing},
};
pub use self::{
    orders::{Orders, Which},
    process::{Children, Program},
    settings::{Limits, Settings},
};
use crate::{
    protocol::{self, CardRef, Message, Scope},
    sighting::Update,
};

/// How often limits are checked.
const TICK: Duration = Duration::from_secs(1);

/// Lines without sense after which a probe is replaced.
const NONSENSE_LIMIT: u32 = 100;

/// Beats without a slow call after which what was stuck counts as well again.
const CALM_BEATS: u32 = 2;

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
    /// What it was told to leave out.
    without: Vec<Concern>,
}

#[derive(Debug)]
struct Supervisor {
    settings: Settings,
    updates: mpsc::Sender<Update>,
    heard: mpsc::Sender<(Number, Heard)>,
    readers: JoinSet<()>,
    /// Processes that were asked to end.
    leaving: JoinSet<Left>,
    /// Processes that were killed because they are stuck.
    abandoned: JoinSet<Left>,
    running: BTreeMap<Number, Running>,
    started: Number,
    /// Processes that have not ended, also those that were let go.
    live: BTreeMap<Number, Role>,
    ledger: Ledger,
    aside: Aside,
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
            Some(Ok(left)) = supervisor.leaving.join_next() => supervisor.left(&left),
            Some(Ok(left)) = supervisor.abandoned.join_next() => supervisor.left(&left),
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
            settings,
            updates,
            heard,
            readers: JoinSet::new(),
            leaving: JoinSet::new(),
            abandoned: JoinSet::new(),
            running: BTreeMap::new(),
            started: 0,
            live: BTreeMap::new(),
            ledger: Ledger::default(),
            aside: Aside::default(),
            refreshes: 0,
            failures: 0,
            restart: Instant::now(),
            checked: Instant::now(),
        }
    }

    /// Starts every process that is due and allowed.
    fn start_due(&mut self, now: Instant) {
        let driver_rests =
            self.ledger.holds(Concern::Driver) && !self.ledger.due(Concern::Driver, now);
        if self.aside.holds_all() {
            return;
        }
        let mut cards: Vec<_> = self.ledger.cards().map(|(card, _)| card).collect();
        cards.extend(self.aside.cards());
        cards.sort();
        cards.dedup();
        if self.main().is_none() && now >= self.restart && !driver_rests {
            let scope = match cards.is_empty() {
                true => Scope::All,
                false => Scope::Skip(cards.clone()),
            };
            let rests = |c: &Concern| self.ledger.holds(*c) && !self.ledger.due(*c, now);
            let without = OPTIONAL.into_iter().filter(rests).collect();
            self.start(Role::Main, &scope, without, now);
        }
        for card in cards {
            if self.aside.holds_card(card) {
                continue;
            }
            let alone = |r: &Running| r.process.role == Role::Solo(card);
            if self.ledger.due(Concern::Card(card), now) && !self.running.values().any(alone) {
                self.start(Role::Solo(card), &Scope::Only(card), Vec::new(), now);
            }
        }
    }

    /// Whether one more process may be started for `role`. The last place is the main process's:
    /// a card that is tried alone must not cost the others their probe.
    fn has_place(&self, role: Role) -> bool {
        let places = self.settings.limits.stuck_processes;
        match role {
            Role::Main => self.abandoned.len() < places,
            Role::Solo(_) => self.abandoned.len() + 1 < places,
        }
    }

    fn start(&mut self, role: Role, scope: &Scope, without: Vec<Concern>, now: Instant) {
        if !self.has_place(role) {
            if role == Role::Main {
                self.picture.unwatched = Some(format!(
                    "{} probe processes that were given up are still there; no other is started \
                     until one has ended",
                    self.abandoned.len()
                ));
            }
            return;
        }
        self.started += 1;
        let mut args = choice(scope);
        args.extend(without.iter().filter_map(|concern| match concern {
            Concern::Events => Some("--no-events".to_owned()),
            Concern::Links => Some("--no-links".to_owned()),
            Concern::Card(_) | Concern::Driver => None,
        }));
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
                    without,
                };
                self.running.insert(self.started, running);
                self.live.insert(self.started, role);
            }
            Err(error) => {
                let program = self.settings.program.path.display();
                let why = format!("the probe {program} cannot be started: {error}");
                match role {
                    Role::Main => self.main_failed(why, now),
                    Role::Solo(card) => self.put_off(card, now),
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
                    self.picture.report(role, *report);
                    if role == Role::Main {
                        self.aside.reported(number);
                        self.ledger.heal(Concern::Driver, now);
                    }
                }
                Message::Beat(beat) => self.beat(number, &beat, now),
                Message::Sample(sample) => self.send(Update::Sample(Box::new(sample))).await,
                Message::Checkup(checkup) => self.send(Update::Checkup(Box::new(checkup))).await,
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
                let without = running.without.clone();
                for concern in OPTIONAL.iter().filter(|c| !without.contains(c)) {
                    self.ledger.heal(*concern, now);
                }
            }
            Role::Solo(card) => {
                tracing::info!(probe = self.settings.name, %card, "the card answers again");
                self.ledger.heal(Concern::Card(card), now);
                self.dismiss(number, self.settings.limits.call);
                self.replace_main();
            }
        }
    }

    /// Looks for calls and processes beyond their limits.
    fn check(&mut self, now: Instant) {
        self.settings.orders.expire(now);
        if now.duration_since(std::mem::replace(&mut self.checked, now)) > TICK * 3 {
            self.oversleep(now);
        }
        let limits = self.settings.limits;
        let mut given_up: Vec<(Number, StuckCall)> = Vec::new();
        let mut silent = Vec::new();
        let mut slow = Vec::new();
        for (number, running) in &self.running {
            slow.extend(running.timing.slow(&limits, now).cloned());
            let is_silent = now.duration_since(running.process.heard) >= limits.silence;
            let stuck = running.timing.stuck(&limits, now);
            match stuck.or_else(|| running.timing.any().filter(|_| is_silent)) {
                Some(call) => given_up.push((*number, call.clone())),
                None if is_silent => silent.push(*number),
                None => {}
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
        for number in silent {
            let seconds = limits.silence.as_secs();
            let why = format!("the probe gave no sign of life for {seconds} s");
            self.fail(number, why, now);
        }
        self.ledger.forgive(now);
        let without = self.main().map(|(_, main)| main.without.clone());
        let is_due = |concern: &Concern| self.ledger.due(*concern, now);
        if without.is_some_and(|without| without.iter().any(is_due)) {
            self.replace_main();
        }
    }

    /// We were stopped for a while, as when a machine sleeps: what we did not hear in that time is
    /// nobody's fault.
    fn oversleep(&mut self, now: Instant) {
        for running in self.running.values_mut() {
            running.process.heard = now;
            running.timing.restart(now);
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
        match running.process.role {
            // Nobody can look at what was taken back.
            Role::Main if Concern::of(&call) == Concern::Driver => self.aside.failed(),
            Role::Main => {}
            // A card that is tried alone answers for whatever its process hangs in.
            Role::Solo(card) => call.device = Some(card.to_string()),
        }
        running.process.abandon(&mut self.abandoned);
        self.ledger.add(call, &self.settings.limits, now);
    }

    /// A process ended or talks nonsense.
    fn fail(&mut self, number: Number, why: String, now: Instant) {
        let Some(running) = self.running.remove(&number) else {
            return;
        };
        match running.process.role {
            Role::Main => self.main_failed(why, now),
            Role::Solo(card) => self.put_off(card, now),
        }
        running.process.abandon(&mut self.abandoned);
    }

    /// A card's own process did not come to anything: its next try waits.
    fn put_off(&mut self, card: CardRef, now: Instant) {
        let later = now + self.settings.limits.pause;
        self.ledger.postpone(Concern::Card(card), later);
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
        self.aside.failed();
        self.picture.unwatched = Some(why);
    }

    /// Lets the main process go, so that another starts with another choice of cards.
    fn replace_main(&mut self) {
        if let Some((number, _)) = self.main() {
            self.dismiss(number, self.settings.limits.call);
        }
    }

    fn dismiss(&mut self, number: Number, limit: Duration) {
        if let Some(running) = self.running.remove(&number) {
            running.process.dismiss(limit, &mut self.leaving);
        }
    }

    fn left(&mut self, left: &Left) {
        self.live.remove(&left.number);
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
        let released = self.aside.released(&self.live);
        self.picture.held = self.aside.holds_all();
        if let Some(sighting) = self.picture.changed(&self.ledger, released) {
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
            self.dismiss(number, self.settings.limits.call);
        }
        let all = async { while self.leaving.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(Duration::from_millis(300), all).await;
    }
}
