//! Deep checks: a command of the user runs for one idle card after the other. Its result goes to the
//! inventory as a check-up.
//!
//! One command runs at a time. If its card is released, the command is ended, and the release is complete
//! only after the last process of the command has ended. The start of a pod on the card does not end the
//! command. A command that cannot be run is no evidence against the card.

mod attend;
mod outcome;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use health::HealthPolicy;
use inventory::Readers;
use model::{CauseKind, Deep as Outcome, Device, DeviceId, Entry, Kind, Reading, Snapshot, Values};
use probe::{
    Update,
    protocol::Checkup,
    supervisor::{OrdersByBackend, ReleaseScope},
};
use rules::Vendors;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    command::{self, CommandCall, Runner},
    look,
};

/// Inputs and outputs of deep checks.
#[derive(Debug)]
pub struct DeepCheckChannels {
    /// Snapshots and samples of the inventory.
    pub readers: Readers,
    /// Orders to the probes' supervisors: requests for samples, and cards that are occupied.
    pub orders: OrdersByBackend,
    /// Runner of the command.
    pub runner: Runner,
    /// Channel for the check-ups.
    pub updates: mpsc::Sender<Update>,
    /// Time of the last round.
    pub rounds: LastRound,
}

/// Time of the last round, or of the agent's start before the first round. It outlives a restart of the
/// task, so that a restart does not start a round early or late.
#[derive(Clone, Debug)]
pub struct LastRound(watch::Sender<Instant>);

/// Settings of deep checks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DeepCheckSettings {
    command: Vec<String>,
    period: Duration,
    limit: Duration,
    vendors: Vendors,
}

/// State of the task.
#[derive(Debug)]
struct DeepChecker {
    wires: DeepCheckChannels,
    /// Tasks of commands. Each ends with the last process of its command.
    commands: JoinSet<()>,
    /// Task of the last command of each card.
    last: BTreeMap<DeviceId, AbortHandle>,
}

/// Makes deep checks by the newest config. It ends only when the channels are closed. A running command is
/// ended if its settings in the config change. The next round then starts one new period after the last one.
pub async fn run_deep_checks(wires: DeepCheckChannels, mut policy: watch::Receiver<HealthPolicy>) {
    let mut checker = DeepChecker {
        wires,
        commands: JoinSet::new(),
        last: BTreeMap::new(),
    };
    loop {
        let check = DeepCheckSettings::from_policy(&policy.borrow_and_update());
        let changed = policy.wait_for(|policy| DeepCheckSettings::from_policy(policy) != check);
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

// === impl LastRound ===

impl Default for LastRound {
    fn default() -> Self {
        Self(watch::Sender::new(Instant::now()))
    }
}

// === impl DeepCheckSettings ===

impl DeepCheckSettings {
    /// Reads the settings; `None` if deep checks are off.
    fn from_policy(policy: &HealthPolicy) -> Option<Self> {
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

// === impl DeepChecker ===

impl DeepChecker {
    /// Makes one round after the other. Returns when a channel is closed.
    async fn make_rounds(&mut self, check: &DeepCheckSettings) {
        loop {
            let last = *self.wires.rounds.0.borrow();
            sleep_until(last + check.period).await;
            let mut snapshots = self.wires.readers.snapshots.clone();
            let cards = match snapshots
                .wait_for(|found| !seen_cards(found).is_empty())
                .await
            {
                Ok(snapshot) => seen_cards(&snapshot),
                Err(_closed) => return,
            };
            self.wires.rounds.0.send_replace(Instant::now());
            for card in cards {
                let outcome = self.check_card(&card, check).await;
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

    /// Checks one card, and writes the outcome to the log.
    async fn check_card(&mut self, card: &Device, check: &DeepCheckSettings) -> Outcome {
        let outcome = match self.try_check(card, check).await {
            Ok(ended) => outcome::from_result(ended, check.limit),
            Err(reason) => outcome::not_run(&reason),
        };
        let (card, output) = (&card.id, &outcome.output);
        match outcome.passed {
            Some(passed) => tracing::info!(%card, passed, "a deep check has ended"),
            None => tracing::info!(%card, output, "no deep check"),
        }
        outcome
    }

    /// Runs the command on an idle card.
    ///
    /// # Errors
    /// The card is in use, released or not seen, so that the command was not started.
    async fn try_check(
        &mut self,
        card: &Device,
        check: &DeepCheckSettings,
    ) -> Result<attend::CommandResult, String> {
        while self.commands.try_join_next().is_some() {}
        // A process in a driver call (state D) survives SIGKILL until the call returns. A second command
        // on its card would hang too.
        self.last.retain(|_, command| !command.is_finished());
        if self.last.contains_key(&card.id) {
            return Err("its last command was killed and has not ended".to_owned());
        }
        let which = card
            .card_ref()
            .map_or(ReleaseScope::All, ReleaseScope::Card);
        let work = self.wires.orders.orders_of(&card.vendor).occupy(which);
        let work = work.ok_or("an operator has it, or it is being reset")?;
        self.find_idle(card).await?;
        let vendor = check.vendors.find_rules(&card.vendor).vendor();
        let call = CommandCall {
            command: &check.command,
            about: command::about(card, None, vendor),
        };
        let running = match self.wires.runner.start_command(&call) {
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

    /// Checks by a new sample that the card is idle. The error is the reason why it is not.
    async fn find_idle(&self, card: &Device) -> Result<(), String> {
        let DeepCheckChannels {
            readers, orders, ..
        } = &self.wires;
        let is_seen =
            |snapshot: &Snapshot| snapshot.find_entry(card.id.as_str()).is_some_and(is_seen);
        if !is_seen(&readers.snapshots.borrow()) {
            return Err("it is not there".to_owned());
        }
        let until = Instant::now() + look::FRESH_WITHIN;
        if !look::request_samples(readers, orders, std::slice::from_ref(&card.id), until).await {
            return Err("no probe looked at it in time".to_owned());
        }
        let samples = readers.samples.borrow();
        match samples.telemetry(&card.id).and_then(outcome::busy_reason) {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}

/// Cards of a round: whole cards that a probe sees.
fn seen_cards(snapshot: &Snapshot) -> Vec<Arc<Device>> {
    let entries = snapshot.devices.iter();
    let cards = entries.filter(|entry| matches!(entry.device.kind, Kind::Card { .. }));
    cards
        .filter(|entry| is_seen(entry))
        .map(|entry| Arc::clone(&entry.device))
        .collect()
}

/// True if a probe reads the device and the device answers.
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
