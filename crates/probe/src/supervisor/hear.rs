//! Handling of the lines of probe processes.

use model::Tier;
use tokio::time::Instant;

use super::{
    OPTIONAL, Supervisor, SupervisorSettings,
    admit::admit_devices,
    process::{ProcessNumber, ProcessOutput, Role},
    stuck::CallScope,
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
    pub(super) async fn handle_output(&mut self, number: ProcessNumber, heard: ProcessOutput) {
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
            ProcessOutput::Message(message) => match *message {
                Message::Hello(hello) if hello.protocol != protocol::VERSION => self.handle_failure(
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
                    let SupervisorSettings { name, allow, .. } = &self.settings;
                    admit_devices(name, allow.as_deref(), &mut report);
                    self.picture.add_report(role, *report);
                    if role == Role::Main {
                        self.estate.aside.reported(number);
                        self.ledger.heal(CallScope::Driver, now);
                    }
                }
                Message::Beat(beat) => self.handle_beat(number, &beat, now),
                // Deep checks are commands that the agent runs: see docs/probe-protocol.md,
                // checkup.
                Message::Checkup(checkup) if checkup.reading.values.tier() == Tier::Deep => {}
                message => {
                    if let Some(update) = Update::of_device(&self.settings.name, message) {
                        self.send_update(update).await;
                    }
                }
            },
            ProcessOutput::InvalidLine(error) => {
                running.nonsense += 1;
                match running.nonsense {
                    1 => tracing::warn!(probe = self.settings.name, %error, "a line is ignored"),
                    NONSENSE_LIMIT.. => self.handle_failure(number, error.to_string(), now),
                    _ => {}
                }
            }
            ProcessOutput::End(why) => self.handle_failure(number, format!("the probe stopped: {why}"), now),
        }
    }

    fn handle_beat(&mut self, number: ProcessNumber, beat: &protocol::Beat, now: Instant) {
        let Some(running) = self.running.get_mut(&number) else {
            return;
        };
        running.timing.update_calls(beat, now);
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
                self.ledger.heal(CallScope::Card(card), now);
                self.stop_process(number, self.settings.limits.call);
                self.replace_main();
            }
        }
    }
}
