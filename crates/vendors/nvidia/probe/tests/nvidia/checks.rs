//! Check-ups: the values of each tier on each machine, and that they follow the hardware.

mod performing;
mod trend;
mod working;

use model::{ConditionState, Reading, RecoveryAction, Tier, Values};
use serde_json::Value;

use super::*;

const TIERS: [Tier; 3] = [Tier::Working, Tier::Performing, Tier::Trend];

/// Profile, sensor, and the value that the sensor is set to.
type Set = (&'static str, &'static str, u64);
/// Field of a reading, and its expected value as JSON.
type Fact = (&'static str, &'static str);

/// Returns the reading of a tier for the device with this id.
fn reading(backend: &mut NvmlBackend, tier: Tier, id: &str) -> Reading {
    let mut all = backend.read_checkups(tier, true).into_iter();
    let found = all.find(|checkup| checkup.device.as_str() == id);
    found
        .unwrap_or_else(|| panic!("no check-up of {id}"))
        .reading
}

fn working(backend: &mut NvmlBackend, id: &str) -> model::Working {
    match reading(backend, Tier::Working, id).values {
        Values::Working(working) => working,
        other => panic!("{other:?}"),
    }
}

/// Returns the fields of a reading with their values.
fn fields(reading: &Reading) -> serde_json::Map<String, Value> {
    let mut reading = serde_json::to_value(reading).unwrap();
    let conditions = reading["conditions"].take();
    let Value::Object(values) = reading["values"].take() else {
        panic!("the values of a reading are an object");
    };
    let facts = values.into_iter().flat_map(|(_, facts)| match facts {
        Value::Object(facts) => facts,
        other => panic!("{other}"),
    });
    let conditions = (!conditions.is_null()).then(|| ("conditions".to_owned(), conditions));
    facts.chain(conditions).collect()
}

/// Returns the number of facts of a tier; all its conditions are one.
fn size(tier: Tier) -> usize {
    match tier {
        Tier::Working => 5,
        Tier::Performing => 11,
        Tier::Trend => 4,
        Tier::Present | Tier::Deep => 0,
    }
}

/// Sets a sensor of the first card. The fact must follow it there and must not change on another
/// card.
fn follows((profile, sensor, value): Set, tier: Tier, (field, expected): Fact) {
    let rig = Rig::new(profile);
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    let ids = ids(&report);
    let expected: Value = serde_json::from_str(expected).unwrap();
    let before = fields(&reading(&mut backend, tier, ids[0]))[field].clone();
    assert_ne!(before, expected);
    rig.node.set_sensor(&target("0"), sensor, value).unwrap();
    assert_eq!(
        fields(&reading(&mut backend, tier, ids[0]))[field],
        expected
    );
    if let Some(other) = ids.get(1) {
        assert_eq!(fields(&reading(&mut backend, tier, other))[field], before);
    }
}

