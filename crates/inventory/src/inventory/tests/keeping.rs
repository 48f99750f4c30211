//! Restarts of the agent neither heal nor break a device.

use super::*;

/// Returns the inventory of the next agent.
fn restarted(inventory: &mut Inventory, boot_id: &str, now: Now) -> Inventory {
    let mut next = Inventory::new(&policy(), boot_id.to_owned());
    next.restore_state(left(inventory, now), now);
    next
}

/// Returns the state that an agent leaves for the next one.
pub(super) fn left(inventory: &mut Inventory, now: Now) -> crate::SavedState {
    let state = inventory.checkpoint(now).expect("something is to be kept");
    let text = serde_json::to_string(&state).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(super) fn cordon(inventory: &mut Inventory, device: &Device, now: Now) {
    let what = DeviceChange::Cordon {
        devices: vec![device.id.clone()],
        reason: String::new(),
    };
    inventory.apply_change(&what, now);
}

pub(super) fn xid(inventory: &mut Inventory, device: Device, now: Now) {
    let event = Event {
        device: device.id,
        at: now.wall,
        code: nvidia_rules::xid::xid_code(79),
    };
    tell(inventory, Message::Event(event), now);
}

/// Returns an inventory with a card that needs a reset.
fn broken() -> Inventory {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    xid(&mut inventory, sample_card(1), at(1));
    let expected = ["GPU-0 Healthy", "GPU-1 Unhealthy"];
    assert_eq!(states(&mut inventory, at(1)), expected);
    inventory
}

#[test]
fn nothing_to_keep_is_no_file() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    inventory.next_snapshot(at(0));
    assert_eq!(inventory.checkpoint(at(0)), None);
}

#[test]
fn a_broken_card_is_broken_from_the_first_snapshot_on() {
    let mut next = restarted(&mut broken(), "this boot", at(2));
    see(
        &mut next,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(3),
    );
    let (first, changes) = next_changes(&mut next, at(3));
    assert_eq!(first.devices[1].verdict.state, State::Unhealthy);
    assert_eq!(changes, [], "it is no news");
    assert_eq!(next.history.iter().count(), 1, "the history goes on");
}

#[test]
fn a_start_of_the_node_ends_what_needed_a_reset_and_is_told() {
    let mut next = restarted(&mut broken(), "next boot", at(2));
    see(
        &mut next,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(3),
    );
    let (_, changes) = next_changes(&mut next, at(3));
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].to, State::Healthy);
}

#[test]
fn a_cordon_outlives_a_start_of_the_node() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    cordon(&mut inventory, &sample_card(0), at(1));
    let mut next = restarted(&mut inventory, "next boot", at(2));
    see(&mut next, backend_state(vec![sample_card(0)]), at(3));
    assert_eq!(states(&mut next, at(3)), ["GPU-0 Maintenance"]);
}

#[test]
fn what_is_known_of_a_device_that_is_not_there_is_kept_on() {
    let mut first = inventory();
    see(
        &mut first,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    cordon(&mut first, &sample_card(1), at(1));
    first.next_snapshot(at(1));
    let mut second = restarted(&mut first, "next boot", at(2));
    see(&mut second, backend_state(vec![sample_card(0)]), at(3));
    xid(&mut second, sample_card(0), at(4));
    assert_eq!(states(&mut second, at(4)), ["GPU-0 Unhealthy"]);
    let mut third = restarted(&mut second, "next boot", at(5));
    see(
        &mut third,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(6),
    );
    let expected = ["GPU-0 Unhealthy", "GPU-1 Maintenance"];
    assert_eq!(states(&mut third, at(6)), expected);
}

#[test]
fn a_card_that_was_forgotten_and_comes_back_is_still_cordoned() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    cordon(&mut inventory, &sample_card(1), at(1));
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(2));
    assert_eq!(states(&mut inventory, at(400)), ["GPU-0 Healthy"]);
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(401),
    );
    let expected = ["GPU-0 Healthy", "GPU-1 Maintenance"];
    assert_eq!(states(&mut inventory, at(401)), expected);
}

