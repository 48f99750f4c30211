use std::{collections::BTreeMap, time::Duration};

mod keeping;
mod late;
mod ways_back;

use model::{
    CallFailure, CardRef, CauseKind, Companions, Device, Kind, State, StuckCall, Transition,
    Unreadable, names,
    sample::{self, lost_call, sample_card, sample_partition},
};
use probe::{protocol::Message, sample::backend_state};

use super::*;

const GRACE: Duration = Duration::from_secs(300);

/// Policy without a hold-down: a device that is well again is healthy at once.
fn policy() -> HealthPolicy {
    let mut policy = HealthPolicy {
        vendors: nvidia_rules::VENDORS,
        ..HealthPolicy::default()
    };
    policy.health.gone_grace = GRACE;
    policy.health.passes = 1;
    policy.health.hold_down = Duration::ZERO;
    policy
}

fn inventory() -> Inventory {
    Inventory::new(&policy(), "this boot".to_owned())
}

fn at(seconds: u64) -> Now {
    let uptime = Duration::from_secs(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH + uptime,
        uptime,
    }
}

/// Returns a report of a driver in its nth load.
fn loaded(devices: Vec<Device>, nth: u32) -> BackendState {
    let mut sighting = backend_state(devices);
    sighting.backend.driver = Some(sample::loaded_driver(nth));
    sighting
}

fn see(inventory: &mut Inventory, sighting: BackendState, now: Now) {
    inventory.apply_update(Update::State(Box::new(sighting)), now);
}

/// Takes in a message of the cards' backend about one device.
fn tell(inventory: &mut Inventory, message: Message, now: Now) {
    tell_as(inventory, &sample::running_backend().name, message, now);
}

fn tell_as(inventory: &mut Inventory, backend: &str, message: Message, now: Now) {
    inventory.apply_update(Update::of_device(backend, message).unwrap(), now);
}

/// Returns every device with its state, as `GPU-0 Healthy`.
fn states(inventory: &mut Inventory, now: Now) -> Vec<String> {
    inventory.next_snapshot(now);
    let entries = inventory.last.devices.iter();
    entries
        .map(|e| format!("{} {}", e.device.id, e.verdict.state))
        .collect()
}

/// Returns the next snapshot, and the changes of verdicts in it.
fn next_changes(inventory: &mut Inventory, now: Now) -> (Arc<Snapshot>, Vec<Transition>) {
    let before = inventory.history.iter().count();
    let snapshot = inventory.next_snapshot(now).unwrap();
    let changes = inventory.history.iter().skip(before).cloned();
    (snapshot, changes.collect())
}

/// Returns a report of another backend.
fn of_company(devices: Vec<Device>) -> BackendState {
    let mut sighting = backend_state(devices);
    "company".clone_into(&mut sighting.backend.name);
    sighting
}

#[test]
fn a_device_with_the_id_of_another_backends_is_left_out_and_said_so() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    let own = Device::bare_card("company", "c0");
    let stolen = Device::bare_card("company", sample_card(0).id);
    see(&mut inventory, of_company(vec![own, stolen]), at(1));
    assert_eq!(
        states(&mut inventory, at(1)),
        ["GPU-0 Healthy", "c0 Healthy"]
    );
    let gpu = inventory.last.find_entry("GPU-0").unwrap();
    assert_eq!(gpu.device.vendor, "nvidia");
    let company = inventory.last.find_backend("company").unwrap();
    assert!(
        company.message.contains(
            "GPU-0 of the backend company is left out: the backend nvidia has the device GPU-0"
        ),
        "{}",
        company.message
    );
}

/// Returns the event of a card that fell off the bus (XID 79).
fn lost_event(device: Device) -> Message {
    Message::Event(Event {
        device: device.id,
        at: at(1).wall,
        code: nvidia_rules::xid::xid_code(79),
    })
}

#[test]
fn a_backends_word_about_a_device_of_another_does_not_count() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    let sealed = r#"{"type":"checkup","device":"GPU-0","reading":{"values":{"working":{}},
        "conditions":[{"name":"self-test","state":"critical","reason":"sealed"}]}}"#;
    let sealed = || Message::parse_line(sealed).unwrap().unwrap();
    for message in [
        sealed(),
        lost_event(sample_card(0)),
        lost_event(sample_card(1)),
    ] {
        tell_as(&mut inventory, "company", message, at(1));
    }
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(2),
    );
    assert_eq!(
        states(&mut inventory, at(2)),
        ["GPU-0 Healthy", "GPU-1 Healthy"],
        "also where the device was met after the word"
    );
    assert_eq!(inventory.told_foreign.len(), 1, "the log has it once");
    tell(&mut inventory, sealed(), at(3));
    assert_eq!(
        states(&mut inventory, at(3)),
        ["GPU-0 Unhealthy", "GPU-1 Healthy"]
    );
}

