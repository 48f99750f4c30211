use jiff::Timestamp;

use super::*;

fn call(name: &str, device: Option<&str>) -> StuckCall {
    StuckCall {
        call: name.to_owned(),
        device: device.and_then(|device| device.parse().ok()),
        since: Timestamp::UNIX_EPOCH,
        work: Work::Survey,
    }
}

fn beat(calls: &[StuckCall]) -> Beat {
    Beat {
        calls: calls.to_vec(),
        made: 0,
    }
}

#[test]
fn tells_cards_events_links_and_driver_apart() {
    let of = |work, device| {
        let call = call("nvmlX", device);
        CallScope::of_call(&StuckCall { work, ..call })
    };
    let card = CallScope::Card("0000:07:00.0".parse().unwrap());
    assert_eq!(of(Work::Survey, Some("0000:07:00.0")), card);
    assert_eq!(of(Work::Events, Some("0000:07:00.0")), card);
    assert_eq!(of(Work::Events, None), CallScope::Events);
    assert_eq!(of(Work::Links, Some("0000:07:00.0")), CallScope::Links);
    assert_eq!(of(Work::Survey, None), CallScope::Driver);
}

#[tokio::test(start_paused = true)]
async fn names_a_call_at_the_limit_and_waits_longer_for_the_driver_as_a_whole() {
    let limits = Limits::default();
    let start = Instant::now();
    let (uuid, init) = (
        call("nvmlDeviceGetUUID", Some("0000:07:00.0")),
        call("nvmlInit_v2", None),
    );
    let mut timing = CallTimer::default();
    timing.update_calls(&beat(&[uuid.clone(), init.clone()]), start);
    assert_eq!(timing.list_slow_calls(&limits, start).count(), 0);

    let later = start + limits.call;
    timing.update_calls(&beat(&[uuid.clone(), init.clone()]), later);
    assert_eq!(timing.list_slow_calls(&limits, later).count(), 2);
    assert_eq!(timing.find_stuck(&limits, later), Some(&uuid));

    let much_later = start + limits.driver_call;
    timing.update_calls(&beat(std::slice::from_ref(&init)), much_later);
    assert_eq!(timing.find_stuck(&limits, much_later), Some(&init));
}

#[tokio::test(start_paused = true)]
async fn a_new_call_of_the_same_name_starts_anew() {
    let limits = Limits::default();
    let start = Instant::now();
    let mut timing = CallTimer::default();
    timing.update_calls(&beat(&[call("nvmlDeviceGetUUID", Some("0"))]), start);
    let mut second = call("nvmlDeviceGetUUID", Some("0"));
    second.since = Timestamp::UNIX_EPOCH + Duration::from_secs(8);
    timing.update_calls(&beat(&[second]), start + limits.call);
    assert_eq!(timing.find_stuck(&limits, start + limits.call), None);
}

#[tokio::test(start_paused = true)]
async fn tries_again_with_growing_pauses_and_forgives_in_the_end() {
    let limits = Limits::default();
    let stuck = call("nvmlDeviceGetUUID", Some("3"));
    let concern = CallScope::of_call(&stuck);
    let mut ledger = StuckCalls::default();
    let mut now = Instant::now();
    let mut pauses = Vec::new();
    for _ in 0..4 {
        ledger.add_stuck(stuck.clone(), &limits, now);
        let from = now;
        while !ledger.is_retry_due(concern, now) {
            now += Duration::from_secs(1);
        }
        pauses.push(now.duration_since(from));
    }
    assert!(pauses.is_sorted_by(|a, b| a < b), "{pauses:?}");

    ledger.heal(concern, now);
    assert!(!ledger.is_stuck(concern) && ledger.list_stuck_cards().next().is_none());
    ledger.forgive(now);
    ledger.add_stuck(stuck.clone(), &limits, now);
    assert!(
        !ledger.is_retry_due(concern, now + pauses[3]),
        "remembers its tries"
    );

    ledger.heal(concern, now);
    ledger.heal(concern, now + FORGIVEN / 2);
    ledger.forgive(now + FORGIVEN);
    ledger.add_stuck(stuck, &limits, now);
    assert!(
        ledger.is_retry_due(concern, now + pauses[0]),
        "starts with a clean slate"
    );
}
