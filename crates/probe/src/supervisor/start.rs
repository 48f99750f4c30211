//! Start of probe processes by a supervisor: the time, the cards and the settings.

use tokio::time::Instant;

use super::{
    OPTIONAL, RunningProbe, Supervisor,
    process::{Launch, ProbeProcess, Role},
    stuck::{CallScope, CallTimer},
};
use crate::protocol::{Configure, Scope};

// === impl Supervisor ===

impl Supervisor {
    /// Starts the main process and the tries of stuck cards that are due.
    pub(super) fn start_due(&mut self, now: Instant) {
        let driver_rests = self.ledger.is_stuck(CallScope::Driver)
            && !self.ledger.is_retry_due(CallScope::Driver, now);
        if self.estate.aside.holds_all() {
            return;
        }
        let mut cards: Vec<_> = self
            .ledger
            .list_stuck_cards()
            .map(|(card, _)| card)
            .collect();
        cards.extend(self.estate.aside.list_cards_released());
        cards.sort();
        cards.dedup();
        if self.main_probe().is_none() && now >= self.restart && !driver_rests {
            let scope = match cards.is_empty() {
                true => Scope::All,
                false => Scope::Skip(cards.clone()),
            };
            // Optional work is left out until its next try is due; the next main process has it again.
            let rests =
                |c: &CallScope| self.ledger.is_stuck(*c) && !self.ledger.is_retry_due(*c, now);
            let without = OPTIONAL.into_iter().filter(rests).collect();
            self.start_process(Role::Main, scope, without, now);
        }
        for card in cards {
            if self.estate.aside.holds_card(card) {
                continue;
            }
            let alone = |r: &RunningProbe| r.process.role == Role::Solo(card);
            if self.ledger.is_retry_due(CallScope::Card(card), now)
                && !self.running.values().any(alone)
            {
                self.start_process(Role::Solo(card), Scope::Only(card), Vec::new(), now);
            }
        }
    }

    /// Returns true if one more process may be started for `role`. The last place is reserved for
    /// the main process: the try of one stuck card must not block the probe of all others.
    fn has_place(&self, role: Role) -> bool {
        let places = self.settings.limits.stuck_processes;
        match role {
            Role::Main => self.estate.abandoned.len() < places,
            Role::Solo(_) => self.estate.abandoned.len() + 1 < places,
        }
    }

    fn start_process(&mut self, role: Role, cards: Scope, without: Vec<CallScope>, now: Instant) {
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
        let configure = self.build_configure(cards, &without);
        let launch = Launch {
            settings: &self.settings,
            number: self.estate.started,
            role,
            configure: &configure,
        };
        let process = ProbeProcess::start_probe(&launch, &mut self.readers, self.heard.clone());
        match process {
            Ok(process) => {
                tracing::debug!(
                    probe = self.settings.name,
                    pid = process.pid(),
                    cards = ?configure.cards,
                    events = configure.events,
                    links = configure.links,
                    "probe started"
                );
                let running = RunningProbe {
                    process,
                    timing: CallTimer::default(),
                    reported: false,
                    calm: 0,
                    nonsense: 0,
                    lines: 0,
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

    /// Builds the settings of one process: the common ones, with its cards and without stuck work.
    fn build_configure(&self, cards: Scope, without: &[CallScope]) -> Configure {
        let all = &self.settings.configure;
        Configure {
            cards,
            events: all.events && !without.contains(&CallScope::Events),
            links: all.links && !without.contains(&CallScope::Links),
            ..all.clone()
        }
    }
}
