//! Events, and orders of an operator.

use config::{XidSet, Xids};
use model::{RecoveryAction, Working};

use super::*;

fn asks(recovery: RecoveryAction) -> Values {
    Values::Working(Working {
        recovery: Some(recovery),
        ..Working::default()
    })
}

#[test]
fn an_xid_that_wants_a_reset_stays_until_the_card_went_and_came_back() {
    let mut bench = Bench::new();
    assert!(bench.xid(48));
    bench.wait(1).well().wait(100_000).well();
    assert_eq!(bench.kinds(), [CauseKind::Event]);
    bench.see(Observation::Missing("not listed")).wait(1);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn an_xid_of_a_card_that_is_away_ends_with_its_return() {
    let mut bench = Bench::new();
    bench.lose().xid(79);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn an_xid_that_follows_the_return_counts_anew() {
    let mut bench = Bench::new();
    bench.lose().wait(1).well().xid(79);
    for _ in 0..10 {
        bench.wait(10).well();
    }
    assert_eq!(bench.kinds(), [CauseKind::Event]);
}

#[test]
fn a_driver_that_comes_and_goes_is_no_reset_and_one_that_was_loaded_anew_is() {
    let mut bench = Bench::new();
    bench.xid(48);
    bench.see(Observation::NoDriver("no library")).wait(1);
    for _ in 0..10 {
        bench.wait(10).well();
    }
    assert_eq!(bench.kinds(), [CauseKind::Event]);
    bench.record.record_driver_reload(&bench.policy);
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn an_xid_ends_when_the_action_that_the_driver_asked_for_was_taken() {
    let mut bench = Bench::new();
    bench.xid(95);
    bench.read(asks(RecoveryAction::None));
    assert_eq!(bench.kinds(), [CauseKind::Event], "nothing was asked for");
    bench.wait(60).read(asks(RecoveryAction::Reset));
    assert_eq!(bench.kinds(), [CauseKind::Event, CauseKind::RecoveryAction]);
    bench.wait(60).read(asks(RecoveryAction::None));
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn an_xid_ends_when_an_operator_had_the_card_and_the_driver_asks_for_nothing() {
    let mut bench = Bench::new();
    bench.xid(48);
    let now = bench.now();
    bench.record.release_to_operator(at(600).wall, now);
    bench.wait(60).record.end_release();
    bench.well();
    assert_eq!(
        bench.kinds(),
        [CauseKind::Event],
        "nobody has asked the driver"
    );
    bench.read(asks(RecoveryAction::None));
    assert_eq!(bench.verdict(), Verdict::default());
    bench.xid(48);
    bench.wait(60).read(asks(RecoveryAction::None));
    assert_eq!(bench.kinds(), [CauseKind::Event], "that was before");
}

/// The list for the kubelet must not change while a card is reset before it is handed over.
#[test]
fn a_card_that_the_agent_itself_gave_up_keeps_its_verdict_until_its_time_is_over() {
    let mut bench = Bench::new();
    let now = bench.now();
    bench.record.release_to_agent(at(25).wall, now);
    let verdict = bench.wait(24).verdict();
    assert_eq!(verdict.state, State::Healthy);
    assert_eq!(verdict.warnings[0].kind, CauseKind::Released);
    let verdict = bench.wait(1).verdict();
    assert_eq!(verdict.state, State::Maintenance, "nobody has looked");
    bench.well();
    assert_eq!(bench.verdict(), Verdict::default());
}

/// A release by the agent ends no event: its reset may fail.
#[test]
fn an_xid_ends_with_a_reset_that_the_agent_had_done_and_not_with_one_that_failed() {
    let mut bench = Bench::new();
    bench.xid(48);
    for done in [false, true] {
        let now = bench.now();
        bench
            .record
            .release_to_agent(at(bench.second + 25).wall, now);
        if done {
            bench.record.was_reset();
        }
        assert_eq!(bench.wait(5).kinds(), [CauseKind::Event], "nobody looked");
        bench.record.end_release();
        bench.well().read(asks(RecoveryAction::None));
        let expected: &[CauseKind] = if done { &[] } else { &[CauseKind::Event] };
        assert_eq!(bench.kinds(), expected);
    }
}

#[test]
fn an_xid_that_comes_while_the_driver_asks_ends_with_that_too() {
    let mut bench = Bench::new();
    bench.read(asks(RecoveryAction::Reboot)).xid(79);
    bench.wait(60).read(asks(RecoveryAction::None));
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn the_same_xid_is_listed_once_with_its_first_time() {
    let mut bench = Bench::new();
    bench.wait(1).xid(79);
    bench.wait(8).xid(79);
    let causes = bench.verdict().causes;
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].since, at(1).wall);
    assert_eq!(causes[0].evidence, "XID 79 (GPU has fallen off the bus)");
}

#[test]
fn a_program_s_fault_is_a_warning_that_ends_by_itself() {
    let mut bench = Bench::new();
    assert!(!bench.xid(94));
    bench.wait(299);
    assert_eq!(bench.state(), State::Healthy);
    assert_eq!(bench.warnings(), [CauseKind::Event]);
    assert_eq!(bench.wait(1).verdict(), Verdict::default());
    bench.well();
    assert!(bench.record.take_unsaved());
    assert_eq!(bench.record, DeviceRecord::default(), "and is forgotten");
}

#[test]
fn an_xid_that_is_ignored_leaves_nothing() {
    let mut bench = Bench::new();
    assert!(!bench.xid(43));
    assert_eq!(bench.record, DeviceRecord::default());
}

#[test]
fn a_new_policy_counts_for_what_was_told_before() {
    let mut bench = Bench::new();
    bench.xid(79);
    bench.policy.settings.nvidia.xids.ignore = XidSet::All;
    assert_eq!(bench.verdict(), Verdict::default());
    bench.policy.settings.nvidia.xids = Xids::default();
    bench.policy.settings.nvidia.xids.actions = [(79, Action::Application)].into();
    assert_eq!(bench.warnings(), [CauseKind::Event]);
}

#[test]
fn a_permanent_xid_ends_with_the_word_of_an_operator_only() {
    let mut bench = Bench::new();
    bench.xid(54);
    bench.lose().wait(1);
    for _ in 0..10 {
        bench.wait(10).well();
    }
    bench.record.record_driver_reload(&bench.policy);
    assert_eq!(bench.state(), State::Unhealthy);
    let ends_when = &bench.verdict().causes[0].ends_when;
    assert_eq!(
        ends_when,
        "an operator uncordons the card, or it was replaced by another"
    );
    bench.record.end_cordon();
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn an_unrepaired_memory_error_ends_with_a_reset_or_when_its_counter_is_back() {
    let counted = |errors| {
        Values::Working(Working {
            ecc_uncorrected: Some(errors),
            ..Working::default()
        })
    };
    let mut bench = Bench::new();
    let tell = |bench: &mut Bench, event| bench.record.happen(event, &bench.policy, at(0));
    tell(&mut bench, EventCode::ECC_CORRECTED);
    assert_eq!(bench.record, DeviceRecord::default());
    tell(&mut bench, EventCode::ECC_UNCORRECTED);
    bench.read(counted(0));
    assert_eq!(bench.kinds(), [CauseKind::Ecc], "it was not counted yet");
    bench.wait(60).read(counted(1)).wait(60).read(counted(0));
    assert_eq!(bench.verdict(), Verdict::default());
    tell(&mut bench, EventCode::ECC_UNCORRECTED);
    bench.lose().wait(1);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn an_endless_number_of_different_xids_takes_no_endless_room() {
    let mut bench = Bench::new();
    for number in 1000..2000 {
        bench.xid(number);
    }
    assert_eq!(bench.verdict().causes.len(), 64);
}

#[test]
fn a_cordoned_card_is_in_maintenance_with_its_reason_until_it_is_uncordoned() {
    let mut bench = Bench::new();
    bench.record.add_cordon("fan is loud", at(1));
    bench.record.add_cordon("fan was changed", at(2));
    let verdict = bench.well().verdict();
    assert_eq!(verdict.state, State::Maintenance);
    assert_eq!(
        verdict.join_evidence(),
        "an operator cordoned it: fan was changed"
    );
    assert_eq!(verdict.causes[0].since, at(1).wall);
    bench.lose();
    assert_eq!(bench.kinds(), [CauseKind::Cordoned, CauseKind::Lost]);
    assert_eq!(bench.state(), State::Maintenance);
    bench.record.end_cordon();
    assert_eq!(bench.state(), State::Unhealthy, "a check still fails");
}

#[test]
fn the_word_of_an_operator_ends_flapping_and_what_is_not_read_any_more() {
    let mut bench = Bench::new();
    for _ in 0..5 {
        bench.lose().wait(1).well().wait(1);
    }
    let pending = |pending| {
        Values::Working(Working {
            repair_pending: pending,
            ..Working::default()
        })
    };
    bench.read(pending(Some(true))).read(pending(None));
    bench.record.end_cordon();
    assert_eq!(bench.kinds(), [CauseKind::Lost]);
    assert_eq!(bench.back_after(), 20);
}

#[test]
fn a_released_card_is_in_maintenance_until_somebody_looks_after_its_time_or_the_operator_is_done() {
    let mut bench = Bench::new();
    bench.record.release_to_operator(at(600).wall, at(0));
    bench.wait(599);
    assert_eq!(bench.kinds(), [CauseKind::Released]);
    assert_eq!(bench.state(), State::Maintenance);
    let ends_when = bench.verdict().causes[0].ends_when.clone();
    assert!(ends_when.contains("1970-01-01T00:10:00Z"), "{ends_when}");
    assert_eq!(bench.wait(1).state(), State::Maintenance);
    bench.see(Observation::Unmonitored("the probe stopped"));
    assert_eq!(bench.state(), State::Maintenance, "nobody has looked");
    let reason = bench.verdict().causes[0].evidence.clone();
    assert!(
        reason.contains("no probe has looked at it since"),
        "{reason}"
    );
    assert_eq!(bench.well().verdict(), Verdict::default());
    bench.record.release_to_operator(at(9999).wall, bench.now());
    bench.record.end_release();
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn a_foreign_process_withholds_the_card_for_a_while_and_for_longer_each_time() {
    let mut bench = Bench::new();
    let found = |bench: &mut Bench| {
        let now = bench.now();
        bench
            .record
            .residue("process 7 (python) uses 3 GiB", &bench.policy, now);
    };
    found(&mut bench);
    bench.wait(29);
    assert_eq!(bench.kinds(), [CauseKind::Residue]);
    assert_eq!(
        bench.verdict().join_evidence(),
        "process 7 (python) uses 3 GiB"
    );
    assert_eq!(bench.wait(1).verdict(), Verdict::default());
    found(&mut bench);
    bench.wait(59);
    assert_eq!(bench.state(), State::Unhealthy);
    assert_eq!(bench.wait(1).verdict(), Verdict::default());
    found(&mut bench);
    bench.record.clear_residue();
    assert_eq!(bench.verdict(), Verdict::default());
}

#[test]
fn an_event_that_nobody_knows_is_a_warning_for_a_while() {
    let mut bench = Bench::new();
    let code = "ras:umc".parse().unwrap();
    bench.record.happen(code, &bench.policy, at(0));
    let verdict = bench.verdict();
    assert_eq!(verdict.state, State::Healthy);
    let evidence = verdict.warnings.iter().map(|cause| &cause.evidence);
    assert!(evidence.eq(["the driver told of the event ras:umc"]));
    bench.wait(299);
    assert_eq!(bench.warnings(), [CauseKind::Event]);
    bench.wait(1);
    assert_eq!(bench.verdict(), Verdict::default());
}