#[test]
fn a_lost_card_that_cannot_be_read_stays_listed() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1), sample_partition(1, 0)]),
        at(0),
    );
    let without = || {
        let mut without = backend_state(vec![sample_card(0)]);
        without.backend.unreadable.push(Unreadable {
            card: sample_card(1).card_ref().unwrap(),
            failure: lost_call(),
        });
        without
    };
    see(&mut inventory, without(), at(1));
    inventory.next_snapshot(at(1));
    let mut next = restarted(&mut inventory, "this boot", at(2));
    assert_eq!(states(&mut next, at(2)), [""; 0], "nobody has looked");
    see(&mut next, without(), at(3));
    let expected = ["GPU-0 Healthy", "GPU-1 Unhealthy", "MIG-1-0 Unhealthy"];
    assert_eq!(states(&mut next, at(3)), expected);
}

#[test]
fn a_mig_device_that_was_taken_apart_meanwhile_is_not_listed() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_partition(0, 0)]),
        at(0),
    );
    xid(&mut inventory, sample_partition(0, 0), at(1));
    inventory.next_snapshot(at(1));
    let mut next = restarted(&mut inventory, "this boot", at(2));
    see(&mut next, backend_state(vec![sample_card(0)]), at(3));
    assert_eq!(states(&mut next, at(3)), ["GPU-0 Healthy"]);
}

fn released(until: Now) -> probe::Releases {
    let release = probe::ReleaseStatus {
        until: until.wall,
        own: false,
        closed: true,
    };
    probe::Releases {
        all: Some(release),
        cards: BTreeMap::new(),
    }
}

#[test]
fn a_driver_that_was_loaded_anew_during_a_release_and_a_restart_ends_what_needed_a_reset() {
    let mut inventory = inventory();
    see(&mut inventory, loaded(vec![sample_card(0)], 1), at(0));
    xid(&mut inventory, sample_card(0), at(1));
    let mut picture = loaded(Vec::new(), 1);
    picture.released = released(at(600));
    see(&mut inventory, picture, at(2));
    assert_eq!(states(&mut inventory, at(2)), ["GPU-0 Maintenance"]);
    let mut next = restarted(&mut inventory, "this boot", at(3));
    let mut starting = backend_state(Vec::new());
    starting.backend.phase = Phase::Starting;
    starting.released = released(at(600));
    see(&mut next, starting, at(4));
    assert_eq!(states(&mut next, at(4)), ["GPU-0 Maintenance"]);
    see(&mut next, loaded(vec![sample_card(0)], 2), at(5));
    assert_eq!(states(&mut next, at(5)), ["GPU-0 Healthy"]);
}

#[test]
fn a_driver_that_was_loaded_anew_ends_what_is_kept_of_a_card_that_went() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        loaded(vec![sample_card(0), sample_card(1)], 1),
        at(0),
    );
    xid(&mut inventory, sample_card(1), at(1));
    let mut gone = loaded(vec![sample_card(0)], 1);
    gone.backend.phase = Phase::NoDriver;
    see(&mut inventory, gone, at(2));
    inventory.next_snapshot(at(400));
    see(&mut inventory, loaded(vec![sample_card(0)], 2), at(401));
    see(
        &mut inventory,
        loaded(vec![sample_card(0), sample_card(1)], 2),
        at(402),
    );
    let expected = ["GPU-0 Healthy", "GPU-1 Healthy"];
    assert_eq!(states(&mut inventory, at(402)), expected);
}

#[test]
fn how_often_trouble_began_is_kept_also_where_the_verdict_stays() {
    let mut policy = policy();
    policy.health.passes = 3;
    let mut inventory = Inventory::new(&policy, "this boot".to_owned());
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    see(&mut inventory, backend_state(Vec::new()), at(1));
    inventory.next_snapshot(at(1));
    assert!(inventory.checkpoint(at(1)).is_some());
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(2));
    inventory.next_snapshot(at(2));
    inventory.checkpoint(at(2));
    see(&mut inventory, backend_state(Vec::new()), at(3));
    inventory.next_snapshot(at(3));
    assert!(inventory.checkpoint(at(3)).is_some(), "it began again");
}

