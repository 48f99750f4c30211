//! How a device comes back, and what an operator does with it.

use model::{Reading, RecoveryAction, Telemetry, Values, Working};
use probe::Release;

use super::*;

fn sample(inventory: &mut Inventory, device: &Device, now: Now) {
    let sample = Sample {
        device: device.id.clone(),
        telemetry: Telemetry::default(),
    };
    inventory.take(Update::Sample(Box::new(sample)), now);
}

fn check(inventory: &mut Inventory, device: &Device, working: Working, now: Now) {
    let checkup = Checkup {
        device: device.id.clone(),
        reading: Reading {
            values: Values::Working(working),
            unsupported: vec!["fabric".to_owned()],
            failures: Vec::new(),
        },
    };
    inventory.take(Update::Checkup(Box::new(checkup)), now);
}

/// A picture of a driver that was loaded for the nth time.
fn loaded(devices: Vec<Device>, nth: u32) -> Sighting {
    let mut sighting = sighting(devices);
    sighting.backend.driver = Some(model::Driver {
        version: "580".to_owned(),
        cuda: None,
        library: None,
        instance: Some(nth.to_string()),
    });
    sighting
}

fn event(inventory: &mut Inventory, device: &Device, event: EventKind, now: Now) {
    let event = Event {
        device: device.id.clone(),
        at: now.wall,
        event,
    };
    inventory.take(Update::Event(event), now);
}

/// Pictures come only when something changed; samples come with every look.
#[test]
fn the_looks_that_bring_a_card_back_are_counted_by_its_samples() {
    let mut rules = rules();
    rules.health.passes = 3;
    rules.health.hold_down = Duration::from_secs(20);
    let mut inventory = Inventory::new(&rules, String::new());
    see(&mut inventory, sighting(vec![card(0)]), at(0));
    sample(&mut inventory, &card(0), at(0));
    see(&mut inventory, sighting(Vec::new()), at(10));
    assert_eq!(states(&mut inventory, at(10)), ["GPU-0 Unhealthy"]);
    assert!(!inventory.wants_look());
    see(&mut inventory, sighting(vec![card(0)]), at(20));
    sample(&mut inventory, &card(0), at(20));
    assert!(inventory.wants_look());
    sample(&mut inventory, &card(0), at(30));
    assert_eq!(states(&mut inventory, at(39)), ["GPU-0 Unhealthy"]);
    sample(&mut inventory, &card(0), at(40));
    assert_eq!(states(&mut inventory, at(40)), ["GPU-0 Healthy"]);
    assert!(!inventory.wants_look());
}

#[test]
fn a_driver_that_was_loaded_anew_ends_what_needed_a_reset() {
    let mut inventory = inventory();
    see(&mut inventory, loaded(vec![card(0)], 1), at(0));
    event(&mut inventory, &card(0), EventKind::Xid(79), at(1));
    assert_eq!(states(&mut inventory, at(1)), ["GPU-0 Unhealthy"]);
    see(&mut inventory, loaded(vec![card(0)], 1), at(2));
    assert_eq!(states(&mut inventory, at(2)), ["GPU-0 Unhealthy"]);
    see(&mut inventory, loaded(vec![card(0)], 2), at(3));
    assert_eq!(states(&mut inventory, at(3)), ["GPU-0 Healthy"]);
}

#[test]
fn what_a_check_up_finds_on_a_card_takes_its_partitions_too() {
    let mut inventory = inventory();
    let all = vec![card(0), partition(0, 0), partition(0, 1)];
    see(&mut inventory, sighting(all), at(0));
    let asks = Working {
        recovery: Some(RecoveryAction::Reset),
        ..Working::default()
    };
    check(&mut inventory, &card(0), asks, at(1));
    let out = ["GPU-0 Unhealthy", "MIG-0-0 Unhealthy", "MIG-0-1 Unhealthy"];
    assert_eq!(states(&mut inventory, at(1)), out);
    let reason = inventory.last.devices[2].verdict.reason();
    assert_eq!(reason, inventory.last.devices[0].verdict.reason());
    let unsupported = inventory.details().unsupported;
    assert_eq!(unsupported.len(), 1, "{unsupported:?}");
}

#[test]
fn memory_errors_that_are_counted_for_each_partition_stay_with_it() {
    let mut inventory = inventory();
    let all = vec![card(0), partition(0, 0), partition(0, 1)];
    see(&mut inventory, sighting(all), at(0));
    let errors = |count| Working {
        ecc_uncorrected: Some(count),
        ..Working::default()
    };
    check(&mut inventory, &card(0), errors(2), at(1));
    check(&mut inventory, &partition(0, 0), errors(0), at(1));
    check(&mut inventory, &partition(0, 1), errors(2), at(1));
    let expected = ["GPU-0 Unhealthy", "MIG-0-0 Healthy", "MIG-0-1 Unhealthy"];
    assert_eq!(states(&mut inventory, at(1)), expected);
}

#[test]
fn a_cordoned_card_takes_the_partitions_that_are_made_later_too() {
    let mut inventory = inventory();
    see(&mut inventory, sighting(vec![card(0)]), at(0));
    let cordon = What::Cordon {
        devices: vec![card(0).id],
        reason: "a fan".to_owned(),
    };
    inventory.obey(&cordon, at(1));
    see(
        &mut inventory,
        sighting(vec![card(0), partition(0, 0)]),
        at(2),
    );
    let out = ["GPU-0 Maintenance", "MIG-0-0 Maintenance"];
    assert_eq!(states(&mut inventory, at(2)), out);
    assert!(inventory.last.devices[1].verdict.reason().contains("a fan"));
    let uncordon = What::Uncordon {
        devices: vec![card(0).id],
    };
    inventory.obey(&uncordon, at(3));
    let well = ["GPU-0 Healthy", "MIG-0-0 Healthy"];
    assert_eq!(states(&mut inventory, at(3)), well);
    let changes = inventory.history.iter().count();
    assert_eq!(changes, 4, "each device went and came back");
}

#[test]
fn a_released_card_is_in_maintenance_and_not_gone() {
    let mut inventory = inventory();
    see(&mut inventory, sighting(vec![card(0), card(1)]), at(0));
    let mut picture = sighting(vec![card(0)]);
    let release = Release {
        until: at(600).wall,
        closed: true,
    };
    let which = CardRef::Pci(card(1).pci.unwrap());
    picture.released.cards.insert(which, release);
    see(&mut inventory, picture, at(1));
    let expected = ["GPU-0 Healthy", "GPU-1 Maintenance"];
    assert_eq!(states(&mut inventory, at(1)), expected);
    see(&mut inventory, sighting(vec![card(0), card(1)]), at(2));
    let expected = ["GPU-0 Healthy", "GPU-1 Healthy"];
    assert_eq!(states(&mut inventory, at(2)), expected);
}

#[test]
fn a_device_that_was_not_clean_is_withheld_for_a_while() {
    let mut inventory = inventory();
    see(&mut inventory, sighting(vec![card(0)]), at(0));
    let residue = What::Residue {
        device: card(0).id,
        evidence: "process 1 (x)".to_owned(),
    };
    inventory.obey(&residue, at(1));
    assert_eq!(states(&mut inventory, at(2)), ["GPU-0 Unhealthy"]);
    assert_eq!(states(&mut inventory, at(60)), ["GPU-0 Healthy"]);
    inventory.obey(&residue, at(61));
    inventory.obey(&What::Clean { device: card(0).id }, at(62));
    assert_eq!(states(&mut inventory, at(62)), ["GPU-0 Healthy"]);
}
