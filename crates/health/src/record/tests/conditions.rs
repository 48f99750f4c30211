//! Conditions that a vendor names: their beginning, weight and end, also over a restart.

use config::Weight;
use model::{Condition, ConditionState, Performing, Tier, Working};

use super::*;

const RELOAD: Continuity = Continuity {
    same_boot: true,
    same_driver: false,
};

fn condition(name: &str, state: ConditionState) -> Condition {
    Condition {
        name: name.parse().unwrap(),
        state,
        reason: "3 errors".to_owned(),
        ends_with_reset: false,
        grace_millis: 0,
    }
}

fn critical(name: &str) -> Condition {
    condition(name, ConditionState::Critical)
}

fn warning(name: &str) -> Condition {
    condition(name, ConditionState::Warning)
}

fn ok(name: &str) -> Condition {
    condition(name, ConditionState::Ok)
}

/// A condition that may last ten minutes before it counts.
fn slow(state: ConditionState) -> Condition {
    Condition {
        ends_with_reset: true,
        grace_millis: 600_000,
        ..condition("training", state)
    }
}

impl Bench {
    fn conditions(&mut self, conditions: &[Condition]) -> &mut Self {
        self.conditions_of(Values::Working(Working::default()), conditions)
    }

    fn conditions_of(&mut self, values: Values, conditions: &[Condition]) -> &mut Self {
        let reading = Reading {
            values,
            conditions: conditions.to_vec(),
            unsupported: Vec::new(),
            failures: Vec::new(),
        };
        self.record
            .record_reading(&reading, &self.policy, at(self.second));
        self
    }

    fn evidence(&self) -> Vec<String> {
        let verdict = self.verdict();
        let all = verdict.causes.iter().chain(&verdict.warnings);
        all.map(|cause| cause.evidence.clone()).collect()
    }
}

#[test]
fn a_critical_condition_takes_the_device_out_until_it_is_ok() {
    let mut bench = Bench::new();
    bench.conditions(&[ok("ras.umc"), ok("ras.gfx")]);
    assert_eq!(bench.verdict(), Verdict::default());
    bench
        .wait(60)
        .conditions(&[critical("ras.umc"), ok("ras.gfx")]);
    let verdict = bench.verdict();
    assert_eq!(verdict.state, State::Unhealthy);
    assert_eq!(bench.kinds(), [CauseKind::Condition]);
    assert_eq!(verdict.join_evidence(), "ras.umc: 3 errors");
    assert_eq!(verdict.causes[0].since, at(60).wall);
    assert_eq!(
        verdict.causes[0].ends_when,
        "the driver reports ras.umc as ok again"
    );
    bench.wait(60).well().conditions(&[ok("ras.umc")]);
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_condition_that_comes_back_must_be_ok_for_longer() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench
            .conditions(&[critical("ras.umc")])
            .wait(60)
            .conditions(&[ok("ras.umc")]);
    }
    assert_eq!(bench.state(), State::Unhealthy);
    let ends_when = bench.verdict().causes[0].ends_when.clone();
    assert!(
        ends_when.contains("as ok again, for 20 s; it has been well"),
        "{ends_when}"
    );
    bench.restart(SAME).wait(10).conditions(&[ok("ras.umc")]);
    assert_eq!(bench.state(), State::Unhealthy, "it is remembered");
    bench.wait(20).conditions(&[ok("ras.umc")]);
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_warning_takes_no_device_out_whatever_its_weight() {
    let mut bench = Bench::new();
    let weights = [("ras.umc".parse().unwrap(), Weight::Out)];
    bench.policy.health.weights.conditions = weights.into();
    bench.conditions(&[warning("ras.umc")]);
    assert_eq!(bench.state(), State::Healthy);
    assert_eq!(bench.warnings(), [CauseKind::Condition]);
    assert_eq!(bench.restart(SAME).state(), State::Healthy);
    bench.wait(60).conditions(&[critical("ras.umc")]);
    assert_eq!(bench.kinds(), [CauseKind::Condition]);
    let since = bench.verdict().causes[0].since;
    assert_eq!(since, at(0).wall, "it is the same trouble");
    bench.wait(60).conditions(&[warning("ras.umc")]);
    assert_eq!(bench.state(), State::Healthy);
    assert_eq!(bench.warnings(), [CauseKind::Condition]);
}

