//! What a card counts from its last reset on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Gpu, Model};

/// How long a card that was never reset has been running.
const RUNNING: Duration = Duration::from_secs(60 * 60);

// === impl Gpu ===

impl Gpu {
    /// Energy in millijoules since the last reset: what was set, or else what an idle card draws in
    /// that time. It does not depend on the power that is set, so that it never falls by itself.
    pub fn energy(&self, model: &Model) -> u64 {
        if self.sensors.energy > 0 {
            return self.sensors.energy;
        }
        let since = |at: u64| now().saturating_sub(Duration::from_millis(at));
        let time = self.reset_at.map_or(RUNNING, since);
        let microjoules = u128::from(model.idle.power) * time.as_millis();
        u64::try_from(microjoules / 1000).unwrap_or(u64::MAX)
    }

    /// Sets back what a reset sets back: energy, replays, and the memory errors since the reset.
    pub fn count_anew(&mut self) {
        let sensors = &mut self.sensors;
        sensors.ecc_corrected_past = sensors.ever_corrected();
        sensors.ecc_uncorrected_past = sensors.ever_uncorrected();
        (sensors.ecc_corrected, sensors.ecc_uncorrected) = (0, 0);
        (sensors.energy, sensors.pcie_replays) = (0, 0);
        for mig in &mut self.migs {
            mig.ecc_uncorrected = 0;
        }
        self.reset_at = u64::try_from(now().as_millis()).ok();
    }
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