/// A card that fell off the bus is in no report when its XID comes.
#[test]
fn a_device_that_is_gone_is_told_the_events_of_its_backend() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(1));
    tell(&mut inventory, lost_event(sample_card(1)), at(2));
    let snapshot = inventory.next_snapshot(at(2)).unwrap();
    let mut causes = snapshot.find_entry("GPU-1").unwrap().verdict.causes.iter();
    assert!(causes.any(|cause| cause.kind == CauseKind::Event));
}

#[test]
fn a_backend_that_retires_takes_its_devices_along_and_keeps_their_cordons() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    let picture = || of_company(vec![Device::bare_card("company", "c0")]);
    see(&mut inventory, picture(), at(0));
    let cordon = DeviceChange::Cordon {
        devices: vec![DeviceId::new("c0")],
        reason: "fan".to_owned(),
    };
    inventory.apply_change(&cordon, at(1));
    inventory.apply_update(Update::Retired("company".to_owned()), at(2));
    assert_eq!(states(&mut inventory, at(2)), ["GPU-0 Healthy"]);
    assert!(inventory.last.find_backend("company").is_none());
    see(&mut inventory, picture(), at(3));
    assert_eq!(
        states(&mut inventory, at(3)),
        ["GPU-0 Healthy", "c0 Maintenance"]
    );
}

#[test]
fn a_part_of_another_backends_card_is_left_out() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    see(
        &mut inventory,
        of_company(vec![sample_partition(0, 0)]),
        at(1),
    );
    assert_eq!(states(&mut inventory, at(1)), ["GPU-0 Healthy"]);
}

#[test]
fn what_is_kept_of_a_device_is_not_for_another_backends_device_of_its_id() {
    let mut first = inventory();
    see(&mut first, backend_state(vec![sample_card(0)]), at(0));
    let cordon = DeviceChange::Cordon {
        devices: vec![sample_card(0).id],
        reason: "fan".to_owned(),
    };
    first.apply_change(&cordon, at(1));
    let left = keeping::left(&mut first, at(1));
    for is_late in [false, true] {
        let mut next = inventory();
        if is_late {
            see(&mut next, of_company(vec![sample_card(0)]), at(2));
        }
        next.restore_state(left.clone(), at(2));
        see(&mut next, of_company(vec![sample_card(0)]), at(3));
        assert_eq!(states(&mut next, at(3)), ["GPU-0 Healthy"]);
    }
    let mut next = inventory();
    next.restore_state(left, at(2));
    see(&mut next, backend_state(vec![sample_card(0)]), at(3));
    assert_eq!(states(&mut next, at(3)), ["GPU-0 Maintenance"]);
}

#[test]
fn a_lost_card_stays_listed_with_its_partitions_and_comes_back() {
    let mut inventory = inventory();
    let all = vec![sample_card(0), sample_card(1), sample_partition(1, 0)];
    see(&mut inventory, backend_state(all.clone()), at(0));
    let mut without = backend_state(vec![sample_card(0)]);
    without.backend.unreadable.push(Unreadable {
        card: sample_card(1).card_ref().unwrap(),
        failure: lost_call(),
    });
    see(&mut inventory, without, at(1));
    let expected = ["GPU-0 Healthy", "GPU-1 Unhealthy", "MIG-1-0 Unhealthy"];
    assert_eq!(states(&mut inventory, at(100_000)), expected);
    see(&mut inventory, backend_state(all), at(100_001));
    let expected = ["GPU-0 Healthy", "GPU-1 Healthy", "MIG-1-0 Healthy"];
    assert_eq!(states(&mut inventory, at(100_001)), expected);
}

#[test]
fn a_card_that_is_gone_is_forgotten_after_the_grace() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(10));
    let expected = ["GPU-0 Healthy", "GPU-1 Unhealthy"];
    assert_eq!(states(&mut inventory, at(309)), expected);
    assert_eq!(states(&mut inventory, at(310)), ["GPU-0 Healthy"]);
}