#[test]
fn a_critical_condition_weighs_as_its_tier_unless_it_has_a_weight_of_its_own() {
    let mut bench = Bench::new();
    let performing = || Values::Performing(Performing::default());
    let broken = [critical("fan")];
    bench.conditions_of(performing(), &broken);
    assert_eq!(bench.warnings(), [CauseKind::Condition]);
    let weigh = |bench: &mut Bench, weight| {
        bench.policy.health.weights.conditions = [("fan".parse().unwrap(), weight)].into();
    };
    weigh(&mut bench, Weight::Out);
    assert_eq!(bench.kinds(), [CauseKind::Condition]);
    weigh(&mut bench, Weight::Off);
    assert_eq!(bench.verdict(), Verdict::default());
    bench.policy.health.periods.performing = None;
    weigh(&mut bench, Weight::Out);
    assert_eq!(bench.verdict(), Verdict::default(), "the tier is off");
}

#[test]
fn what_is_unknown_or_left_out_begins_and_ends_nothing() {
    let unknown = || condition("ras.umc", ConditionState::Unknown);
    let mut bench = Bench::new();
    bench.conditions(&[unknown()]);
    assert_eq!(bench.verdict(), Verdict::default());
    for conditions in [vec![unknown()], Vec::new()] {
        let mut bench = Bench::new();
        bench.conditions(&[critical("ras.umc")]);
        bench.wait(60).conditions(&conditions);
        assert_eq!(
            bench.evidence(),
            ["ras.umc: 3 errors (not read any more since 1970-01-01T00:01:00Z)"]
        );
        bench.conditions_of(Values::Performing(Performing::default()), &[ok("ras.umc")]);
        assert_eq!(bench.state(), State::Unhealthy, "another tier's is another");
        bench.conditions(&[critical("ras.umc")]);
        assert_eq!(bench.evidence(), ["ras.umc: 3 errors"]);
        bench.conditions(&conditions).record.end_cordon();
        assert_eq!(bench.verdict(), Verdict::default(), "an operator's word");
    }
}

