//! Handling of the lines of probe processes.

use model::Tier;
use tokio::time::Instant;

use super::{
    OPTIONAL, Settings, Supervisor,
    admit::admit,
    process::{Heard, Number, Role},
    stuck::Concern,
};
use crate::{
    protocol::{self, Message},
    sighting::Update,
};

/// Number of invalid lines after which a probe process is replaced.
const NONSENSE_LIMIT: u32 = 100;

/// Number of beats in a row without an overdue call after which a stuck card counts as recovered.
const CALM_BEATS: u32 = 2;

// === impl Supervisor ===

impl Supervisor {
    /// Handles a line of a process.
    pub(super) async fn hear(&mut self, number: Number, heard: Heard) {
        let now = Instant::now();
        // The process was asked to exit meanwhile: its lines may describe cards that are released
        // now.
        let Some(running) = self.running.get_mut(&number) else {
            return;
        };
        running.process.heard = now;
        running.lines = running.lines.saturating_add(1);
        let role = running.process.role;
        match heard {
            Heard::Message(message) => match *message {
                Message::Hello(hello) if hello.protocol != protocol::VERSION => self.fail(
                    number,
                    format!(
                        "the probe speaks version {} of the protocol, this agent version {}: see \
                         docs/probe-protocol.md for the changes",
                        hello.protocol,
                        protocol::VERSION
                    ),
                    now,
                ),
                Message::Hello(_) => {}
                Message::Report(mut report) => {
                    running.reported = true;
                    let Settings { name, allow, .. } = &self.settings;
                    admit(name, allow.as_deref(), &mut report);
                    self.picture.report(role, *report);
                    if role == Role::Main {
                        self.estate.aside.reported(number);
                        self.ledger.heal(Concern::Driver, now);
                    }
                }
                Message::Beat(beat) => self.beat(number, &beat, now),
                // Deep checks are commands that the agent runs: see docs/probe-protocol.md,
                // checkup.
                Message::Checkup(checkup) if checkup.reading.values.tier() == Tier::Deep => {}
                message => {
                    if let Some(update) = Update::of_device(&self.settings.name, message) {
                        self.send(update).await;
                    }
                }
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
}
