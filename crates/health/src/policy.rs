//! Rules for verdicts: the weights, limits and times of the config, applied to a check.

use std::time::Duration;

use config::{Backends, Config, Weight};
use model::{EventCode, Tier};
use rules::{EventMeaning, Vendors};

use crate::Check;

/// Rules by which a record becomes a verdict: the config, and the vendors' meaning of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthPolicy {
    /// The section `health` of the config.
    pub health: config::Health,
    /// The section `backends` of the config: settings of each vendor, such as the actions of XIDs.
    pub settings: Backends,
    /// The vendors, which know the meaning of events.
    pub vendors: Vendors,
}

// === impl HealthPolicy ===

impl HealthPolicy {
    /// Takes the rules from a config.
    pub fn from_config(config: &Config, vendors: Vendors) -> Self {
        Self {
            health: config.health.clone(),
            settings: config.backends.clone(),
            vendors,
        }
    }

    /// Returns the meaning of an event, or `None` if no vendor knows its code.
    pub(crate) fn event_meaning(&self, code: &EventCode) -> Option<EventMeaning> {
        let mut vendors = self.vendors.iter();
        vendors.find_map(|rules| rules.interpret_event(code, &self.settings))
    }
}

/// Returns the weight of a finding of this check. The weight of a single condition takes precedence
/// over that of its cause kind, and that over the weight of its tier.
pub(crate) fn check_weight(policy: &HealthPolicy, check: &Check) -> Weight {
    let weights = &policy.health.weights;
    let tier = match check.tier() {
        // A device that is absent cannot be handed out, so no config changes this weight.
        Tier::Present => return Weight::Out,
        Tier::Working => weights.working,
        Tier::Performing => weights.performing,
        Tier::Trend => weights.trend,
        Tier::Deep => weights.deep,
    };
    let of_condition = |name| weights.conditions.get(name);
    let own = check.condition_name().and_then(of_condition);
    let own = own.or_else(|| weights.causes.get(&check.cause_kind()));
    own.copied().unwrap_or(tier)
}

/// True for a tier that is not checked. Old findings of such a tier do not count: nothing would end
/// them.
pub(crate) fn is_off(policy: &HealthPolicy, tier: Tier) -> bool {
    let periods = &policy.health.periods;
    match tier {
        Tier::Present => false,
        Tier::Working => periods.working.is_none(),
        Tier::Performing => periods.performing.is_none(),
        Tier::Trend => periods.trend.is_none(),
        Tier::Deep => periods.deep.is_none() || policy.health.deep_command.is_empty(),
    }
}

/// Returns the hold-down of a fault that recurred: `first`, doubled for each recurrence, up to
/// `hold_down_limit`. A `first` above the limit is returned as it is.
pub(crate) fn doubled(policy: &HealthPolicy, first: Duration, begun: u32) -> Duration {
    let factor = 1u32
        .checked_shl(begun.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let limit = policy.health.hold_down_limit.max(first);
    first.saturating_mul(factor).min(limit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use config::TierWeights;
    use model::CauseKind;

    use super::*;

    fn parse_policy(text: &str) -> HealthPolicy {
        let resolved = config::parse_native("ostler.yaml", text).unwrap();
        HealthPolicy::from_config(&resolved.config, Vendors::default())
    }

    /// The config accepts a weight for exactly the causes whose tier has a weight.
    #[test]
    fn a_weight_can_be_had_for_every_cause_that_a_check_of_a_tier_with_a_weight_finds() {
        let name = "ras.umc".parse().unwrap();
        let all = Check::ALL.into_iter();
        let all = all.chain([Check::Condition(Tier::Working, name)]);
        let weighed = all.filter(|c| c.tier() != Tier::Present);
        let found: BTreeSet<CauseKind> = weighed.map(|check| check.cause_kind()).collect();
        assert_eq!(found, TierWeights::CAUSES.into());
    }

    #[test]
    fn the_weight_of_a_cause_beats_that_of_its_tier() {
        let text = "health: {weights: {causes: {Temperature: out, Link: off}}}";
        let policy = parse_policy(text);
        assert_eq!(check_weight(&policy, &Check::Temperature), Weight::Out);
        assert_eq!(check_weight(&policy, &Check::LinkErrors), Weight::Off);
        assert_eq!(check_weight(&policy, &Check::Throttled), Weight::Warn);
    }

    #[test]
    fn the_weight_of_a_single_condition_beats_that_of_all() {
        let text = "health: {weights: {causes: {Condition: warn}, conditions: {ras.umc: off}}}";
        let policy = parse_policy(text);
        let weight_of = |name: &str, policy: &HealthPolicy| {
            let name = name.parse().unwrap();
            check_weight(policy, &Check::Condition(Tier::Working, name))
        };
        assert_eq!(weight_of("ras.umc", &policy), Weight::Off);
        assert_eq!(weight_of("ras.gfx", &policy), Weight::Warn);
        assert_eq!(weight_of("ras.gfx", &HealthPolicy::default()), Weight::Out);
    }

    #[test]
    fn a_tier_without_a_period_is_off_and_so_is_deep_without_a_command() {
        let mut policy = HealthPolicy::default();
        assert!(!is_off(&policy, Tier::Working));
        assert!(is_off(&policy, Tier::Deep), "there is no command");
        policy.health.deep_command = vec!["check".to_owned()];
        assert!(!is_off(&policy, Tier::Deep));
        policy.health.periods.working = None;
        assert!(is_off(&policy, Tier::Working));
    }
}
