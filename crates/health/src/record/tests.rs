use proptest::prelude::*;

use super::*;

fn at(seconds: u64) -> Now {
    let uptime = Duration::from_secs(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH + uptime,
        uptime,
    }
}

fn lost() -> CallFailure {
    CallFailure {
        call: "nvmlDeviceGetUUID".to_owned(),
        code: "GPU_IS_LOST".to_owned(),
        fatal: true,
    }
}

fn hung() -> StuckCall {
    StuckCall {
        call: "nvmlDeviceGetMemoryInfo".to_owned(),
        device: None,
        since: Timestamp::UNIX_EPOCH,
        work: model::Work::Survey,
    }
}

fn state(record: &Record, seconds: u64) -> State {
    record.verdict(Policy::default(), at(seconds)).state
}

#[test]
fn a_lost_card_comes_back_when_the_driver_reads_it_again() {
    let mut record = Record::default();
    record.see(Sight::Unreadable(&lost()), at(1));
    let verdict = record.verdict(Policy::default(), at(2));
    assert_eq!(verdict.state, State::Unhealthy);
    assert_eq!(verdict.reason(), "nvmlDeviceGetUUID: GPU_IS_LOST");
    record.see(Sight::Seen(&[]), at(3));
    assert_eq!(record.verdict(Policy::default(), at(3)), Verdict::default());
}

#[test]
fn an_xid_stays_until_the_card_went_and_came_back() {
    let mut record = Record::default();
    assert!(record.xid(48, at(1)));
    record.see(Sight::Seen(&[]), at(2));
    assert_eq!(state(&record, 3), State::Unhealthy);
    record.see(Sight::Missing("not listed"), at(4));
    record.see(Sight::Seen(&[]), at(5));
    assert_eq!(state(&record, 5), State::Healthy);
}

#[test]
fn an_xid_of_a_card_that_is_away_ends_with_its_return() {
    let mut record = Record::default();
    record.see(Sight::Unreadable(&lost()), at(1));
    record.xid(79, at(2));
    record.see(Sight::Seen(&[]), at(3));
    assert_eq!(state(&record, 3), State::Healthy);
}

#[test]
fn an_xid_that_follows_the_return_counts_anew() {
    let mut record = Record::default();
    record.see(Sight::Unreadable(&lost()), at(1));
    record.see(Sight::Seen(&[]), at(2));
    record.xid(79, at(3));
    record.see(Sight::Seen(&[]), at(4));
    assert_eq!(state(&record, 4), State::Unhealthy);
}

#[test]
fn the_same_xid_is_listed_once_with_its_first_time() {
    let mut record = Record::default();
    record.xid(79, at(1));
    record.xid(79, at(9));
    let causes = record.verdict(Policy::default(), at(9)).causes;
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].since, at(1).wall);
}

#[test]
fn an_application_error_changes_nothing() {
    let mut record = Record::default();
    assert!(!record.xid(31, at(1)));
    assert_eq!(record, Record::default());
}

#[test]
fn a_hung_call_is_unknown_first_and_unhealthy_later() {
    let mut record = Record::default();
    record.see(Sight::Stuck(&hung()), at(100));
    assert_eq!(state(&record, 100), State::Unknown);
    record.see(Sight::Stuck(&hung()), at(129));
    assert_eq!(state(&record, 129), State::Unknown);
    assert_eq!(state(&record, 130), State::Unhealthy);
    record.see(Sight::Seen(&[]), at(131));
    assert_eq!(state(&record, 131), State::Healthy);
}

#[test]
fn a_driver_that_fails_for_a_moment_takes_no_card_away() {
    let mut record = Record::default();
    record.see(Sight::Failed("nvmlInit_v2: UNKNOWN"), at(0));
    assert_eq!(state(&record, 29), State::Unknown);
    assert_eq!(state(&record, 30), State::Unhealthy);
    record.see(Sight::Seen(&[]), at(31));
    assert_eq!(state(&record, 31), State::Healthy);
}

#[test]
fn a_probe_that_is_down_is_never_held_against_the_card() {
    let mut record = Record::default();
    record.see(Sight::Unwatched("the probe exited"), at(0));
    assert_eq!(state(&record, 1_000_000), State::Unknown);
}

#[test]
fn a_lost_card_stays_lost_while_nobody_can_look() {
    let mut record = Record::default();
    record.see(Sight::Unreadable(&lost()), at(0));
    for blind in [
        Sight::Unwatched("the probe stopped"),
        Sight::Stuck(&hung()),
        Sight::Failed("init"),
    ] {
        record.see(blind, at(1));
        assert_eq!(state(&record, 1), State::Unhealthy, "{blind:?}");
    }
    record.see(Sight::Seen(&[]), at(2));
    assert_eq!(state(&record, 2), State::Healthy);
}

#[test]
fn a_driver_that_comes_and_goes_is_no_reset() {
    let mut record = Record::default();
    record.xid(48, at(0));
    record.see(Sight::NoDriver("no library"), at(1));
    record.see(Sight::Seen(&[]), at(2));
    assert_eq!(state(&record, 2), State::Unhealthy);
}

#[test]
fn a_failure_that_is_not_fatal_is_no_verdict() {
    let mut record = Record::default();
    let mut failure = lost();
    failure.fatal = false;
    record.see(Sight::Seen(&[failure]), at(1));
    assert_eq!(state(&record, 1), State::Healthy);
}

proptest! {
    /// Rules 4 and 6: whatever happened, every verdict but Healthy has a cause, and a card that
    /// goes and comes back is healthy.
    #[test]
    fn every_verdict_has_a_cause_and_a_way_back(steps in prop::collection::vec(0u8..10, 0..40)) {
        let mut record = Record::default();
        let (lost, hung) = (lost(), hung());
        for (second, step) in (0u64..).zip(steps) {
            let now = at(second * 7);
            match step {
                0 => record.see(Sight::Seen(&[]), now),
                1 => record.see(Sight::Unreadable(&lost), now),
                2 => record.see(Sight::Stuck(&hung), now),
                3 => record.see(Sight::Missing("not listed"), now),
                4 => record.see(Sight::Unwatched("down"), now),
                7 => record.see(Sight::Failed("nvmlInit_v2"), now),
                8 => record.see(Sight::NoDriver("no library"), now),
                9 => record.see(Sight::Untold(&lost), now),
                5 => { record.xid(79, now); }
                _ => { record.xid(13, now); }
            }
            let verdict = record.verdict(Policy::default(), now);
            prop_assert_eq!(verdict.state == State::Healthy, verdict.causes.is_empty());
            // Once it is seen again, nothing but an event that came since is held against it.
            let mut seen = record.clone();
            seen.see(Sight::Seen(&[]), now);
            let only_events = |cause: &Cause| cause.kind == CauseKind::Event;
            prop_assert!(seen.verdict(Policy::default(), now).causes.iter().all(only_events));
        }
        record.see(Sight::Missing("reset"), at(10_000));
        record.see(Sight::Seen(&[]), at(10_001));
        prop_assert_eq!(record.verdict(Policy::default(), at(10_001)), Verdict::default());
    }
}
