//! Execution of orders by a supervisor.

use std::time::Duration;

use super::{
    ReleaseScope, Supervisor,
    orders::DesiredState,
    process::{ProcessNumber, Role},
};
use crate::protocol::Command;

/// Time for which a process may close its driver handles when a card is released. Then the process
/// is killed: a release promises closed handles within two seconds.
pub(super) const CLOSED_WITHIN: Duration = Duration::from_millis(1700);

// === impl Supervisor ===

impl Supervisor {
    /// Carries out the orders that are new since the last call.
    pub(super) fn apply_orders(&mut self, wanted: &DesiredState) {
        let change = self.estate.apply_desired(wanted);
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
            let touched = |which: &ReleaseScope| which.is_touched_by(role);
            change.released.iter().any(touched) || role == Role::Main && !change.resumed.is_empty()
        };
        let all = self.running.iter();
        let leaving: Vec<ProcessNumber> = all
            .filter(|(_, running)| touches(running.process.role))
            .map(|(number, _)| *number)
            .collect();
        // An open driver handle blocks a reset of the card and a change of its MIG devices
        // (NVIDIA/DCGM issue 276).
        for number in leaving {
            self.stop_process(number, CLOSED_WITHIN);
        }
        if wanted.refreshes > self.refreshes {
            self.refreshes = wanted.refreshes;
            self.refresh_all();
        }
    }

    /// Asks every process to read its cards again. A process that has not reported yet does so
    /// anyway.
    fn refresh_all(&mut self) {
        self.picture.expect();
        for running in self.running.values_mut().filter(|r| r.reported) {
            if !running.process.send_command(&Command::Refresh) {
                tracing::warn!(
                    probe = self.settings.name,
                    pid = running.process.pid(),
                    "the probe takes no commands"
                );
            }
        }
    }
}
