//! What the config says of health → the rules by which verdicts are made.

use std::{collections::BTreeSet, time::Duration};

use config::{Config, Weight, XidAction, XidBase, XidSet};
use health::{
    Action, HoldDown, MonitorLoss, OnLoss, Policy, Weights, XidPolicy,
    xid::{Base, Numbers},
};
use model::Tier;

/// What the config says of health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The section as it is in the config.
    pub health: config::Health,
}

// === impl Rules ===

impl Rules {
    /// Those of a config.
    pub fn new(config: &Config) -> Self {
        Self {
            health: config.health.clone(),
        }
    }

    /// In the words of `health`.
    pub fn policy(&self) -> Policy {
        let health = &self.health;
        let causes = health.weights.causes.iter();
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
                kinds: causes
                    .map(|(kind, heavy)| (*kind, weight(*heavy)))
                    .collect(),
            },
            off: off(health),
            thresholds: thresholds(&health.thresholds),
            xid: self.xid(default.xid.warn_for),
        }
    }

    fn xid(&self, warn_for: Duration) -> XidPolicy {
        let xids = &self.health.xids;
        let actions = xids.actions.iter();
        XidPolicy {
            base: match xids.base {
                XidBase::Catalogue => Base::Catalogue,
                XidBase::Nvidia => Base::Upstream,
            },
            overrides: actions
                .map(|(number, meant)| (u64::from(*number), action(*meant)))
                .collect(),
            ignore: numbers(&xids.ignore),
            heed: numbers(&xids.heed),
            unknown: action(xids.unknown),
            warn_for,
        }
    }
}

/// The tiers that are not checked.
fn off(health: &config::Health) -> BTreeSet<Tier> {
    let periods = &health.periods;
    let deep = periods.deep.filter(|_| !health.deep_command.is_empty());
    let tiers = [
        (Tier::Working, periods.working),
        (Tier::Performing, periods.performing),
        (Tier::Trend, periods.trend),
        (Tier::Deep, deep),
    ];
    let off = tiers.into_iter().filter(|(_, period)| period.is_none());
    off.map(|(tier, _)| tier).collect()
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
        mean_time: config.mean_time,
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
    use config::TierWeights;
    use health::Check;
    use model::CauseKind;

    use super::*;

    /// With nothing said, both crates mean the same.
    #[test]
    fn the_defaults_are_those_of_the_health_crate() {
        let rules = Rules::new(&Config::default());
        let expected = Policy {
            // There is no command.
            off: BTreeSet::from([Tier::Deep]),
            ..Policy::default()
        };
        assert_eq!(rules.policy(), expected);
    }

    #[test]
    fn with_nvidias_base_xids_mean_what_they_mean_to_nvidias_plugin() {
        let mut config = Config::default();
        config.health.xids.base = XidBase::Nvidia;
        let action = |config: &Config, xid| Rules::new(config).policy().xid.action(xid);
        assert!(action(&config, 94).takes_out());
        assert_eq!(action(&config, 109), Action::Ignore);
        config.health.xids.ignore = XidSet::All;
        config.health.xids.heed = XidSet::Some(vec![79]);
        assert!(
            action(&config, 79).takes_out(),
            "as the comment upstream promises"
        );
        assert_eq!(action(&config, 48), Action::Ignore);
    }

    /// The config can weigh exactly the causes of the checks that have a weight.
    #[test]
    fn a_weight_can_be_had_for_every_cause_that_a_check_of_a_tier_with_a_weight_finds() {
        let weighed = Check::ALL.iter().filter(|c| c.tier() != Tier::Present);
        let found: BTreeSet<CauseKind> = weighed.map(|check| check.kind()).collect();
        assert_eq!(found, TierWeights::CAUSES.into());
    }

    #[test]
    fn the_weight_of_a_cause_reaches_the_policy() {
        let text = "health: {weights: {causes: {Temperature: out, NvLink: off}}}";
        let config = config::parse("ostler.yaml", text).unwrap().config;
        let expected = [
            (CauseKind::NvLink, health::Weight::Off),
            (CauseKind::Temperature, health::Weight::Out),
        ];
        let policy = Rules::new(&config).policy();
        assert_eq!(policy.weights.kinds, expected.into());
    }
}
