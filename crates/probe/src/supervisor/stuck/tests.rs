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
        Concern::of(&StuckCall { work, ..call })
    };
    let card = Concern::Card("0000:07:00.0".parse().unwrap());
    assert_eq!(of(Work::Survey, Some("0000:07:00.0")), card);
    assert_eq!(of(Work::Events, Some("0000:07:00.0")), card);
    assert_eq!(of(Work::Events, None), Concern::Events);
    assert_eq!(of(Work::Links, Some("0000:07:00.0")), Concern::Links);
    assert_eq!(of(Work::Survey, None), Concern::Driver);
}

#[tokio::test(start_paused = true)]
async fn names_a_call_at_the_limit_and_waits_longer_for_the_driver_as_a_whole() {
    let limits = Limits::default();
    let start = Instant::now();
    let (uuid, init) = (
        call("nvmlDeviceGetUUID", Some("0000:07:00.0")),
        call("nvmlInit_v2", None),
    );
    let mut timing = Timing::default();
    timing.hear(&beat(&[uuid.clone(), init.clone()]), start);
    assert_eq!(timing.slow(&limits, start).count(), 0);

    let later = start + limits.call;
    timing.hear(&beat(&[uuid.clone(), init.clone()]), later);
    assert_eq!(timing.slow(&limits, later).count(), 2);
    assert_eq!(timing.stuck(&limits, later), Some(&uuid));

    let much_later = start + limits.driver_call;
    timing.hear(&beat(std::slice::from_ref(&init)), much_later);
    assert_eq!(timing.stuck(&limits, much_later), Some(&init));
}

#[tokio::test(start_paused = true)]
async fn a_new_call_of_the_same_name_starts_anew() {
    let limits = Limits::default();
    let start = Instant::now();
    let mut timing = Timing::default();
    timing.hear(&beat(&[call("nvmlDeviceGetUUID", Some("0"))]), start);
    let mut second = call("nvmlDeviceGetUUID", Some("0"));
    second.since = Timestamp::UNIX_EPOCH + Duration::from_secs(8);
    timing.hear(&beat(&[second]), start + limits.call);
    assert_eq!(timing.stuck(&limits, start + limits.call), None);
}

#[tokio::test(start_paused = true)]
async fn tries_again_with_growing_pauses_and_forgives_in_the_end() {
    let limits = Limits::default();
    let stuck = call("nvmlDeviceGetUUID", Some("3"));
    let concern = Concern::of(&stuck);
    let mut ledger = Ledger::default();
    let mut now = Instant::now();
    let mut pauses = Vec::new();
    for _ in 0..4 {
        ledger.add(stuck.clone(), &limits, now);
        let from = now;
        while !ledger.due(concern, now) {
            now += Duration::from_secs(1);
        }
        pauses.push(now.duration_since(from));
    }
    assert!(pauses.is_sorted_by(|a, b| a < b), "{pauses:?}");

    ledger.heal(concern, now);
    assert!(!ledger.holds(concern) && ledger.cards().next().is_none());
    ledger.forgive(now);
    ledger.add(stuck.clone(), &limits, now);
    assert!(!ledger.due(concern, now + pauses[3]), "remembers its tries");

    ledger.heal(concern, now);
    ledger.heal(concern, now + FORGIVEN / 2);
    ledger.forgive(now + FORGIVEN);
    ledger.add(stuck, &limits, now);
    assert!(
        ledger.due(concern, now + pauses[0]),
        "starts with a clean slate"
    );
}
