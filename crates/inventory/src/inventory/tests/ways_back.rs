//! Recovery of devices, and orders of an operator.

use model::{
    Condition, ConditionState, Reading, RecoveryAction, SinceReset, Telemetry, Values, Working,
};
use probe::ReleaseStatus;

use super::*;

fn sample(inventory: &mut Inventory, device: &Device, now: Now) {
    let sample = Sample {
        device: device.id.clone(),
        telemetry: Telemetry::default(),
        since_reset: SinceReset::default(),
    };
    tell(inventory, Message::Sample(sample), now);
}

fn check(inventory: &mut Inventory, device: &Device, working: Working, now: Now) {
    let checkup = Checkup {
        device: device.id.clone(),
        reading: Reading {
            values: Values::Working(working),
            conditions: Vec::new(),
            unsupported: vec!["fabric".to_owned()],
            failures: Vec::new(),
        },
    };
    tell(inventory, Message::Checkup(checkup), now);
}

/// A condition of a card takes its partitions out with it, and no other card.
#[test]
fn a_condition_takes_a_card_and_its_partitions_out_until_it_is_ok() {
    let mut inventory = inventory();
    let devices = vec![sample_card(0), sample_partition(0, 0), sample_card(1)];
    see(&mut inventory, backend_state(devices), at(0));
    let tell = |inventory: &mut Inventory, state, now| {
        let condition = Condition {
            name: "ras.umc".parse().unwrap(),
            state,
            reason: "3 errors".to_owned(),
            ends_with_reset: false,
            grace_millis: 0,
        };
        let checkup = Checkup {
            device: sample_card(0).id,
            reading: Reading {
                values: Values::Working(Working::default()),
                conditions: vec![condition],
                unsupported: Vec::new(),
                failures: Vec::new(),
            },
        };
        tell(inventory, Message::Checkup(checkup), now);
    };
    tell(&mut inventory, ConditionState::Critical, at(1));
    let out = ["GPU-0 Unhealthy", "GPU-1 Healthy", "MIG-0-0 Unhealthy"];
    assert_eq!(states(&mut inventory, at(2)), out);
    tell(&mut inventory, ConditionState::Ok, at(3));
    let well = ["GPU-0 Healthy", "GPU-1 Healthy", "MIG-0-0 Healthy"];
    assert_eq!(states(&mut inventory, at(4)), well);
}

fn event(inventory: &mut Inventory, device: &Device, code: EventCode, now: Now) {
    let event = Event {
        device: device.id.clone(),
        at: now.wall,
        code,
    };
    tell(inventory, Message::Event(event), now);
}

/// A partition has no counters of its own: it is reset with its card.
#[test]
fn a_reset_between_two_looks_ends_what_was_told_of_the_card_and_of_its_partitions() {
    let mut inventory = inventory();
    let devices = vec![sample_card(0), sample_partition(0, 0), sample_card(1)];
    see(&mut inventory, backend_state(devices), at(0));
    let count = |inventory: &mut Inventory, joules: u64, now| {
        let sample = Sample {
            device: sample_card(0).id,
            telemetry: Telemetry::default(),
            since_reset: SinceReset {
                energy_millijoules: Some(joules * 1000),
                ..SinceReset::default()
            },
        };
        tell(inventory, Message::Sample(sample), now);
    };
    count(&mut inventory, 90_000, at(1));
    for device in [sample_card(0), sample_partition(0, 0), sample_card(1)] {
        event(
            &mut inventory,
            &device,
            nvidia_rules::xid::xid_code(79),
            at(2),
        );
    }
    let out = ["GPU-0 Unhealthy", "GPU-1 Unhealthy", "MIG-0-0 Unhealthy"];
    assert_eq!(states(&mut inventory, at(3)), out);
    count(&mut inventory, 90_100, at(4));
    assert_eq!(states(&mut inventory, at(4)), out);
    count(&mut inventory, 100, at(10));
    let back = ["GPU-0 Healthy", "GPU-1 Unhealthy", "MIG-0-0 Healthy"];
    assert_eq!(states(&mut inventory, at(10)), back);
}

/// Reports come only when something changed; samples come with every look.
#[test]
fn the_looks_that_bring_a_card_back_are_counted_by_its_samples() {
    let mut policy = policy();
    policy.health.passes = 3;
    policy.health.hold_down = Duration::from_secs(20);
    let mut inventory = Inventory::new(&policy, String::new());
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    sample(&mut inventory, &sample_card(0), at(0));
    see(&mut inventory, backend_state(Vec::new()), at(10));
    assert_eq!(states(&mut inventory, at(10)), ["GPU-0 Unhealthy"]);
    assert!(inventory.wanting_look(at(10)).is_empty());
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(20));
    sample(&mut inventory, &sample_card(0), at(20));
    assert!(inventory.wanting_look(at(20)).contains("nvidia"));
    sample(&mut inventory, &sample_card(0), at(30));
    assert_eq!(states(&mut inventory, at(39)), ["GPU-0 Unhealthy"]);
    sample(&mut inventory, &sample_card(0), at(40));
    assert_eq!(states(&mut inventory, at(40)), ["GPU-0 Healthy"]);
    assert!(inventory.wanting_look(at(40)).is_empty());
}

