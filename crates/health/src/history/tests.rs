use std::time::Duration;

use model::State;

use super::*;

fn at(second: u64) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(second)
}

fn cause(kind: CauseKind, evidence: &str, since: u64) -> Cause {
    Cause {
        kind,
        evidence: evidence.to_owned(),
        since: at(since),
        ends_when: String::new(),
    }
}

fn verdict(state: State, causes: &[Cause], warnings: &[Cause]) -> Verdict {
    Verdict {
        state,
        causes: causes.to_vec(),
        warnings: warnings.to_vec(),
    }
}

fn between(before: &Verdict, after: &Verdict) -> Option<Transition> {
    compare_verdicts(Some(before), after, &"GPU-0".into(), at(9))
}

#[test]
fn a_new_device_that_is_healthy_is_no_change_and_one_that_is_not_is() {
    let device = "GPU-0".into();
    assert_eq!(
        compare_verdicts(None, &Verdict::default(), &device, at(1)),
        None
    );
    let lost = cause(CauseKind::Lost, "lost", 1);
    let sick = verdict(State::Unhealthy, std::slice::from_ref(&lost), &[]);
    let expected = Transition {
        at: at(1),
        device: device.clone(),
        from: State::Healthy,
        to: State::Unhealthy,
        began: vec![lost],
        ended: Vec::new(),
    };
    assert_eq!(
        compare_verdicts(None, &sick, &device, at(1)),
        Some(expected)
    );
}

#[test]
fn a_number_that_changed_in_the_evidence_is_no_change() {
    let one = verdict(
        State::Unhealthy,
        &[cause(CauseKind::Ecc, "1 error", 1)],
        &[],
    );
    let two = verdict(
        State::Unhealthy,
        &[cause(CauseKind::Ecc, "2 errors", 1)],
        &[],
    );
    assert_eq!(between(&one, &two), None);
}

#[test]
fn trouble_that_began_again_is_a_change_though_the_state_is_the_same() {
    let one = verdict(State::Unhealthy, &[cause(CauseKind::Ecc, "1", 1)], &[]);
    let two = verdict(State::Unhealthy, &[cause(CauseKind::Ecc, "1", 7)], &[]);
    let change = between(&one, &two).unwrap();
    assert_eq!((change.began, change.ended), (two.causes, one.causes));
}

#[test]
fn two_events_at_one_moment_are_two() {
    let one = cause(CauseKind::Event, "XID 48", 1);
    let two = cause(CauseKind::Event, "XID 63", 1);
    let both = verdict(State::Unhealthy, &[one.clone(), two.clone()], &[]);
    let change = between(&verdict(State::Unhealthy, &[one], &[]), &both).unwrap();
    assert_eq!(change.began, [two]);
}

#[test]
fn two_conditions_at_one_moment_are_two_whatever_their_reasons_say() {
    let condition = |evidence| cause(CauseKind::Condition, evidence, 1);
    let (one, two) = (condition("ras.gfx: 1 error"), condition("ras.umc: 1 error"));
    let both = verdict(State::Unhealthy, &[one.clone(), two], &[]);
    let more = condition("ras.umc: 2 errors");
    let worse = verdict(State::Unhealthy, &[one.clone(), more.clone()], &[]);
    assert_eq!(between(&both, &worse), None);
    let rest = verdict(State::Unhealthy, &[more], &[]);
    assert_eq!(between(&both, &rest).unwrap().ended, [one]);
}

#[test]
fn two_findings_of_one_kind_at_one_moment_are_two() {
    let pending = cause(CauseKind::MemoryRepair, "pending", 1);
    let failed = cause(CauseKind::MemoryRepair, "failed", 1);
    let both = verdict(State::Unhealthy, &[pending.clone(), failed.clone()], &[]);
    let one = verdict(State::Unhealthy, &[pending], &[]);
    assert_eq!(between(&both, &one).unwrap().ended.len(), 1);
    assert_eq!(between(&both, &both), None);
}

#[test]
fn a_warning_is_a_change_and_one_that_weighs_more_now_changes_the_state() {
    let hot = cause(CauseKind::Temperature, "86 °C", 1);
    let warned = verdict(State::Healthy, &[], std::slice::from_ref(&hot));
    let change = between(&Verdict::default(), &warned).unwrap();
    assert_eq!(change.began, std::slice::from_ref(&hot));
    let out = verdict(State::Unhealthy, std::slice::from_ref(&hot), &[]);
    let change = between(&warned, &out).unwrap();
    assert_eq!((change.from, change.to), (State::Healthy, State::Unhealthy));
    assert_eq!((change.began, change.ended), (vec![hot], Vec::new()));
}

/// A reset by the agent happens at every start of a container; as a change it would push out
/// everything else.
#[test]
fn a_reset_before_a_start_is_no_change_unless_nobody_looked_in_time() {
    let lent = cause(CauseKind::Released, "it is being reset", 1);
    let warned = verdict(State::Healthy, &[], std::slice::from_ref(&lent));
    assert_eq!(between(&Verdict::default(), &warned), None);
    assert_eq!(between(&warned, &Verdict::default()), None);
    let out = verdict(State::Maintenance, std::slice::from_ref(&lent), &[]);
    assert_eq!(between(&warned, &out).unwrap().began, [lent]);
}

fn entry(device: &str, second: u64) -> Transition {
    Transition {
        at: at(second),
        device: device.into(),
        from: State::Healthy,
        to: State::Unhealthy,
        began: Vec::new(),
        ended: Vec::new(),
    }
}

#[test]
fn a_history_keeps_the_newest_of_each_device_and_of_all() {
    let mut history = History::default();
    history.push(entry("quiet", 0));
    for second in 1..=1000 {
        history.push(entry("noisy", second));
    }
    let kept = |history: &History, device: &str| {
        let of_device = |entry: &&Transition| entry.device.as_str() == device;
        history.iter().filter(of_device).count()
    };
    assert_eq!((kept(&history, "quiet"), kept(&history, "noisy")), (1, 64));
    assert_eq!(history.iter().next_back().unwrap().at, at(1000));
    for device in 0..1000 {
        history.push(entry(&format!("GPU-{device}"), 2000));
    }
    assert_eq!(history.iter().count(), 512);
    assert_eq!(kept(&history, "quiet"), 0);
    let again = History::from_entries(history.iter().cloned());
    assert_eq!(again, history);
}
