//! What the config says of health → the rules by which verdicts are made.

use std::{collections::BTreeMap, time::Duration};

use config::{Config, Mode, Weight, XidAction, XidSet, Xids};
use health::{
    Action, HoldDown, MonitorLoss, OnLoss, Policy, Weights, XidPolicy,
    xid::{Base, Numbers},
};

/// What the config says of health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) health: config::Health,
    pub(crate) xids: Xids,
    /// Whether XIDs mean what they mean to NVIDIA's device plugin.
    pub(crate) upstream: bool,
}

// === impl Rules ===

impl Rules {
    /// Those of a config.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            health: config.health.clone(),
            xids: config.xids.clone(),
            upstream: config.mode == Mode::NvidiaDevicePlugin,
        }
    }

    /// In the words of `health`.
    pub(crate) fn policy(&self) -> Policy {
        let health = &self.health;
        let default = Policy::default();
        Policy {
            unanswered: health.unanswered_grace,
            monitor_loss: MonitorLoss {
                then: match health.on_monitor_loss {
                    config::MonitorLoss::Keep => OnLoss::Keep,
                    config::MonitorLoss::Drain => OnLoss::Drain,
                },
                after: health.monitor_loss_grace,
            },
            hold_down: HoldDown {
                passes: health.passes,
                first: health.hold_down,
                limit: health.hold_down_limit,
                memory: health.hold_down_memory,
            },
            residue: health.residue_hold,
            weights: Weights {
                working: weight(health.weights.working),
                performing: weight(health.weights.performing),
                trend: weight(health.weights.trend),
                deep: weight(health.weights.deep),
                kinds: BTreeMap::new(),
            },
            thresholds: thresholds(&health.thresholds),
            xid: self.xid(default.xid.warn_for),
        }
    }

    fn xid(&self, warn_for: Duration) -> XidPolicy {
        let overrides = self.health.xids.iter();
        XidPolicy {
            base: match self.upstream {
                true => Base::Upstream,
                false => Base::Catalogue,
            },
            overrides: overrides
                .map(|(number, meant)| (u64::from(*number), action(*meant)))
                .collect(),
            ignore: numbers(&self.xids.ignore),
            heed: numbers(&self.xids.heed),
            unknown: action(self.health.unknown_xids),
            warn_for,
        }
    }
}

fn thresholds(config: &config::Thresholds) -> health::Thresholds {
    health::Thresholds {
        ecc_uncorrected: config.ecc_uncorrected.into(),
        fabric_join: config.fabric_join,
        temperature_margin: config.temperature_margin,
        busy_percent: config.busy_percent,
        nvlink_errors: config.nvlink_errors.into(),
        ecc_corrected_per_hour: config.ecc_corrected_per_hour.map(u64::from),
        remapped_rows_per_hour: config.remapped_rows_per_hour.map(u64::from),
        pcie_replays_per_hour: config.pcie_replays_per_hour.map(u64::from),
        mean_watts: config.mean_watts.map(u64::from),
    }
}

fn weight(weight: Weight) -> health::Weight {
    match weight {
        Weight::Out => health::Weight::Out,
        Weight::Warn => health::Weight::Warn,
        Weight::Off => health::Weight::Off,
    }
}

fn action(action: XidAction) -> Action {
    match action {
        XidAction::Ignore => Action::Ignore,
        XidAction::Application => Action::Application,
        XidAction::Reset => Action::Reset,
        XidAction::Drain => Action::Drain,
        XidAction::Permanent => Action::Permanent,
    }
}

fn numbers(set: &XidSet) -> Numbers {
    match set {
        XidSet::All => Numbers::All,
        XidSet::Some(xids) => Numbers::Some(xids.iter().map(|xid| u64::from(*xid)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With nothing said, both crates mean the same.
    #[test]
    fn the_defaults_are_those_of_the_health_crate() {
        let rules = Rules::new(&Config::default());
        assert_eq!(rules.policy(), Policy::default());
    }

    #[test]
    fn in_drop_in_mode_xids_mean_what_they_mean_to_nvidias_plugin() {
        let mut config = Config {
            mode: Mode::NvidiaDevicePlugin,
            ..Config::default()
        };
        let action = |config: &Config, xid| Rules::new(config).policy().xid.action(xid);
        assert!(action(&config, 94).takes_out());
        assert_eq!(action(&config, 109), Action::Ignore);
        config.xids.ignore = XidSet::All;
        config.xids.heed = XidSet::Some(vec![79]);
        assert!(
            action(&config, 79).takes_out(),
            "as the comment upstream promises"
        );
        assert_eq!(action(&config, 48), Action::Ignore);
    }
}
