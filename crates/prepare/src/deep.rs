//! Deep checks: a command of the user's, run for one idle card after another, with its result posted to
//! the inventory as a check-up.
//!
//! One command runs at a time. A card that is released gets its command ended, and the release is not
//! closed before all of it is gone. No pod that starts on the card ends it. What cannot be run says
//! nothing about the card.

mod attend;
mod outcome;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use health::Policy;
use inventory::Readers;
use model::{CauseKind, Deep as Outcome, Device, DeviceId, Entry, Kind, Reading, Snapshot, Values};
use probe::{
    Update,
    protocol::Checkup,
    supervisor::{OrdersByBackend, Which},
};
use rules::Vendors;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    command::{self, Call, Runner},
    look,
};

/// Inputs and outputs of deep checks.
#[derive(Debug)]
pub struct DeepWires {
    /// Devices and their samples.
    pub readers: Readers,
    /// Orders to look, and notes of the work on cards.
    pub orders: OrdersByBackend,
    /// Runs the command.
    pub runner: Runner,
    /// Takes the check-ups.
    pub updates: mpsc::Sender<Update>,
    /// The rhythm.
    pub rounds: Rounds,
}

/// The time of the last round; before the first, that of the agent's start. It outlives a restart of the
/// task, so that the rhythm does.
#[derive(Clone, Debug)]
pub struct Rounds(watch::Sender<Instant>);

/// The settings of deep checks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DeepCheck {
    command: Vec<String>,
    period: Duration,
    limit: Duration,
    vendors: Vendors,
}

/// The state of the task.
#[derive(Debug)]
struct Checker {
    wires: DeepWires,
    /// Commands, until nothing of them is left.
    commands: JoinSet<()>,
    /// The last command of each card.
    last: BTreeMap<DeviceId, AbortHandle>,
}

/// Makes deep checks for ever, by the newest config. A command that runs is ended when the config has
/// other settings for it, and the next round follows the last one by the new period.
pub async fn run_deep_checks(wires: DeepWires, mut policy: watch::Receiver<Policy>) {
    let mut checker = Checker {
        wires,
        commands: JoinSet::new(),
        last: BTreeMap::new(),
    };
    loop {
        let check = DeepCheck::of(&policy.borrow_and_update());
        let changed = policy.wait_for(|policy| DeepCheck::of(policy) != check);
        let rounds = async {
            match &check {
                Some(check) => checker.make_rounds(check).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changed => match changed {
                Ok(_) => {}
                Err(_closed) => return,
            },
            () = rounds => {}
        }
    }
}

// === impl Rounds ===

impl Default for Rounds {
    fn default() -> Self {
        Self(watch::Sender::new(Instant::now()))
    }
}

// === impl DeepCheck ===

impl DeepCheck {
    /// The settings; `None` where there are no deep checks.
    fn of(policy: &Policy) -> Option<Self> {
        let health = &policy.health;
        let period = health.periods.deep.filter(|period| !period.is_zero())?;
        (!health.deep_command.is_empty()).then(|| Self {
            command: health.deep_command.clone(),
            period,
            limit: health.deep_limit,
            vendors: policy.vendors,
        })
    }
}

// === impl Checker ===

impl Checker {
    /// Makes one round after another.
    async fn make_rounds(&mut self, check: &DeepCheck) {
        loop {
            let last = *self.wires.rounds.0.borrow();
            sleep_until(last + check.period).await;
            let mut snapshots = self.wires.readers.snapshots.clone();
            let cards = match snapshots.wait_for(|found| !cards(found).is_empty()).await {
                Ok(snapshot) => cards(&snapshot),
                Err(_closed) => return,
            };
            self.wires.rounds.0.send_replace(Instant::now());
            for card in cards {
                let outcome = self.examine(&card, check).await;
                let update = Update::Checkup {
                    backend: card.vendor.clone(),
                    checkup: Box::new(checkup(&card.id, outcome)),
                };
                if self.wires.updates.send(update).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Checks one card.
    async fn examine(&mut self, card: &Device, check: &DeepCheck) -> Outcome {
        let outcome = match self.attempt(card, check).await {
            Ok(ended) => outcome::of(ended, check.limit),
            Err(reason) => outcome::not_run(&reason),
        };
        let (card, output) = (&card.id, &outcome.output);
        match outcome.passed {
            Some(passed) => tracing::info!(%card, passed, "a deep check has ended"),
            None => tracing::info!(%card, output, "no deep check"),
        }
        outcome
    }

    /// Runs the command, if nothing stands against it; what does.
    async fn attempt(
        &mut self,
        card: &Device,
        check: &DeepCheck,
    ) -> Result<attend::Result, String> {
        while self.commands.try_join_next().is_some() {}
        self.last.retain(|_, command| !command.is_finished());
        if self.last.contains_key(&card.id) {
            return Err("its last command was killed and has not ended".to_owned());
        }
        let which = card.card_ref().map_or(Which::All, Which::Card);
        let work = self.wires.orders.of(&card.vendor).occupy(which);
        let work = work.ok_or("an operator has it, or it is being reset")?;
        self.find_idle(card).await?;
        let vendor = check.vendors.of(&card.vendor).vendor();
        let call = Call {
            command: &check.command,
            about: command::about(card, None, vendor),
        };
        let running = match self.wires.runner.start(&call) {
            Ok(running) => running,
            Err(error) => return Ok(Err(error)),
        };
        tracing::info!(card = %card.id, "a deep check begins");
        let (tell, told) = oneshot::channel();
        let deadline = Instant::now() + check.limit;
        let attending = attend::attend(running, work, deadline, tell);
        let command = self.commands.spawn(attending);
        self.last.insert(card.id.clone(), command);
        told.await.map_err(|_| "its command was lost".to_owned())
    }

    /// Makes sure by a new look that nobody uses a card; who does.
    async fn find_idle(&self, card: &Device) -> Result<(), String> {
        let DeepWires {
            readers, orders, ..
        } = &self.wires;
        let is_seen = |snapshot: &Snapshot| snapshot.find(card.id.as_str()).is_some_and(is_seen);
        if !is_seen(&readers.snapshots.borrow()) {
            return Err("it is not there".to_owned());
        }
        let until = Instant::now() + look::FRESH_WITHIN;
        if !look::fresh(readers, orders, std::slice::from_ref(&card.id), until).await {
            return Err("no probe looked at it in time".to_owned());
        }
        let samples = readers.samples.borrow();
        match samples.telemetry(&card.id).and_then(outcome::busy) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}

/// The cards that a round is for: whole ones that a probe sees.
fn cards(snapshot: &Snapshot) -> Vec<Arc<Device>> {
    let entries = snapshot.devices.iter();
    let cards = entries.filter(|entry| matches!(entry.device.kind, Kind::Card { .. }));
    cards
        .filter(|entry| is_seen(entry))
        .map(|entry| Arc::clone(&entry.device))
        .collect()
}

/// Returns true if a device is looked at and answers.
fn is_seen(entry: &Entry) -> bool {
    let mut causes = entry.verdict.causes.iter();
    causes.all(|cause| {
        !matches!(
            cause.kind,
            CauseKind::Lost
                | CauseKind::Gone
                | CauseKind::NotAnswering
                | CauseKind::MonitorDown
                | CauseKind::Released
        )
    })
}

fn checkup(card: &DeviceId, outcome: Outcome) -> Checkup {
    Checkup {
        device: card.clone(),
        reading: Reading {
            values: Values::Deep(outcome),
            conditions: Vec::new(),
            unsupported: Vec::new(),
            failures: Vec::new(),
        },
    }
}