#[test]
fn a_partition_that_was_taken_apart_is_forgotten_at_once() {
    let mut inventory = inventory();
    let whole = backend_state(vec![
        sample_card(0),
        sample_partition(0, 0),
        sample_partition(0, 1),
    ]);
    see(&mut inventory, whole, at(0));
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_partition(0, 1)]),
        at(1),
    );
    let expected = ["GPU-0 Healthy", "MIG-0-1 Healthy"];
    assert_eq!(states(&mut inventory, at(1)), expected);
}

#[test]
fn a_card_that_fails_to_answer_keeps_its_facts_and_its_partitions() {
    let mut inventory = inventory();
    let mut whole = sample_card(0);
    whole.kind = Kind::Card { partitioned: true };
    see(
        &mut inventory,
        backend_state(vec![whole.clone(), sample_partition(0, 0)]),
        at(0),
    );
    let mut poor = sample_card(0);
    poor.failures.push(CallFailure {
        call: "nvmlDeviceGetMigMode".to_owned(),
        code: "UNKNOWN".to_owned(),
        fatal: false,
    });
    see(&mut inventory, backend_state(vec![poor]), at(1));
    inventory.next_snapshot(at(1));
    let entries = &inventory.last.devices;
    assert_eq!(entries[0].device.kind, whole.kind);
    assert_eq!(entries[0].device.failures.len(), 1);
    assert_eq!(entries[1].device.id.as_str(), "MIG-0-0");
    assert_eq!(entries[1].verdict.state, State::Unknown);
    see(
        &mut inventory,
        backend_state(vec![whole, sample_partition(0, 0)]),
        at(2),
    );
    let expected = ["GPU-0 Healthy", "MIG-0-0 Healthy"];
    assert_eq!(states(&mut inventory, at(2)), expected);
    assert!(inventory.last.devices[0].device.failures.is_empty());
}

#[test]
fn a_failing_call_does_not_hide_what_other_calls_tell() {
    let mut inventory = inventory();
    let failure = CallFailure {
        call: "nvmlDeviceGetMemoryInfo".to_owned(),
        code: "UNKNOWN".to_owned(),
        fatal: false,
    };
    let mut whole = sample_card(0);
    whole.capacity.insert(names::MEMORY, 40 << 30);
    see(&mut inventory, backend_state(vec![whole]), at(0));
    let mut split = sample_card(0);
    split.kind = Kind::Card { partitioned: true };
    split.capacity.clear();
    split.failures.push(failure);
    see(
        &mut inventory,
        backend_state(vec![split, sample_partition(0, 0)]),
        at(1),
    );
    inventory.next_snapshot(at(1));
    let device = &inventory.last.devices[0].device;
    assert_eq!(device.kind, Kind::Card { partitioned: true });
    assert_eq!(device.memory_bytes(), Some(40 << 30));
}

#[test]
fn a_partition_follows_a_card_that_was_lost_after_it_was_read() {
    let mut inventory = inventory();
    let mut dying = sample_card(0);
    dying.failures.push(lost_call());
    see(
        &mut inventory,
        backend_state(vec![dying, sample_partition(0, 0)]),
        at(0),
    );
    let expected = ["GPU-0 Unhealthy", "MIG-0-0 Unhealthy"];
    assert_eq!(states(&mut inventory, at(0)), expected);
}

#[test]
fn partitions_are_kept_while_nobody_looks() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_partition(0, 0)]),
        at(0),
    );
    let mut blind = backend_state(vec![sample_card(0)]);
    blind.unwatched = Some("the probe stopped".to_owned());
    see(&mut inventory, blind, at(1));
    let expected = ["GPU-0 Unknown", "MIG-0-0 Unknown"];
    assert_eq!(states(&mut inventory, at(100_000)), expected);
}

#[test]
fn one_hung_card_is_one_hung_card() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    let mut stuck = backend_state(vec![sample_card(0)]);
    let call = StuckCall {
        call: "nvmlDeviceGetUUID".to_owned(),
        device: "0000:01:00.0".parse().ok(),
        since: at(0).wall,
        work: model::Work::Survey,
    };
    stuck
        .stuck
        .insert(CardRef::Pci(sample_card(1).pci.unwrap()), call);
    see(&mut inventory, stuck, at(1));
    assert_eq!(
        states(&mut inventory, at(2)),
        ["GPU-0 Healthy", "GPU-1 Unknown"]
    );
    assert_eq!(
        states(&mut inventory, at(31)),
        ["GPU-0 Healthy", "GPU-1 Unhealthy"]
    );
}

