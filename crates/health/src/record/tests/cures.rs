//! Each cause takes the device out, and its own end brings the device back.

use config::{Periods, Weight};
use model::{Deep, Performing, RecoveryAction, Tier, Trend, Working};
use rstest::rstest;

use super::*;

fn working(change: impl Fn(&mut Working)) -> Values {
    let mut values = Working {
        ecc_uncorrected: Some(0),
        repair_pending: Some(false),
        repair_failed: Some(false),
        recovery: Some(RecoveryAction::None),
    };
    change(&mut values);
    Values::Working(values)
}

fn performing(change: impl Fn(&mut Performing)) -> Values {
    let mut values = Performing {
        throttled: Some(vec!["sw_power_cap".to_owned()]),
        pcie_width: Some(16),
        pcie_width_max: Some(16),
        pcie_generation: Some(4),
        pcie_generation_max: Some(4),
        utilization_percent: Some(100),
        link_errors: Some(0),
        links_down: Some(0),
        temperature_celsius: Some(60),
        slowdown_celsius: Some(90),
        shutdown_celsius: Some(95),
    };
    change(&mut values);
    Values::Performing(values)
}

fn trend(corrected: u64) -> Values {
    Values::Trend(Trend {
        ecc_corrected: Some(corrected),
        ..Trend::default()
    })
}

fn deep(passed: Option<bool>) -> Values {
    let output = "memtest: 3 errors\n".to_owned();
    Values::Deep(Deep { passed, output })
}

#[rstest]
#[case::ecc(CauseKind::Ecc, working(|w| w.ecc_uncorrected = Some(2)), working(|_| {}))]
#[case::pending(CauseKind::MemoryRepair, working(|w| w.repair_pending = Some(true)), working(|_| {}))]
#[case::failed(CauseKind::MemoryRepair, working(|w| w.repair_failed = Some(true)), working(|_| {}))]
#[case::recovery(
    CauseKind::RecoveryAction,
    working(|w| w.recovery = Some(RecoveryAction::DrainAndReset)),
    working(|_| {})
)]
fn what_does_not_work_is_out_until_one_reading_passes(
    #[case] kind: CauseKind,
    #[case] broken: Values,
    #[case] cured: Values,
) {
    let mut bench = Bench::new();
    bench.read(cured.clone());
    assert_eq!(bench.verdict(), Verdict::default());
    bench.wait(60).read(broken);
    assert_eq!(bench.kinds(), [kind]);
    assert_eq!(bench.state(), State::Unhealthy);
    assert_eq!(bench.verdict().causes[0].since, bench.now().wall);
    bench.wait(10).well().wait(1000).well();
    assert_eq!(bench.kinds(), [kind], "another check does not end it");
    bench.read(cured);
    assert_eq!(bench.verdict(), Verdict::default());
}