#[test]
fn on_every_machine_each_fact_is_read_or_named_as_not_supported_and_all_is_well() {
    let profiles = sim::profile::names();
    assert!(profiles.len() > 10, "{profiles:?}");
    for profile in profiles {
        if profile == "tegra" {
            continue;
        }
        let rig = Rig::new(profile);
        let mut backend = rig.backend();
        let report = backend.survey_devices();
        for tier in TIERS {
            for checkup in backend.read_checkups(tier, true) {
                let reading = &checkup.reading;
                let what = format!("{profile} {} {reading:?}", checkup.device);
                let kind = &report
                    .devices
                    .iter()
                    .find(|device| device.id == checkup.device)
                    .unwrap_or_else(|| panic!("{what}"))
                    .kind;
                assert_eq!(reading.values.tier(), tier, "{what}");
                assert!(reading.failures.is_empty(), "{what}");
                let found = fields(reading);
                if matches!(kind, Kind::Card { .. }) {
                    assert_eq!(
                        found.len() + reading.unsupported.len(),
                        size(tier),
                        "{what}"
                    );
                }
                for name in &reading.unsupported {
                    assert!(!found.contains_key(name), "{what}");
                }
                match &reading.values {
                    Values::Working(working) => {
                        assert_eq!(working.ecc_uncorrected.unwrap_or(0), 0, "{what}");
                        assert_ne!(working.repair_pending, Some(true), "{what}");
                        let mut conditions = reading.conditions.iter();
                        let is_well = conditions.all(|c| c.state == ConditionState::Ok);
                        assert!(is_well, "{what}");
                        let action = working.recovery.unwrap_or(RecoveryAction::None);
                        assert_eq!(action, RecoveryAction::None, "{what}");
                    }
                    Values::Performing(performing) => {
                        assert_eq!(performing.throttled, Some(Vec::new()), "{what}");
                        assert_eq!(performing.pcie_width, performing.pcie_width_max, "{what}");
                        assert_eq!(performing.link_errors.unwrap_or(0), 0, "{what}");
                        assert_eq!(performing.links_down.unwrap_or(0), 0, "{what}");
                        let (now, limit) =
                            (performing.temperature_celsius, performing.slowdown_celsius);
                        assert!(now.unwrap() < limit.unwrap(), "{what}");
                    }
                    Values::Trend(_) => {}
                    other @ Values::Deep(_) => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_driver_without_the_calls_lacks_the_facts_and_nothing_fails() {
    let rig = Rig::new("dgx-a100");
    rig.remove_symbols(&[
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetRetiredPagesPendingStatus",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetPcieReplayCounter",
    ]);
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    let id = ids(&report)[0];
    let working = reading(&mut backend, Tier::Working, id);
    let missing = ["fabric", "recovery", "repair_failed", "repair_pending"];
    assert_eq!(working.unsupported, missing);
    assert_eq!(fields(&working)["ecc_uncorrected"], 0);
    let performing = reading(&mut backend, Tier::Performing, id);
    assert_eq!(performing.unsupported, ["link_errors"]);
    assert_eq!(
        fields(&performing)["throttled"],
        serde_json::json!([]),
        "by its older name"
    );
    let trend = reading(&mut backend, Tier::Trend, id);
    assert_eq!(
        trend.unsupported,
        ["energy_millijoules", "pcie_replays", "repaired_rows"]
    );
    for reading in [working, performing, trend] {
        assert_eq!(reading.failures, []);
    }
}

#[test]
fn a_call_that_fails_is_named_and_the_others_are_made() {
    let rig = Rig::new("t4");
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    rig.node
        .set_fault("nvmlDeviceGetPcieReplayCounter", None, UNKNOWN)
        .unwrap();
    let trend = reading(&mut backend, Tier::Trend, ids(&report)[0]);
    assert_eq!(trend.failures.len(), 1);
    assert_eq!(trend.failures[0].call, "nvmlDeviceGetPcieReplayCounter");
    assert_eq!(trend.failures[0].code, "UNKNOWN");
    assert!(fields(&trend).contains_key("energy_millijoules"));
    assert!(!fields(&trend).contains_key("pcie_replays"));
}

#[test]
fn a_lost_card_is_asked_nothing_more_and_the_others_are_checked() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    rig.node.lose_cards(&target("3")).unwrap();
    rig.node.trace().unwrap();
    let lost = reading(&mut backend, Tier::Working, ids(&report)[3]);
    assert_eq!(lost.failures.len(), 1);
    assert!(lost.failures[0].fatal);
    assert!(fields(&lost).is_empty() && lost.unsupported.is_empty());
    let calls = rig.node.traced_calls().unwrap();
    let made = calls.iter().filter(|call| call.ends_with(ids(&report)[3]));
    assert_eq!(made.count(), 1, "{calls:#?}");
    assert_eq!(
        working(&mut backend, ids(&report)[4]).ecc_uncorrected,
        Some(0)
    );
}

#[test]
fn a_card_that_is_left_out_is_not_opened() {
    let rig = Rig::new("dgx-a100");
    let left_out = rig.pci(2);
    let skip = Scope::Skip(vec![model::CardRef::Pci(left_out)]);
    let mut backend = rig.backend_for(skip);
    let mut report = backend.survey_devices();
    backend.add_new_links(&mut report, false);
    backend.read_samples();
    for tier in TIERS {
        backend.read_checkups(tier, true);
    }
    let me = std::process::id();
    let open: Vec<bool> = rig
        .node
        .holders()
        .unwrap()
        .iter()
        .map(|card| card.pids.contains(&me))
        .collect();
    assert_eq!(open, [true, true, false, true, true, true, true, true]);
    drop(backend);
    let held = rig.node.holders().unwrap();
    assert!(held.iter().all(|card| !card.pids.contains(&me)), "{held:?}");
}