#[test]
fn a_condition_survives_a_restart_and_only_one_that_says_so_ends_with_a_new_driver() {
    let mut bench = Bench::new();
    let passing = Condition {
        ends_with_reset: true,
        ..critical("ras.gfx")
    };
    bench.conditions(&[critical("ras.umc"), passing]);
    let before = bench.verdict();
    assert_eq!(
        before.causes[0].ends_when,
        "the driver reports ras.gfx as ok again, or is loaded anew"
    );
    assert_eq!(bench.restart(SAME).verdict(), before);
    bench.restart(RELOAD);
    assert_eq!(bench.evidence(), ["ras.umc: 3 errors"]);
    bench.conditions(&[ok("ras.umc")]);
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_condition_with_a_grace_counts_when_it_has_lasted_so_long() {
    let mut bench = Bench::new();
    bench.conditions(&[slow(ConditionState::Critical)]);
    for _ in 0..9 {
        bench.wait(60).conditions(&[slow(ConditionState::Critical)]);
        assert_eq!(bench.verdict(), Verdict::default());
    }
    assert_eq!(bench.wait(59).verdict(), Verdict::default());
    assert_eq!(bench.wait(1).state(), State::Unhealthy);
    let cause = bench.verdict().causes[0].clone();
    assert_eq!(cause.since, at(0).wall);
    assert_eq!(
        cause.ends_when,
        "the driver reports training as ok again, or is loaded anew"
    );
    bench.conditions(&[slow(ConditionState::Warning)]);
    assert_eq!(
        bench.warnings(),
        [CauseKind::Condition],
        "a warning stays one"
    );
    bench.conditions(&[slow(ConditionState::Ok)]);
    assert_eq!(bench.verdict(), Verdict::default());
}

/// NVIDIA's probe reports the fabric as these two conditions.
#[test]
fn a_fabric_that_takes_long_is_a_warning_and_one_that_failed_stands_until_it_was_joined() {
    use ConditionState::{Critical, Ok, Unknown, Warning};
    let fabric = |state, joining| {
        let refused = Condition {
            ends_with_reset: true,
            ..condition("fabric", state)
        };
        let joining = Condition {
            name: "fabric-joining".parse().unwrap(),
            ..slow(joining)
        };
        [refused, joining]
    };
    let mut bench = Bench::new();
    bench.conditions(&fabric(Unknown, Warning));
    assert_eq!(bench.verdict(), Verdict::default());
    bench.wait(599);
    assert_eq!(bench.verdict(), Verdict::default());
    bench.wait(1);
    assert_eq!(bench.evidence(), ["fabric-joining: 3 errors"]);
    assert_eq!(bench.warnings(), [CauseKind::Condition]);
    bench.conditions(&fabric(Critical, Ok));
    assert_eq!(bench.verdict().join_evidence(), "fabric: 3 errors");
    assert_eq!(bench.warnings(), []);
    bench.wait(60).conditions(&fabric(Unknown, Warning));
    assert_eq!(bench.kinds(), [CauseKind::Condition]);
    bench.wait(60).conditions(&fabric(Ok, Ok));
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_condition_that_weighs_nothing_is_not_shown_after_its_grace() {
    let mut bench = Bench::new();
    bench.policy.health.weights.working = Weight::Off;
    bench.conditions(&[slow(ConditionState::Warning)]);
    assert_eq!(bench.wait(1000).verdict(), Verdict::default());
}

#[test]
fn a_condition_counts_no_recurrence_within_its_grace() {
    let mut bench = Bench::new();
    for _ in 0..5 {
        bench.conditions(&[slow(ConditionState::Critical)]).wait(60);
        bench.conditions(&[slow(ConditionState::Ok)]);
        assert!(bench.record.standing.is_empty(), "one reading ends it");
    }
    assert!(bench.record.begun.is_empty());
    assert_eq!(bench.wait(1000).verdict(), Verdict::default());
}

#[test]
fn a_condition_that_outlasts_its_grace_again_must_be_ok_for_longer() {
    let ok = || [slow(ConditionState::Ok)];
    let mut bench = Bench::new();
    bench.conditions(&[slow(ConditionState::Critical)]);
    bench.wait(700).conditions(&ok());
    assert_eq!(bench.verdict(), Verdict::default(), "the first time");
    bench.conditions(&[slow(ConditionState::Critical)]);
    bench.wait(700).conditions(&ok()).restart(SAME);
    assert_eq!(bench.state(), State::Unhealthy);
    bench.wait(10).conditions(&ok());
    assert_eq!(bench.state(), State::Unhealthy);
    bench.wait(20).conditions(&ok());
    assert_eq!(bench.verdict(), Verdict::default());
    bench.conditions(&[slow(ConditionState::Critical)]);
    bench.wait(60).conditions(&ok());
    assert!(bench.record.standing.is_empty(), "it is in its grace");
    assert_eq!(bench.wait(1000).verdict(), Verdict::default());
}

#[test]
fn a_restart_neither_shortens_nor_renews_the_grace_of_a_condition() {
    let mut bench = Bench::new();
    bench.conditions(&[slow(ConditionState::Critical)]);
    assert!(bench.record.take_unsaved(), "the next agent goes on");
    bench.wait(300).restart(SAME);
    assert_eq!(bench.wait(299).verdict(), Verdict::default());
    assert_eq!(bench.wait(1).kinds(), [CauseKind::Condition]);
    assert_eq!(bench.verdict().causes[0].since, at(0).wall);
    bench.restart(RELOAD);
    assert_eq!(bench.verdict(), Verdict::default(), "a reset ends it");
}

#[test]
fn the_end_of_what_did_not_count_is_kept() {
    let mut bench = Bench::new();
    bench.conditions(&[slow(ConditionState::Critical)]);
    bench.record.take_unsaved();
    bench.wait(60).conditions(&[slow(ConditionState::Critical)]);
    assert!(!bench.record.take_unsaved(), "nothing is new");
    bench.wait(60).conditions(&[slow(ConditionState::Ok)]);
    assert!(bench.record.take_unsaved());
    bench.wait(60).conditions(&[slow(ConditionState::Ok)]);
    assert!(!bench.record.take_unsaved());
}

#[test]
fn a_condition_whose_grace_is_withdrawn_counts_at_once_and_begins_then() {
    let mut bench = Bench::new();
    let critical = Condition {
        grace_millis: 0,
        ..slow(ConditionState::Critical)
    };
    bench.conditions(&[slow(ConditionState::Warning)]).wait(60);
    bench.conditions(std::slice::from_ref(&critical));
    assert_eq!(bench.kinds(), [CauseKind::Condition]);
    bench.wait(60).conditions(&[critical]);
    let begun: Vec<u32> = bench.record.begun.values().map(|b| b.times).collect();
    assert_eq!(begun, [1]);
}

#[test]
fn the_longest_grace_never_ends() {
    let mut bench = Bench::new();
    let endless = Condition {
        grace_millis: u64::MAX,
        ..critical("training")
    };
    bench.conditions(&[endless]).wait(u64::from(u32::MAX));
    assert_eq!(bench.restart(SAME).verdict(), Verdict::default());
}

#[test]
fn a_condition_that_comes_to_hand_late_stands_until_it_is_read() {
    let mut before = Bench::new();
    before.conditions(&[critical("ras.umc")]);
    let saved = before.record.to_saved(at(0));
    for (passed, states) in [(false, 1), (true, 0)] {
        let mut bench = Bench::new();
        if passed {
            bench.conditions(&[ok("ras.umc")]);
        }
        let now = bench.now();
        bench
            .record
            .merge_saved(saved.clone(), SAME, &bench.policy, now);
        assert_eq!(bench.kinds().len(), states);
    }
}

#[test]
fn of_two_conditions_with_one_name_the_worse_counts() {
    let mut bench = Bench::new();
    bench.conditions(&[critical("ras.umc"), ok("ras.umc"), warning("ras.umc")]);
    assert_eq!(bench.kinds(), [CauseKind::Condition]);
}

#[test]
fn a_reason_is_cut_and_one_that_is_missing_is_the_state() {
    let mut bench = Bench::new();
    let long = Condition {
        reason: "é".repeat(1000),
        ..critical("a")
    };
    let silent = Condition {
        reason: " ".to_owned(),
        ..critical("b")
    };
    bench.conditions(&[long, silent]);
    let evidence = [format!("a: {}", "é".repeat(256)), "b: critical".to_owned()];
    assert_eq!(bench.evidence(), evidence);
}

#[test]
fn of_more_than_32_conditions_those_that_weigh_most_are_kept() {
    let mut bench = Bench::new();
    let name = |n: usize| format!("block-{n:03}");
    let warnings: Vec<Condition> = (0..100).map(|n| warning(&name(n))).collect();
    bench.conditions(&warnings);
    assert_eq!(bench.warnings().len(), 32);
    bench.record.take_unsaved();
    bench.wait(60).conditions(&warnings);
    assert!(!bench.record.take_unsaved(), "nothing is new");
    let mut worse = warnings.clone();
    worse[70] = critical(&name(70));
    bench.wait(60).conditions(&worse);
    assert_eq!(bench.state(), State::Unhealthy);
    assert_eq!(bench.verdict().join_evidence(), "block-070: 3 errors");
    assert_eq!(bench.warnings().len(), 31);
    let before = bench.verdict();
    assert_eq!(bench.restart(SAME).verdict(), before);
    let well: Vec<Condition> = (0..100).map(|n| ok(&name(n))).collect();
    bench.wait(60).conditions(&well);
    assert_eq!(bench.verdict(), Verdict::default(), "each of them ends");
}

#[test]
fn names_that_are_ever_new_do_not_fill_the_memory() {
    let mut bench = Bench::new();
    for n in 0..200 {
        let name = format!("block-{n}");
        bench.wait(60).conditions(&[critical(&name)]);
        bench.wait(60).conditions(&[ok(&name)]);
    }
    assert_eq!(bench.verdict(), Verdict::default());
    assert_eq!(bench.record.begun.len(), 32);
    assert!(bench.record.passed.len() <= 32 + Check::ALL.len());
    let saved = bench.record.to_saved(bench.now());
    assert_eq!(saved.begun.len(), 32);
    assert!(
        saved
            .begun
            .iter()
            .any(|begun| begun.what.ends_with("block-199"))
    );
}

#[test]
fn a_file_with_too_many_conditions_is_cut() {
    let standing = |n: usize| {
        format!(
            r#"{{"check": "condition:trend:c-{n}", "evidence": "c-{n}: x", "since": "2026-01-01T00:00:00Z"}}"#
        )
    };
    let all: Vec<String> = (0..100).map(standing).collect();
    let text = format!(r#"{{"standing": [{}]}}"#, all.join(","));
    let saved: SavedDevice = serde_json::from_str(&text).unwrap();
    let record = DeviceRecord::from_saved(saved, SAME, &HealthPolicy::default(), at(0));
    assert_eq!(record.standing.len(), 32);
}

#[test]
fn a_check_of_a_condition_is_read_by_its_name_as_it_was_written() {
    let name = || "ras.umc".parse().unwrap();
    for tier in [Tier::Working, Tier::Performing, Tier::Trend, Tier::Deep] {
        let check = Check::Condition(tier, name());
        assert_eq!(Check::from_saved_name(&check.saved_name()), Some(check));
    }
    for text in [
        "condition",
        "condition:working",
        "condition:present:a",
        "condition:deep:A b",
    ] {
        assert_eq!(Check::from_saved_name(text), None, "{text}");
    }
}
