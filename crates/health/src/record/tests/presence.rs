use config::MonitorLoss;
use proptest::prelude::*;

use super::*;

#[test]
fn a_first_look_that_is_well_needs_no_hold_down() {
    let mut bench = Bench::new();
    assert_eq!(bench.well().verdict(), Verdict::default());
}

#[test]
fn a_lost_card_is_back_after_three_looks_over_twenty_seconds() {
    let mut bench = Bench::new();
    bench.wait(1).lose().wait(1);
    let verdict = bench.verdict();
    assert_eq!(verdict.state, State::Unhealthy);
    assert_eq!(verdict.join_evidence(), "nvmlDeviceGetUUID: GPU_IS_LOST");
    assert_eq!(
        verdict.causes[0].ends_when,
        "the driver reads the device again, at 3 looks in a row over 20 s"
    );
    assert_eq!(bench.back_after(), 20);
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn the_default_gives_a_lost_card_back_within_thirty_seconds_of_looks() {
    // Late looks cost at most one more look.
    let mut bench = Bench::new();
    bench.lose().wait(5).well().wait(10).well().wait(9).well();
    assert_eq!(bench.state(), State::Unhealthy);
    bench.wait(6).well();
    assert_eq!(bench.state(), State::Healthy);
}

#[test]
fn many_looks_at_once_are_not_time() {
    let mut bench = Bench::new();
    bench.lose();
    for _ in 0..50 {
        bench.well();
    }
    assert_eq!(bench.state(), State::Unhealthy);
    let wants = |bench: &Bench| bench.record.wants_look(&bench.policy, bench.now());
    assert!(!wants(&bench), "the time is not over");
    bench.wait(20);
    assert!(wants(&bench));
    assert_eq!(bench.state(), State::Unhealthy, "time alone heals nothing");
    assert_eq!(bench.well().state(), State::Healthy);
    assert!(!wants(&bench));
}

#[test]
fn the_time_in_which_nobody_looked_is_no_time_in_which_a_card_was_well() {
    let mut bench = Bench::new();
    bench.lose().wait(1).well().wait(1).well();
    bench.see(Observation::Unmonitored("the probe stopped"));
    bench.wait(600).well();
    assert_eq!(bench.state(), State::Unhealthy);
    assert_eq!(
        bench.wait(10).well().wait(10).well().state(),
        State::Healthy
    );
}

#[test]
fn a_row_of_looks_wants_more_of_them_until_there_are_enough() {
    let mut bench = Bench::new();
    let wants = |bench: &Bench| bench.record.wants_look(&bench.policy, bench.now());
    bench.lose();
    assert!(!wants(&bench), "the first comes by itself");
    bench.wait(1).well();
    assert!(wants(&bench));
    bench.record.release_to_operator(at(600).wall, bench.now());
    assert!(!wants(&bench), "nobody may look");
}

#[test]
fn a_card_that_is_held_down_says_since_when_it_is_well() {
    let mut bench = Bench::new();
    bench.lose().wait(60).well().wait(10).well();
    let ends_when = &bench.verdict().causes[0].ends_when;
    assert!(
        ends_when.ends_with("; it has been well since 1970-01-01T00:01:00Z"),
        "{ends_when}"
    );
}

#[test]
fn flapping_doubles_the_hold_down_up_to_the_limit_and_is_forgotten_after_a_while() {
    let mut bench = Bench::new();
    let mut holds = Vec::new();
    for _ in 0..8 {
        bench.lose().wait(1);
        holds.push(bench.back_after());
    }
    assert_eq!(holds, [20, 40, 80, 160, 320, 640, 900, 900]);
    bench.wait(3601).lose().wait(1);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn a_card_that_is_lost_again_while_it_is_held_down_flaps() {
    let mut bench = Bench::new();
    bench.lose().wait(5).well().wait(10).well().wait(5).lose();
    assert_eq!(bench.back_after(), 40);
}

#[test]
fn a_card_that_stays_lost_flaps_once() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        bench.lose().wait(10);
    }
    bench
        .see(Observation::Missing("not listed"))
        .wait(10)
        .lose();
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn a_lost_card_that_is_not_listed_any_more_is_gone() {
    let mut bench = Bench::new();
    bench.lose().wait(1).see(Observation::Missing("not listed"));
    assert_eq!(bench.kinds(), [CauseKind::Gone]);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn a_hung_call_is_unknown_first_and_unhealthy_later() {
    let mut bench = Bench::new();
    bench.wait(100).see(Observation::Stuck(&hung()));
    assert_eq!(bench.state(), State::Unknown);
    bench.wait(29).see(Observation::Stuck(&hung()));
    assert_eq!(bench.state(), State::Unknown);
    assert_eq!(bench.wait(1).state(), State::Unhealthy);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn a_hung_call_that_returns_in_time_costs_nothing() {
    let mut bench = Bench::new();
    for _ in 0..5 {
        bench.see(Observation::Stuck(&hung())).wait(29).well();
        assert_eq!(bench.state(), State::Healthy);
    }
}

#[test]
fn a_driver_that_fails_for_a_moment_takes_no_card_away() {
    let mut bench = Bench::new();
    bench
        .see(Observation::DriverFailed("nvmlInit_v2: UNKNOWN"))
        .wait(29);
    assert_eq!(bench.state(), State::Unknown);
    assert_eq!(bench.well().state(), State::Healthy);
}

#[test]
fn a_probe_that_is_down_is_not_held_against_the_card_by_default() {
    let mut bench = Bench::new();
    bench.see(Observation::Unmonitored("the probe exited"));
    assert_eq!(bench.wait(1_000_000).state(), State::Unknown);
    assert_eq!(bench.well().state(), State::Healthy);
}

#[test]
fn a_probe_that_is_down_for_long_takes_the_card_out_where_that_is_wanted() {
    let mut bench = Bench::new();
    bench.policy.health.on_monitor_loss = MonitorLoss::Drain;
    bench
        .see(Observation::Unmonitored("the probe exited"))
        .wait(119);
    assert_eq!(bench.state(), State::Unknown);
    assert_eq!(bench.wait(1).state(), State::Unhealthy);
    assert_eq!(bench.well().state(), State::Healthy);
}

#[test]
fn a_lost_card_stays_lost_while_nobody_can_look() {
    let mut bench = Bench::new();
    bench.lose();
    for blind in [
        Observation::Unmonitored("the probe stopped"),
        Observation::Stuck(&hung()),
        Observation::DriverFailed("init"),
        Observation::Unreported(&lost_call()),
        Observation::NoDriver("no library"),
    ] {
        bench.wait(100).see(blind);
        assert_eq!(bench.state(), State::Unhealthy, "{blind:?}");
    }
    bench.back_after();
}

#[test]
fn a_failure_that_is_not_fatal_is_no_verdict() {
    let mut bench = Bench::new();
    let mut failure = lost_call();
    failure.fatal = false;
    assert_eq!(
        bench.see(Observation::Seen(&[failure])).state(),
        State::Healthy
    );
}

#[test]
fn a_device_that_is_gone_has_been_for_so_long_and_one_that_is_back_has_not() {
    let mut bench = Bench::new();
    bench.see(Observation::Missing("not listed")).wait(70);
    let lasting = |bench: &Bench| bench.record.finding_age(CauseKind::Gone, bench.now());
    assert_eq!(lasting(&bench), Some(Duration::from_secs(70)));
    bench.well();
    assert_eq!(bench.state(), State::Unhealthy);
    assert_eq!(lasting(&bench), None);
}

proptest! {
    /// After any input: every verdict but Healthy has a cause, and a card that leaves, comes back
    /// and is looked at for long enough is healthy.
    #[test]
    fn every_verdict_has_a_cause_and_a_way_back(steps in prop::collection::vec(0u8..10, 0..40)) {
        let mut bench = Bench::new();
        let (lost, hung) = (lost_call(), hung());
        for step in steps {
            bench.wait(7);
            match step {
                0 => drop(bench.well()),
                1 => drop(bench.see(Observation::Unreadable(&lost))),
                2 => drop(bench.see(Observation::Stuck(&hung))),
                3 => drop(bench.see(Observation::Missing("not listed"))),
                4 => drop(bench.see(Observation::Unmonitored("down"))),
                7 => drop(bench.see(Observation::DriverFailed("nvmlInit_v2"))),
                8 => drop(bench.see(Observation::NoDriver("no library"))),
                9 => drop(bench.see(Observation::Unreported(&lost))),
                5 => { bench.xid(79); }
                _ => { bench.xid(13); }
            }
            let verdict = bench.verdict();
            prop_assert_eq!(verdict.state == State::Healthy, verdict.causes.is_empty());
            for cause in verdict.causes.iter().chain(&verdict.warnings) {
                prop_assert!(!cause.evidence.is_empty() && !cause.ends_when.is_empty());
            }
        }
        bench.see(Observation::Missing("reset")).wait(1);
        bench.back_after();
        prop_assert_eq!(bench.verdict().causes, Vec::new());
    }
}
