//! The state file does not grow without end.

use super::*;
use crate::Observation;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

type Devices = BTreeMap<DeviceId, SavedDevice>;

/// Returns the ids that are left at a moment.
fn left(mut devices: Devices, now: Now) -> Vec<String> {
    prune_devices(&mut devices, &policy(), now);
    devices.keys().map(ToString::to_string).collect()
}

/// Returns a device with a record saved at a moment.
fn kept(id: &str, now: Now, act: impl FnOnce(&mut DeviceRecord)) -> (DeviceId, SavedDevice) {
    let mut record = DeviceRecord::default();
    act(&mut record);
    (id.into(), record.to_saved(now))
}

fn broken(id: &str, now: Now) -> (DeviceId, SavedDevice) {
    kept(id, now, |record| {
        record.happen(xid::xid_code(79), &policy(), now);
    })
}

fn cordoned(id: &str, now: Now) -> (DeviceId, SavedDevice) {
    kept(id, now, |record| record.add_cordon("a new fan", now))
}

#[test]
fn a_device_that_flapped_is_forgotten_with_the_flapping() {
    let policy = HealthPolicy {
        health: config::Health {
            passes: 1,
            hold_down: Duration::ZERO,
            ..config::Health::default()
        },
        ..HealthPolicy::default()
    };
    let flapped = || {
        let flapped = kept("GPU-0", at(0), |record| {
            record.observe(Observation::Missing("not listed"), &policy, at(0));
            record.observe(Observation::Seen(&[]), &policy, at(0));
        });
        Devices::from([flapped])
    };
    assert_eq!(left(flapped(), at(HOUR)), ["GPU-0"]);
    assert_eq!(left(flapped(), at(HOUR + 1)), [""; 0]);
}

#[test]
fn the_flapping_of_trouble_that_stands_is_not_forgotten() {
    let gone = kept("GPU-0", at(0), |record| {
        record.observe(Observation::Missing("not listed"), &policy(), at(0));
    });
    let mut devices = Devices::from([gone]);
    prune_devices(&mut devices, &policy(), at(DAY));
    assert_eq!(devices["GPU-0"].begun.len(), 1);
}

#[test]
fn a_device_that_is_away_is_kept_for_thirty_days_and_one_that_is_cordoned_for_ever() {
    let devices = || Devices::from([broken("GPU-0", at(0)), cordoned("GPU-1", at(0))]);
    assert_eq!(left(devices(), at(30 * DAY)), ["GPU-0", "GPU-1"]);
    assert_eq!(left(devices(), at(30 * DAY + 1)), ["GPU-1"]);
    assert_eq!(left(devices(), at(3000 * DAY)), ["GPU-1"]);
}

#[test]
fn a_clock_that_was_set_back_drops_nothing() {
    assert_eq!(
        left(Devices::from([broken("GPU-0", at(DAY))]), at(0)),
        ["GPU-0"]
    );
}

#[test]
fn of_too_many_the_oldest_go_and_those_that_are_cordoned_last() {
    let mut devices = Devices::from([cordoned("old", at(0))]);
    devices.extend((0..300).map(|n| broken(&format!("GPU-{n:03}"), at(1000 - n))));
    let left = left(devices, at(2000));
    assert_eq!(left.len(), 256);
    assert_eq!(left.last().map(String::as_str), Some("old"));
    assert_eq!(left[254], "GPU-254", "the newest of the others");
    let cordons = (0..300).map(|n| cordoned(&format!("GPU-{n:03}"), at(n)));
    let mut devices: Devices = cordons.collect();
    prune_devices(&mut devices, &policy(), at(2000));
    assert_eq!(devices.len(), 256);
    assert!(devices.contains_key("GPU-299") && !devices.contains_key("GPU-000"));
}

#[test]
fn a_file_shrinks_by_its_changes_first_and_by_what_an_operator_said_last() {
    let change = |second| Transition {
        at: at(second).wall,
        device: "GPU-0".into(),
        from: model::State::Healthy,
        to: model::State::Unhealthy,
        began: Vec::new(),
        ended: Vec::new(),
    };
    let mut file = SavedHealth {
        devices: [
            cordoned("GPU-0", at(0)),
            broken("GPU-1", at(1)),
            broken("GPU-2", at(2)),
        ]
        .into(),
        history: (0..3).map(change).collect(),
        ..SavedHealth::default()
    };
    let mut seen = Vec::new();
    while file.shrink() {
        seen.push((file.history.len(), file.devices.len()));
        if file.devices.len() == 1 {
            assert!(file.devices.contains_key("GPU-0"));
        }
        if file.history.len() == 1 {
            assert_eq!(file.history[0].at, at(2).wall);
        }
    }
    assert_eq!(seen, [(1, 3), (0, 3), (0, 1), (0, 0)]);
}
