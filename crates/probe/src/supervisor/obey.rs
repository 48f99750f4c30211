//! How a supervisor does what it is ordered to.

use std::time::Duration;

use super::{
    Supervisor, Which,
    orders::Wanted,
    process::{Number, Role},
};
use crate::protocol::Command;

/// How long a process gets to close its handles when a card is released; then it is killed.
pub(super) const CLOSED_WITHIN: Duration = Duration::from_millis(1700);

// === impl Supervisor ===

impl Supervisor {
    /// Does what the agent ordered.
    pub(super) fn obey(&mut self, wanted: &Wanted) {
        let change = self.estate.obey(wanted);
        for which in &change.released {
            tracing::info!(
                probe = self.settings.name,
                %which,
                "released: nobody looks at it"
            );
        }
        for which in &change.resumed {
            tracing::info!(probe = self.settings.name, %which, "taken back");
        }
        let touches = |role| {
            let touched = |which: &Which| which.is_touched_by(role);
            change.released.iter().any(touched) || role == Role::Main && !change.resumed.is_empty()
        };
        let all = self.running.iter();
        let leaving: Vec<Number> = all
            .filter(|(_, running)| touches(running.process.role))
            .map(|(number, _)| *number)
            .collect();
        for number in leaving {
            self.dismiss(number, CLOSED_WITHIN);
        }
        if wanted.refreshes > self.refreshes {
            self.refreshes = wanted.refreshes;
            self.refresh();
        }
    }

    /// Has everything looked at again. A process that is starting looks anyway.
    fn refresh(&mut self) {
        self.picture.expect();
        for running in self.running.values_mut().filter(|r| r.reported) {
            if !running.process.tell(&Command::Refresh) {
                tracing::warn!(
                    probe = self.settings.name,
                    pid = running.process.pid(),
                    "the probe takes no commands"
                );
            }
        }
    }
}
