//! When a supervisor starts a process, and with which arguments.

use tokio::time::Instant;

use super::{
    OPTIONAL, Running, Supervisor,
    process::{Process, Role, choice},
    stuck::{Concern, Timing},
};
use crate::protocol::Scope;

// === impl Supervisor ===

impl Supervisor {
    /// Starts every process that is due and allowed.
    pub(super) fn start_due(&mut self, now: Instant) {
        let driver_rests =
            self.ledger.holds(Concern::Driver) && !self.ledger.due(Concern::Driver, now);
        if self.estate.aside.holds_all() {
            return;
        }
        let mut cards: Vec<_> = self.ledger.cards().map(|(card, _)| card).collect();
        cards.extend(self.estate.aside.cards());
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
            if self.estate.aside.holds_card(card) {
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
            Role::Main => self.estate.abandoned.len() < places,
            Role::Solo(_) => self.estate.abandoned.len() + 1 < places,
        }
    }

    fn start(&mut self, role: Role, scope: &Scope, without: Vec<Concern>, now: Instant) {
        if !self.has_place(role) {
            if role == Role::Main {
                self.picture.unwatched = Some(format!(
                    "{} probe processes that were given up are still there; no other is started \
                     until one has ended",
                    self.estate.abandoned.len()
                ));
            }
            return;
        }
        self.estate.started += 1;
        let args = self.args(role, scope, &without);
        let process = Process::start(
            &self.settings,
            self.estate.started,
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
                self.running.insert(self.estate.started, running);
                self.estate.live.insert(self.estate.started, role);
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

    /// The arguments behind the program's own.
    fn args(&self, role: Role, scope: &Scope, without: &[Concern]) -> Vec<String> {
        let mut args = choice(scope);
        args.extend(without.iter().filter_map(|concern| match concern {
            Concern::Events => Some("--no-events".to_owned()),
            Concern::Links => Some("--no-links".to_owned()),
            Concern::Card(_) | Concern::Driver => None,
        }));
        if role == Role::Main && self.settings.program.checks_deeply() {
            let ago = self.estate.deep.elapsed().as_secs();
            args.push(format!("--deep-last-ago={ago}"));
        }
        args
    }
}
