//! Handling of probe processes that hang, fall silent, write too much or fail.

use std::time::Duration;

use model::{CardRef, StuckCall};
use tokio::time::Instant;

use super::{
    Supervisor, TICK,
    process::{ProcessNumber, Role},
    stuck::CallScope,
};
use crate::protocol::LINES_LIMIT;

// === impl Supervisor ===

impl Supervisor {
    /// Checks all calls and processes against their limits, and replaces those that exceed one.
    pub(super) fn check_limits(&mut self, now: Instant) {
        self.settings.orders.end_expired(now);
        if now.duration_since(std::mem::replace(&mut self.checked, now)) > TICK * 3 {
            self.oversleep(now);
        }
        let limits = self.settings.limits;
        let mut given_up: Vec<(ProcessNumber, StuckCall)> = Vec::new();
        let mut silent = Vec::new();
        let mut slow = Vec::new();
        let mut flooding = Vec::new();
        for (number, running) in &mut self.running {
            if std::mem::take(&mut running.lines) > LINES_LIMIT {
                flooding.push(*number);
            }
            slow.extend(running.timing.list_slow_calls(&limits, now).cloned());
            let is_silent = now.duration_since(running.process.heard) >= limits.silence;
            let stuck = running.timing.find_stuck(&limits, now);
            match stuck.or_else(|| running.timing.oldest_call().filter(|_| is_silent)) {
                Some(call) => given_up.push((*number, call.clone())),
                None if is_silent => silent.push(*number),
                None => {}
            }
        }
        for call in self.picture.set_slow_calls(slow) {
            tracing::error!(
                probe = self.settings.name, call = call.call, device = call.device.map(tracing::field::display),
                since = %call.since, "a driver call does not return"
            );
        }
        for (number, call) in given_up {
            self.give_up(number, call, now);
        }
        for number in flooding {
            let why = format!("the probe wrote more than {LINES_LIMIT} lines within a second");
            self.handle_failure(number, why, now);
        }
        for number in silent {
            let seconds = limits.silence.as_secs();
            let why = format!("the probe gave no sign of life for {seconds} s");
            self.handle_failure(number, why, now);
        }
        self.ledger.forgive(now);
        let without = self.main_probe().map(|(_, main)| main.without.clone());
        let is_due = |concern: &CallScope| self.ledger.is_retry_due(*concern, now);
        if without.is_some_and(|without| without.iter().any(is_due)) {
            self.replace_main();
        }
    }

    /// Restarts all timers after the agent itself was stopped, as when a machine is suspended:
    /// silence in this time says nothing about the probes.
    fn oversleep(&mut self, now: Instant) {
        for running in self.running.values_mut() {
            running.process.heard = now;
            running.timing.restart_timers(now);
        }
    }

    /// Abandons a process with a call that does not return: kills it, and records the call, so that
    /// the next main process leaves out what the call blocks.
    fn give_up(&mut self, number: ProcessNumber, call: StuckCall, now: Instant) {
        let Some(running) = self.running.remove(&number) else {
            return;
        };
        tracing::error!(
            probe = self.settings.name, pid = running.process.pid(), call = call.call,
            device = call.device.map(tracing::field::display), since = %call.since, "a probe is stuck and was given up"
        );
        let mut call = call;
        match running.process.role {
            // No process can read the cards of ended releases: from now on the stuck driver is the
            // reason why they are missing.
            Role::Main if CallScope::of_call(&call) == CallScope::Driver => {
                self.estate.aside.remove_ended()
            }
            Role::Main => {}
            // A solo process reads this card only, so a call that names no card is its call too.
            Role::Solo(card) => call.device = Some(card),
        }
        running.process.abandon(&mut self.estate.abandoned);
        self.ledger.add_stuck(call, &self.settings.limits, now);
    }

    /// Replaces a process that ended, fell silent or broke the protocol.
    pub(super) fn handle_failure(&mut self, number: ProcessNumber, why: String, now: Instant) {
        let Some(running) = self.running.remove(&number) else {
            return;
        };
        match running.process.role {
            Role::Main => self.main_failed(why, now),
            Role::Solo(card) => self.put_off(card, now),
        }
        running.process.abandon(&mut self.estate.abandoned);
    }

    /// Postpones the next try of a stuck card whose process failed.
    pub(super) fn put_off(&mut self, card: CardRef, now: Instant) {
        let later = now + self.settings.limits.pause;
        self.ledger.postpone(CallScope::Card(card), later);
    }

    pub(super) fn main_failed(&mut self, why: String, now: Instant) {
        // No pause after the first failure: the usual cause is an upgrade, or a kill by a person.
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
        self.estate.aside.remove_ended();
        self.picture.unwatched = Some(why);
    }
}