#[test]
fn an_event_on_a_card_concerns_its_partitions_and_one_on_a_partition_only_that() {
    let mut inventory = inventory();
    let all = vec![
        sample_card(0),
        sample_partition(0, 0),
        sample_partition(0, 1),
        sample_card(1),
        sample_partition(1, 0),
    ];
    see(&mut inventory, backend_state(all), at(0));
    let xid = |device: Device| Event {
        device: device.id,
        at: at(1).wall,
        code: nvidia_rules::xid::xid_code(48),
    };
    tell(
        &mut inventory,
        Message::Event(xid(sample_partition(0, 1))),
        at(1),
    );
    tell(&mut inventory, Message::Event(xid(sample_card(1))), at(1));
    let expected = [
        "GPU-0 Healthy",
        "GPU-1 Unhealthy",
        "MIG-0-0 Healthy",
        "MIG-0-1 Unhealthy",
        "MIG-1-0 Unhealthy",
    ];
    assert_eq!(states(&mut inventory, at(1)), expected);
}

#[test]
fn an_event_that_comes_before_its_device_is_not_lost() {
    let mut inventory = inventory();
    let event = Event {
        device: sample_card(0).id,
        at: at(0).wall,
        code: nvidia_rules::xid::xid_code(79),
    };
    tell(&mut inventory, Message::Event(event), at(0));
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(1),
    );
    let expected = ["GPU-0 Unhealthy", "GPU-1 Healthy"];
    assert_eq!(states(&mut inventory, at(1)), expected);
}

#[test]
fn a_driver_that_went_away_is_the_cause() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    let mut gone = backend_state(Vec::new());
    gone.backend.phase = Phase::NoDriver;
    gone.backend.message = "no libnvidia-ml.so.1".to_owned();
    see(&mut inventory, gone, at(1));
    assert_eq!(states(&mut inventory, at(1)), ["GPU-0 Unhealthy"]);
    let reason = inventory.last.devices[0].verdict.join_evidence();
    assert_eq!(reason, "no libnvidia-ml.so.1");
}

#[test]
fn a_new_config_keeps_what_was_seen() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    tell(
        &mut inventory,
        Message::Event(Event {
            device: sample_card(0).id,
            at: at(1).wall,
            code: nvidia_rules::xid::xid_code(79),
        }),
        at(1),
    );
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(2));
    let mut new = policy();
    new.health.gone_grace = Duration::from_secs(5);
    inventory.set_policy(&new);
    assert_eq!(states(&mut inventory, at(7)), ["GPU-0 Unhealthy"]);
}

#[test]
fn nothing_new_is_no_new_snapshot() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    assert_eq!(inventory.next_snapshot(at(0)).unwrap().generation, 1);
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(5));
    assert!(inventory.next_snapshot(at(5)).is_none());
}

/// Sensor values change all the time; they must not wake the readers of snapshots.
#[test]
fn a_sample_is_no_new_snapshot() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    inventory.next_snapshot(at(0)).unwrap();
    for celsius in 40..44 {
        let telemetry = model::Telemetry {
            temperature_celsius: Some(celsius),
            ..model::Telemetry::default()
        };
        let device = sample_card(0).id;
        let since_reset = model::SinceReset {
            energy_millijoules: Some(u64::from(celsius)),
            ..model::SinceReset::default()
        };
        let sample = Sample {
            device,
            telemetry,
            since_reset,
        };
        tell(&mut inventory, Message::Sample(sample), at(1));
        assert!(inventory.next_snapshot(at(1)).is_none());
    }
}

#[test]
fn what_is_beside_the_devices_outlives_a_restart_of_the_probe() {
    let mut inventory = inventory();
    let mut first = backend_state(vec![sample_card(0)]);
    first.backend.extras.companions =
        Companions::default().with_class(nvidia_rules::companions::IMEX_CHANNEL, [0]);
    see(&mut inventory, first, at(1));
    for phase in [Phase::Failing, Phase::Starting] {
        let mut blind = backend_state(Vec::new());
        blind.backend.phase = phase;
        see(&mut inventory, blind, at(2));
        inventory.next_snapshot(at(2));
    }
    let extras = |inventory: &Inventory| -> Vec<u32> {
        let companions = &inventory.last.backends[0].extras.companions;
        companions
            .list_numbers(nvidia_rules::companions::IMEX_CHANNEL)
            .collect()
    };
    assert_eq!(extras(&inventory), [0]);
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(3));
    inventory.next_snapshot(at(3));
    assert!(
        extras(&inventory).is_empty(),
        "gone once somebody has looked"
    );
}