#[test]
fn a_driver_that_was_loaded_anew_ends_what_needed_a_reset() {
    let mut inventory = inventory();
    see(&mut inventory, loaded(vec![sample_card(0)], 1), at(0));
    event(
        &mut inventory,
        &sample_card(0),
        nvidia_rules::xid::xid_code(79),
        at(1),
    );
    assert_eq!(states(&mut inventory, at(1)), ["GPU-0 Unhealthy"]);
    see(&mut inventory, loaded(vec![sample_card(0)], 1), at(2));
    assert_eq!(states(&mut inventory, at(2)), ["GPU-0 Unhealthy"]);
    see(&mut inventory, loaded(vec![sample_card(0)], 2), at(3));
    assert_eq!(states(&mut inventory, at(3)), ["GPU-0 Healthy"]);
}

#[test]
fn what_a_check_up_finds_on_a_card_takes_its_partitions_too() {
    let mut inventory = inventory();
    let all = vec![
        sample_card(0),
        sample_partition(0, 0),
        sample_partition(0, 1),
    ];
    see(&mut inventory, backend_state(all), at(0));
    let asks = Working {
        recovery: Some(RecoveryAction::Reset),
        ..Working::default()
    };
    check(&mut inventory, &sample_card(0), asks, at(1));
    let out = ["GPU-0 Unhealthy", "MIG-0-0 Unhealthy", "MIG-0-1 Unhealthy"];
    assert_eq!(states(&mut inventory, at(1)), out);
    let reason = inventory.last.devices[2].verdict.join_evidence();
    assert_eq!(reason, inventory.last.devices[0].verdict.join_evidence());
    let unsupported = inventory.build_details().unsupported_by_device;
    assert_eq!(unsupported.len(), 1, "{unsupported:?}");
}

#[test]
fn memory_errors_that_are_counted_for_each_partition_stay_with_it() {
    let mut inventory = inventory();
    let all = vec![
        sample_card(0),
        sample_partition(0, 0),
        sample_partition(0, 1),
    ];
    see(&mut inventory, backend_state(all), at(0));
    let errors = |count| Working {
        ecc_uncorrected: Some(count),
        ..Working::default()
    };
    check(&mut inventory, &sample_card(0), errors(2), at(1));
    check(&mut inventory, &sample_partition(0, 0), errors(0), at(1));
    check(&mut inventory, &sample_partition(0, 1), errors(2), at(1));
    let expected = ["GPU-0 Unhealthy", "MIG-0-0 Healthy", "MIG-0-1 Unhealthy"];
    assert_eq!(states(&mut inventory, at(1)), expected);
}

#[test]
fn a_cordoned_card_takes_the_partitions_that_are_made_later_too() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    let cordon = DeviceChange::Cordon {
        devices: vec![sample_card(0).id],
        reason: "a fan".to_owned(),
    };
    inventory.apply_change(&cordon, at(1));
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_partition(0, 0)]),
        at(2),
    );
    let out = ["GPU-0 Maintenance", "MIG-0-0 Maintenance"];
    assert_eq!(states(&mut inventory, at(2)), out);
    assert!(
        inventory.last.devices[1]
            .verdict
            .join_evidence()
            .contains("a fan")
    );
    let uncordon = DeviceChange::Uncordon {
        devices: vec![sample_card(0).id],
    };
    inventory.apply_change(&uncordon, at(3));
    let well = ["GPU-0 Healthy", "MIG-0-0 Healthy"];
    assert_eq!(states(&mut inventory, at(3)), well);
    let changes = inventory.history.iter().count();
    assert_eq!(changes, 4, "each device went and came back");
}

#[test]
fn a_released_card_is_in_maintenance_and_not_gone() {
    let mut inventory = inventory();
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(0),
    );
    let mut picture = backend_state(vec![sample_card(0)]);
    let release = ReleaseStatus {
        until: at(600).wall,
        own: false,
        closed: true,
    };
    let which = CardRef::Pci(sample_card(1).pci.unwrap());
    picture.released.cards.insert(which, release);
    see(&mut inventory, picture, at(1));
    let expected = ["GPU-0 Healthy", "GPU-1 Maintenance"];
    assert_eq!(states(&mut inventory, at(1)), expected);
    see(
        &mut inventory,
        backend_state(vec![sample_card(0), sample_card(1)]),
        at(2),
    );
    let expected = ["GPU-0 Healthy", "GPU-1 Healthy"];
    assert_eq!(states(&mut inventory, at(2)), expected);
}

/// Returns a report in which everything is released until the tenth second.
fn released(sighting: BackendState) -> BackendState {
    let mut picture = sighting;
    picture.released.all = Some(ReleaseStatus {
        until: at(10).wall,
        own: false,
        closed: true,
    });
    picture
}

