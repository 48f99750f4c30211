//! Counters of a card that start from zero again at each reset.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Gpu, GpuModel};

/// Uptime of a card that was never reset.
const RUNNING: Duration = Duration::from_secs(60 * 60);

// === impl Gpu ===

impl Gpu {
    /// Energy in millijoules since the last reset: the sensor's value if it is set, or else the
    /// consumption of an idle card in that time. That consumption does not depend on the power
    /// sensor: a lower sensor value would make the counter decrease.
    pub fn energy_millijoules(&self, model: &GpuModel) -> u64 {
        if self.sensors.energy > 0 {
            return self.sensors.energy;
        }
        let since = |at: u64| since_epoch().saturating_sub(Duration::from_millis(at));
        let time = self.reset_at.map_or(RUNNING, since);
        let microjoules = u128::from(model.idle.power) * time.as_millis();
        u64::try_from(microjoules / 1000).unwrap_or(u64::MAX)
    }

    /// Resets the counters as a reset does: energy, PCIe replays, and the memory errors since the
    /// reset.
    pub fn count_anew(&mut self) {
        let sensors = &mut self.sensors;
        sensors.ecc_corrected_past = sensors.ever_corrected();
        sensors.ecc_uncorrected_past = sensors.ever_uncorrected();
        (sensors.ecc_corrected, sensors.ecc_uncorrected) = (0, 0);
        (sensors.energy, sensors.pcie_replays) = (0, 0);
        for mig in &mut self.migs {
            mig.ecc_uncorrected = 0;
        }
        self.reset_at = u64::try_from(since_epoch().as_millis()).ok();
    }
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