#[rstest]
#[case::hw(CauseKind::Throttled, |p: &mut Performing| p.throttled = Some(vec!["HwSlowdown".into()]))]
#[case::heat(CauseKind::Throttled, |p: &mut Performing| {
    p.throttled = Some(vec!["hw_thermal_slowdown".into(), "sw_power_cap".into()]);
})]
#[case::brake(CauseKind::Throttled, |p: &mut Performing| {
    p.throttled = Some(vec!["HW Power Brake Slowdown".into()]);
})]
#[case::width(CauseKind::Pcie, |p: &mut Performing| p.pcie_width = Some(8))]
#[case::generation(CauseKind::Pcie, |p: &mut Performing| p.pcie_generation = Some(1))]
#[case::links(CauseKind::Link, |p: &mut Performing| p.links_down = Some(2))]
#[case::errors(CauseKind::Link, |p: &mut Performing| p.link_errors = Some(5))]
#[case::temperature(CauseKind::Temperature, |p: &mut Performing| p.temperature_celsius = Some(85))]
fn what_does_not_perform_is_a_warning_or_out_where_that_is_wanted(
    #[case] kind: CauseKind,
    #[case] spoil: fn(&mut Performing),
    #[values(false, true)] out: bool,
) {
    let mut bench = Bench::new();
    if out {
        bench.policy.health.weights.performing = Weight::Out;
    }
    bench.read(performing(|_| {}));
    assert_eq!(bench.verdict(), Verdict::default());
    bench.wait(300).read(performing(spoil));
    let (causes, warnings) = (bench.kinds(), bench.warnings());
    let expected = (vec![kind], Vec::new());
    assert_eq!(
        if out {
            (causes, warnings)
        } else {
            (warnings, causes)
        },
        expected
    );
    assert_eq!(bench.state() == State::Healthy, !out);
    bench.wait(300).read(performing(|p| {
        spoil(p);
        p.throttled = Some(Vec::new());
        p.temperature_celsius = Some(50);
        (p.pcie_width, p.pcie_generation) = (Some(16), Some(4));
        p.links_down = Some(0);
    }));
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_weight_can_be_set_for_one_kind() {
    let mut bench = Bench::new();
    bench.policy.health.weights.causes = [
        (CauseKind::Ecc, Weight::Warn),
        (CauseKind::Pcie, Weight::Out),
    ]
    .into();
    bench.read(working(|w| {
        w.ecc_uncorrected = Some(1);
        w.repair_pending = Some(true);
    }));
    bench.read(performing(|p| {
        (p.pcie_width, p.links_down) = (Some(1), Some(1));
    }));
    assert_eq!(bench.kinds(), [CauseKind::MemoryRepair, CauseKind::Pcie]);
    assert_eq!(bench.warnings(), [CauseKind::Ecc, CauseKind::Link]);
}

#[test]
fn what_is_off_is_left_out_of_account() {
    let mut bench = Bench::new();
    bench.policy.health.weights.working = Weight::Off;
    bench.read(working(|w| w.ecc_uncorrected = Some(1)));
    assert_eq!(bench.wait(1000).verdict(), Verdict::default());
    let now = bench.now();
    bench
        .record
        .happen(EventCode::ECC_UNCORRECTED, &bench.policy, now);
    assert_eq!(
        bench.verdict(),
        Verdict::default(),
        "an event weighs like its check"
    );
    bench.policy.health.weights.causes = [(CauseKind::Ecc, Weight::Warn)].into();
    assert_eq!(bench.warnings(), [CauseKind::Ecc, CauseKind::Ecc]);
}

#[test]
fn what_a_tier_found_that_is_not_checked_any_more_is_left_out_of_account() {
    let mut bench = Bench::new();
    bench.read(working(|w| w.ecc_uncorrected = Some(1)));
    let now = bench.now();
    bench
        .record
        .happen(EventCode::ECC_UNCORRECTED, &bench.policy, now);
    assert_eq!(bench.kinds(), [CauseKind::Ecc, CauseKind::Ecc]);
    bench.policy.health.periods.working = None;
    assert_eq!(bench.kinds(), [CauseKind::Ecc], "the event is no check's");
    bench.policy.health.periods = Periods::default();
    assert_eq!(bench.kinds(), [CauseKind::Ecc, CauseKind::Ecc]);
}

#[test]
fn an_idle_card_may_lower_its_pcie_generation_and_that_heals_nothing() {
    let slow = |utilization| {
        performing(move |p| {
            p.pcie_generation = Some(1);
            p.utilization_percent = utilization;
        })
    };
    let mut bench = Bench::new();
    bench.read(slow(Some(0))).read(slow(None));
    assert_eq!(bench.warnings(), []);
    bench.read(slow(Some(90)));
    assert_eq!(bench.warnings(), [CauseKind::Pcie]);
    bench.read(slow(Some(0)));
    assert_eq!(bench.warnings(), [CauseKind::Pcie]);
    bench.read(performing(|_| {}));
    assert_eq!(bench.warnings(), []);
    bench.read(slow(Some(90)));
    bench.record.end_cordon();
    assert_eq!(bench.warnings(), [], "an operator's word ends it");
}

#[test]
fn what_is_not_read_stands_and_says_so() {
    let mut bench = Bench::new();
    bench
        .read(working(|w| w.ecc_uncorrected = Some(1)))
        .wait(60);
    let silent = working(|w| w.ecc_uncorrected = None);
    bench.read(silent.clone()).wait(60).read(silent);
    assert_eq!(
        bench.verdict().join_evidence(),
        "memory errors that were not repaired since the driver was loaded: 1 (not read any more \
         since 1970-01-01T00:01:00Z)"
    );
    bench.read(working(|_| {}));
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn what_is_not_supported_changes_nothing_and_is_listed() {
    let mut bench = Bench::new();
    let failure = CallFailure {
        fatal: false,
        ..lost_call()
    };
    let reading = Reading {
        values: Values::Working(Working::default()),
        conditions: Vec::new(),
        unsupported: vec!["ecc_uncorrected".to_owned()],
        failures: vec![failure],
    };
    bench.record.record_reading(&reading, &bench.policy, at(0));
    assert_eq!(bench.verdict(), Verdict::default());
    let listed: Vec<_> = bench.record.unsupported_checks().collect();
    assert_eq!(
        listed,
        [(Tier::Working, &["ecc_uncorrected".to_owned()][..])]
    );
}

#[test]
fn a_check_up_that_meets_a_lost_card_counts_as_such_a_look() {
    let mut bench = Bench::new();
    let reading = Reading {
        values: Values::Performing(Performing::default()),
        conditions: Vec::new(),
        unsupported: Vec::new(),
        failures: vec![lost_call()],
    };
    bench.record.record_reading(&reading, &bench.policy, at(0));
    assert_eq!(bench.kinds(), [CauseKind::Lost]);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn a_counter_that_grows_too_fast_within_an_hour_is_a_trend() {
    let mut bench = Bench::new();
    bench.read(trend(1_000_000));
    assert_eq!(bench.warnings(), [], "what was before is no growth");
    bench.wait(900).read(trend(1_000_100));
    assert_eq!(bench.warnings(), []);
    bench.wait(900).read(trend(1_000_101));
    assert_eq!(bench.warnings(), [CauseKind::Trend]);
    assert_eq!(
        bench.verdict().warnings[0].evidence,
        "repaired memory errors: 101 in 30 min, and the limit is 100 in an hour"
    );
    for _ in 0..4 {
        bench.wait(900).read(trend(1_000_101));
    }
    assert_eq!(bench.verdict(), Verdict::default());
    bench.wait(900).read(trend(0)).wait(900).read(trend(50));
    assert_eq!(bench.verdict(), Verdict::default(), "it was set back");
}

#[test]
fn a_mean_power_above_its_limit_is_a_trend() {
    let energy = |joules: u64| {
        Values::Trend(Trend {
            energy_millijoules: Some(joules * 1000),
            ..Trend::default()
        })
    };
    let mut bench = Bench::new();
    bench.policy.health.thresholds.mean_watts = Some(300);
    bench.read(energy(0)).wait(900).read(energy(900 * 400));
    assert_eq!(bench.warnings(), [CauseKind::Trend]);
    bench.wait(3601).read(energy(900 * 400));
    bench.wait(900).read(energy(900 * 500));
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_mean_power_counts_over_the_time_that_the_policy_says() {
    let energy = |joules: u64| {
        Values::Trend(Trend {
            energy_millijoules: Some(joules * 1000),
            ..Trend::default()
        })
    };
    for (seconds, after) in [(60, 59), (2, 1)] {
        let mut bench = Bench::new();
        bench.policy.health.thresholds.mean_watts = Some(300);
        bench.policy.health.thresholds.mean_time = Duration::from_secs(seconds);
        bench.read(energy(0)).wait(after).read(energy(1_000_000));
        assert_eq!(bench.verdict(), Verdict::default(), "too short a time");
        bench.wait(seconds - after).read(energy(1_000_000));
        assert_eq!(bench.warnings(), [CauseKind::Trend]);
    }
}

#[test]
fn a_deep_check_that_fails_shows_what_it_printed_until_one_passes() {
    let mut bench = Bench::new();
    bench.read(deep(Some(false)));
    let evidence = bench.verdict().warnings[0].evidence.clone();
    assert_eq!(
        evidence,
        "the command for deep checks failed: memtest: 3 errors"
    );
    bench.read(deep(None));
    assert_eq!(bench.warnings(), [CauseKind::Deep]);
    bench.read(deep(Some(true)));
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_check_that_fails_again_and_again_must_pass_for_longer_each_time() {
    let mut bench = Bench::new();
    let (broken, well) = (working(|w| w.repair_pending = Some(true)), working(|_| {}));
    bench.read(broken.clone()).wait(60).read(well.clone());
    assert_eq!(bench.state(), State::Healthy);
    bench.read(broken.clone()).wait(60).read(well.clone());
    assert_eq!(bench.state(), State::Unhealthy);
    bench.wait(20).read(well.clone());
    assert_eq!(bench.state(), State::Healthy);
    bench
        .read(broken)
        .wait(60)
        .read(well.clone())
        .wait(20)
        .read(well.clone());
    assert_eq!(bench.state(), State::Unhealthy);
    bench.wait(20).read(well);
    assert_eq!(bench.state(), State::Healthy);
}