#[test]
fn a_card_is_not_healthy_because_its_release_is_over() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    see(&mut inventory, released(backend_state(Vec::new())), at(1));
    let out = ["GPU-0 Maintenance"];
    assert_eq!(states(&mut inventory, at(11)), out, "nobody has looked");
    let mut stuck = backend_state(Vec::new());
    stuck.backend.phase = Phase::DriverFailed;
    stuck.driver_stuck = Some(StuckCall {
        call: "nvmlInit_v2".to_owned(),
        device: None,
        since: at(11).wall,
        work: model::Work::Survey,
    });
    see(&mut inventory, stuck, at(20));
    assert_eq!(states(&mut inventory, at(100)), out);
    let causes = &inventory.last.devices[0].verdict.causes;
    assert!(causes.iter().any(|c| c.kind == CauseKind::NotAnswering));
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(101));
    assert_eq!(states(&mut inventory, at(101)), ["GPU-0 Healthy"]);
}

#[test]
fn a_probe_that_is_started_anew_says_nothing_before_it_has_looked() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    assert_eq!(states(&mut inventory, at(0)), ["GPU-0 Healthy"]);
    let mut starting = backend_state(Vec::new());
    starting.backend.phase = Phase::Starting;
    see(&mut inventory, starting.clone(), at(1));
    assert_eq!(states(&mut inventory, at(1)), ["GPU-0 Healthy"]);
    starting.unwatched = Some("the probe stopped".to_owned());
    see(&mut inventory, starting, at(2));
    assert_eq!(states(&mut inventory, at(2)), ["GPU-0 Unknown"]);
}

#[test]
fn a_partition_is_out_with_its_card_where_both_have_the_same_trouble() {
    let mut inventory = inventory();
    let all = vec![sample_card(0), sample_partition(0, 0)];
    see(&mut inventory, backend_state(all), at(0));
    let mut stuck = backend_state(Vec::new());
    let call = StuckCall {
        call: "nvmlDeviceGetUUID".to_owned(),
        device: "0000:00:00.0".parse().ok(),
        since: at(0).wall,
        work: model::Work::Survey,
    };
    stuck
        .stuck
        .insert(CardRef::Pci(sample_card(0).pci.unwrap()), call);
    see(&mut inventory, stuck, at(1));
    // The partition gets an empty record, so that its finding is younger than the card's.
    let partition = inventory.known.get_mut(&sample_partition(0, 0).id).unwrap();
    partition.record = health::DeviceRecord::default();
    let failure = lost_call();
    let untold = health::Observation::Unreported(&failure);
    partition.record.observe(untold, &inventory.policy, at(30));
    let expected = ["GPU-0 Unhealthy", "MIG-0-0 Unhealthy"];
    assert_eq!(states(&mut inventory, at(32)), expected);
}

#[test]
fn a_device_that_was_not_clean_is_withheld_for_a_while() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    let residue = DeviceChange::Residue {
        device: sample_card(0).id,
        evidence: "process 1 (x)".to_owned(),
    };
    inventory.apply_change(&residue, at(1));
    assert_eq!(states(&mut inventory, at(2)), ["GPU-0 Unhealthy"]);
    assert_eq!(states(&mut inventory, at(60)), ["GPU-0 Healthy"]);
    inventory.apply_change(&residue, at(61));
    inventory.apply_change(
        &DeviceChange::Clean {
            device: sample_card(0).id,
        },
        at(62),
    );
    assert_eq!(states(&mut inventory, at(62)), ["GPU-0 Healthy"]);
}

#[test]
fn a_device_is_given_back_when_whoever_was_on_it_has_left() {
    let mut inventory = inventory();
    see(&mut inventory, backend_state(vec![sample_card(0)]), at(0));
    let look = |inventory: &mut Inventory, pids: &[u32], now| {
        let process = |pid: &u32| model::Process {
            pid: *pid,
            name: None,
            memory_bytes: None,
        };
        let telemetry = Telemetry {
            processes: Some(pids.iter().map(process).collect()),
            ..Telemetry::default()
        };
        let device = sample_card(0).id;
        let sample = Sample {
            device,
            telemetry,
            since_reset: SinceReset::default(),
        };
        tell(inventory, Message::Sample(sample), now);
    };
    look(&mut inventory, &[7], at(1));
    let residue = DeviceChange::Residue {
        device: sample_card(0).id,
        evidence: "process 7 (x)".to_owned(),
    };
    inventory.apply_change(&residue, at(2));
    look(&mut inventory, &[7], at(3));
    assert_eq!(states(&mut inventory, at(3)), ["GPU-0 Unhealthy"]);
    look(&mut inventory, &[], at(4));
    assert_eq!(states(&mut inventory, at(4)), ["GPU-0 Healthy"]);
    // A residue from a failed command does not depend on processes.
    inventory.apply_change(&residue, at(5));
    look(&mut inventory, &[], at(6));
    assert_eq!(states(&mut inventory, at(6)), ["GPU-0 Unhealthy"]);
}
