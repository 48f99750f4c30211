//! What the file says of health.

use std::path::PathBuf;

use super::Layers;
use crate::{Config, HealthFile, Thresholds, ThresholdsFile};

// === impl Layers ===

impl Layers<'_> {
    pub(super) fn health(&mut self, config: &mut Config, file: &HealthFile) {
        let health = &mut config.health;
        let xids = &mut health.xids;
        self.set("health.xidBase", &mut xids.base, &file.xid_base);
        self.set("health.xids", &mut xids.actions, &file.xids);
        self.set("health.unknownXids", &mut xids.unknown, &file.unknown_xids);
        self.set("health.ignoreXids", &mut xids.ignore, &file.ignore_xids);
        self.set("health.heedXids", &mut xids.heed, &file.heed_xids);
        self.set("health.unknown", &mut health.unknown, &file.unknown);
        let (key, value) = ("health.onMonitorLoss", &mut health.on_monitor_loss);
        self.set(key, value, &file.on_monitor_loss);
        self.set("health.passes", &mut health.passes, &file.passes);
        let (key, value) = ("health.deepCommand", &mut health.deep_command);
        self.set(key, value, &file.deep_command);
        let off = |path: PathBuf| (path.as_os_str() != "off").then_some(path);
        let said = file.state_file.clone().map(|said| said.map(off));
        self.set("health.stateFile", &mut health.state_file, &said);
        let (periods, weights) = (&mut health.periods, &mut health.weights);
        for (key, value, said) in [
            ("working", &mut periods.working, &file.working),
            ("performing", &mut periods.performing, &file.performing),
            ("trend", &mut periods.trend, &file.trend),
            ("deep", &mut periods.deep, &file.deep),
        ] {
            let said = said.clone().map(|said| said.map(|period| period.0));
            self.set(&format!("health.{key}"), value, &said);
        }
        let said = &file.weights;
        for (key, value, said) in [
            ("working", &mut weights.working, &said.working),
            ("performing", &mut weights.performing, &said.performing),
            ("trend", &mut weights.trend, &said.trend),
            ("deep", &mut weights.deep, &said.deep),
        ] {
            self.set(&format!("health.weights.{key}"), value, said);
        }
        let said = &file.weights.causes;
        self.set("health.weights.causes", &mut weights.causes, said);
        self.thresholds(&mut health.thresholds, &file.thresholds);
    }

    fn thresholds(&mut self, values: &mut Thresholds, file: &ThresholdsFile) {
        for (key, value, said) in [
            (
                "eccUncorrected",
                &mut values.ecc_uncorrected,
                &file.ecc_uncorrected,
            ),
            (
                "temperatureMargin",
                &mut values.temperature_margin,
                &file.temperature_margin,
            ),
            ("busyPercent", &mut values.busy_percent, &file.busy_percent),
            (
                "nvlinkErrors",
                &mut values.nvlink_errors,
                &file.nvlink_errors,
            ),
        ] {
            self.set(&format!("health.thresholds.{key}"), value, said);
        }
        for (key, value, said) in [
            (
                "eccCorrectedPerHour",
                &mut values.ecc_corrected_per_hour,
                &file.ecc_corrected_per_hour,
            ),
            (
                "remappedRowsPerHour",
                &mut values.remapped_rows_per_hour,
                &file.remapped_rows_per_hour,
            ),
            (
                "pcieReplaysPerHour",
                &mut values.pcie_replays_per_hour,
                &file.pcie_replays_per_hour,
            ),
            ("meanWatts", &mut values.mean_watts, &file.mean_watts),
        ] {
            let said = said.clone().map(|said| said.map(|limit| limit.0));
            self.set(&format!("health.thresholds.{key}"), value, &said);
        }
    }
}
