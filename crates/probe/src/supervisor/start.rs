//! Start of probe processes by a supervisor: the time, the cards and the settings.

use tokio::time::Instant;

use super::{
    OPTIONAL, Running, Supervisor,
    process::{Launch, Process, Role},
    stuck::{Concern, Timing},
};
use crate::protocol::{Configure, Scope};

// === impl Supervisor ===

impl Supervisor {
    /// Starts the main process and the tries of stuck cards that are due.
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
            // Optional work is left out until its next try is due; the next main process has it again.
            let rests = |c: &Concern| self.ledger.holds(*c) && !self.ledger.due(*c, now);
            let without = OPTIONAL.into_iter().filter(rests).collect();
            self.start(Role::Main, scope, without, now);
        }
        for card in cards {
            if self.estate.aside.holds_card(card) {
                continue;
            }
            let alone = |r: &Running| r.process.role == Role::Solo(card);
            if self.ledger.due(Concern::Card(card), now) && !self.running.values().any(alone) {
                self.start(Role::Solo(card), Scope::Only(card), Vec::new(), now);
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

    fn start(&mut self, role: Role, cards: Scope, without: Vec<Concern>, now: Instant) {
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
        let configure = self.configure(cards, &without);
        let launch = Launch {
            settings: &self.settings,
            number: self.estate.started,
            role,
            configure: &configure,
        };
        let process = Process::start(&launch, &mut self.readers, self.heard.clone());
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
                let running = Running {
                    process,
                    timing: Timing::default(),
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
    fn configure(&self, cards: Scope, without: &[Concern]) -> Configure {
        let all = &self.settings.configure;
        Configure {
            cards,
            events: all.events && !without.contains(&Concern::Events),
            links: all.links && !without.contains(&Concern::Links),
            ..all.clone()
        }
    }
}