#[test]
fn a_start_of_the_node_ends_a_release() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    let mut picture = backend_state(Vec::new());
    picture.released = released(at(600));
    see(&mut inventory, picture, at(1));
    assert_eq!(states(&mut inventory, at(1)), ["GPU-0 Maintenance"]);
    let state = inventory.checkpoint(at(2)).unwrap();
    let next = Inventory::new(&policy(), "next boot".to_owned());
    assert!(!next.is_of_this_boot(&state.health));
    inventory.dirty = true;
    let mut next = restarted(&mut inventory, "next boot", at(3));
    let unwatched = Some("the probe stopped".to_owned());
    let blind = BackendState {
        unwatched,
        ..backend_state(vec![sample_card(0)])
    };
    see(&mut next, blind, at(4));
    assert_eq!(states(&mut next, at(4)), ["GPU-0 Unknown"]);
}

#[test]
fn what_is_kept_of_a_card_that_is_away_ends_in_time_and_its_facts_with_it() {
    const DAY: u64 = 24 * 3600;
    let mut first = broken();
    let mut second = restarted(&mut first, "this boot", at(2));
    see(&mut second, backend_state(vec![sample_card(0)]), at(3));
    second.next_snapshot(at(3));
    second.next_snapshot(at(1000));
    let kept = |inventory: &mut Inventory, now: Now| {
        inventory.dirty = true;
        let state = inventory.checkpoint(now).unwrap();
        state.health.devices.contains_key(&sample_card(1).id)
    };
    assert!(kept(&mut second, at(29 * DAY)));
    assert!(!kept(&mut second, at(32 * DAY)));

    let mut blind = inventory();
    blind.restore_state(left(&mut broken(), at(2)), at(3));
    blind.dirty = true;
    let state = blind.checkpoint(at(4)).unwrap();
    assert_eq!(state.facts.len(), 1, "it was not healthy");
    blind.dirty = true;
    let state = blind.checkpoint(at(32 * DAY)).unwrap();
    assert_eq!((state.facts.len(), state.health.devices.len()), (0, 0));
}

#[test]
fn a_file_that_does_not_tell_when_a_device_was_seen_counts_from_now_on() {
    const DAY: u64 = 24 * 3600;
    let mut state = left(&mut broken(), at(2));
    for saved in state.health.devices.values_mut() {
        saved.seen = None;
    }
    let mut next = inventory();
    next.restore_state(state, at(100 * DAY));
    let mut devices = |day: u64| {
        next.dirty = true;
        let state = next.checkpoint(at(day * DAY)).unwrap();
        state.health.devices.len()
    };
    assert_eq!((devices(129), devices(131)), (1, 0));
}

#[test]
fn another_file_gets_what_is_known_at_once() {
    let mut inventory = broken();
    assert!(inventory.checkpoint(at(2)).is_some());
    assert_eq!(inventory.checkpoint(at(3)), None);
    inventory.move_out();
    assert!(inventory.checkpoint(at(4)).is_some());
}

#[test]
fn what_is_made_on_a_cordoned_card_is_cordoned_and_after_a_restart_too() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_partition(0, 0)]),
        at(0),
    );
    cordon(&mut inventory, &sample_card(0), at(1));
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_partition(0, 1)]),
        at(2),
    );
    let expected = ["GPU-0 Maintenance", "MIG-0-1 Maintenance"];
    assert_eq!(states(&mut inventory, at(2)), expected);
    let mut next = restarted(&mut inventory, "next boot", at(3));
    see(
        &mut next,
        backend_state(vec![sample_card(0), sample_partition(0, 2)]),
        at(4),
    );
    let expected = ["GPU-0 Maintenance", "MIG-0-2 Maintenance"];
    assert_eq!(states(&mut next, at(4)), expected);
}

#[test]
fn a_cordon_of_a_mig_device_is_for_its_uuid_and_outlives_the_device() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_partition(0, 0)]),
        at(0),
    );
    cordon(&mut inventory, &sample_partition(0, 0), at(1));
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_partition(0, 1)]),
        at(2),
    );
    let expected = ["GPU-0 Healthy", "MIG-0-1 Healthy"];
    assert_eq!(states(&mut inventory, at(2)), expected);
    let mut next = restarted(&mut inventory, "next boot", at(3));
    see(
        &mut next,
        backend_state(vec![sample_card(0), sample_partition(0, 0)]),
        at(4),
    );
    let expected = ["GPU-0 Healthy", "MIG-0-0 Maintenance"];
    assert_eq!(states(&mut next, at(4)), expected);
}
