//! The check-ups: what each tier reads on each machine, and that it follows the hardware.

use model::{FabricState, Reading, RecoveryAction, Tier, Values};
use rstest::rstest;
use serde_json::Value;

use super::*;

const TIERS: [Tier; 3] = [Tier::Working, Tier::Performing, Tier::Trend];

/// What a tier reads of the device with this id.
fn reading(backend: &mut Nvidia, tier: Tier, id: &str) -> Reading {
    let mut all = backend.checkups(tier, true).into_iter();
    let found = all.find(|checkup| checkup.device.as_str() == id);
    found
        .unwrap_or_else(|| panic!("no check-up of {id}"))
        .reading
}

fn working(backend: &mut Nvidia, id: &str) -> model::Working {
    match reading(backend, Tier::Working, id).values {
        Values::Working(working) => working,
        other => panic!("{other:?}"),
    }
}

/// The fields of what was read, with their values.
fn fields(reading: &Reading) -> serde_json::Map<String, Value> {
    let Value::Object(mut fields) = serde_json::to_value(reading).unwrap() else {
        panic!("a reading is an object");
    };
    for name in ["tier", "unsupported", "failures"] {
        fields.remove(name);
    }
    fields
}

/// How many facts a tier has.
fn size(tier: Tier) -> usize {
    match tier {
        Tier::Working => 6,
        Tier::Performing => 11,
        Tier::Trend => 4,
        Tier::Present | Tier::Deep => 0,
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
        let report = backend.survey();
        for tier in TIERS {
            for checkup in backend.checkups(tier, true) {
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
                        assert_ne!(working.remap_pending, Some(true), "{what}");
                        assert_ne!(working.retirement_pending, Some(true), "{what}");
                        let joined = matches!(
                            working.fabric,
                            None | Some(FabricState::Joined | FabricState::None)
                        );
                        assert!(joined, "{what}");
                        let action = working.recovery.unwrap_or(RecoveryAction::None);
                        assert_eq!(action, RecoveryAction::None, "{what}");
                    }
                    Values::Performing(performing) => {
                        assert_eq!(performing.throttled, Some(Vec::new()), "{what}");
                        assert_eq!(performing.pcie_width, performing.pcie_width_max, "{what}");
                        assert_eq!(performing.nvlink_errors.unwrap_or(0), 0, "{what}");
                        assert_eq!(performing.nvlinks_down.unwrap_or(0), 0, "{what}");
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

#[rstest]
#[case::ecc(
    "dgx-a100",
    "ecc-uncorrected",
    2,
    Tier::Working,
    "ecc_uncorrected",
    "2"
)]
#[case::remap("dgx-a100", "remap-pending", 1, Tier::Working, "remap_pending", "true")]
#[case::remap_failed("dgx-a100", "remap-failed", 1, Tier::Working, "remap_failed", "true")]
#[case::pages(
    "dgx1-v100",
    "retired-pending",
    1,
    Tier::Working,
    "retirement_pending",
    "true"
)]
#[case::fabric_begins(
    "hgx-h100",
    "fabric-state",
    1,
    Tier::Working,
    "fabric",
    r#""not_started""#
)]
#[case::fabric_joins(
    "hgx-h100",
    "fabric-state",
    2,
    Tier::Working,
    "fabric",
    r#""in_progress""#
)]
#[case::fabric_fails(
    "hgx-h100",
    "fabric-status",
    999,
    Tier::Working,
    "fabric",
    r#"{"failed":"UNKNOWN"}"#
)]
#[case::reset(
    "dgx-a100",
    "recovery-action",
    1,
    Tier::Working,
    "recovery",
    r#""reset""#
)]
#[case::reboot(
    "dgx-a100",
    "recovery-action",
    2,
    Tier::Working,
    "recovery",
    r#""reboot""#
)]
#[case::drain(
    "dgx-a100",
    "recovery-action",
    3,
    Tier::Working,
    "recovery",
    r#""drain_p2p""#
)]
#[case::drain_reset(
    "dgx-a100",
    "recovery-action",
    4,
    Tier::Working,
    "recovery",
    r#""drain_and_reset""#
)]
#[case::new_action(
    "dgx-a100",
    "recovery-action",
    9,
    Tier::Working,
    "recovery",
    r#"{"other":9}"#
)]
#[case::throttle(
    "t4",
    "clock-reasons",
    0x49,
    Tier::Performing,
    "throttled",
    r#"["HwSlowdown","HwThermalSlowdown"]"#
)]
#[case::width("t4", "pcie-width", 8, Tier::Performing, "pcie_width", "8")]
#[case::generation("t4", "pcie-generation", 2, Tier::Performing, "pcie_generation", "2")]
#[case::busy("t4", "utilization", 77, Tier::Performing, "utilization_percent", "77")]
#[case::links("dgx-a100", "nvlink-errors", 5, Tier::Performing, "nvlink_errors", "5")]
#[case::heat("t4", "temperature", 94, Tier::Performing, "temperature_celsius", "94")]
#[case::corrected("t4", "ecc-corrected", 6, Tier::Trend, "ecc_corrected", "6")]
#[case::rows("dgx-a100", "remapped-corrected", 3, Tier::Trend, "remapped_rows", "3")]
#[case::replays("t4", "pcie-replays", 4, Tier::Trend, "pcie_replays", "4")]
#[case::energy("t4", "energy", 12, Tier::Trend, "energy_millijoules", "12")]
fn each_fact_follows_the_hardware_of_one_card(
    #[case] profile: &str,
    #[case] sensor: &str,
    #[case] value: u64,
    #[case] tier: Tier,
    #[case] field: &str,
    #[case] expected: &str,
) {
    let rig = Rig::new(profile);
    let mut backend = rig.backend();
    let report = backend.survey();
    let ids = ids(&report);
    let expected: Value = serde_json::from_str(expected).unwrap();
    let before = fields(&reading(&mut backend, tier, ids[0]))[field].clone();
    assert_ne!(before, expected);
    rig.node.set(&target("0"), sensor, value).unwrap();
    assert_eq!(
        fields(&reading(&mut backend, tier, ids[0]))[field],
        expected
    );
    if let Some(other) = ids.get(1) {
        assert_eq!(fields(&reading(&mut backend, tier, other))[field], before);
    }
}

#[test]
fn links_that_are_down_are_counted() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let report = backend.survey();
    rig.node.set_link(&target("2"), 3, false).unwrap();
    rig.node.set_link(&target("2"), 4, false).unwrap();
    let reading = reading(&mut backend, Tier::Performing, ids(&report)[2]);
    assert_eq!(fields(&reading)["nvlinks_down"], 2);
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
    let report = backend.survey();
    let id = ids(&report)[0];
    let working = reading(&mut backend, Tier::Working, id);
    let missing = [
        "fabric",
        "recovery",
        "remap_failed",
        "remap_pending",
        "retirement_pending",
    ];
    assert_eq!(working.unsupported, missing);
    assert_eq!(fields(&working)["ecc_uncorrected"], 0);
    let performing = reading(&mut backend, Tier::Performing, id);
    assert_eq!(performing.unsupported, ["nvlink_errors"]);
    assert_eq!(
        fields(&performing)["throttled"],
        serde_json::json!([]),
        "by its older name"
    );
    let trend = reading(&mut backend, Tier::Trend, id);
    assert_eq!(
        trend.unsupported,
        ["energy_millijoules", "pcie_replays", "remapped_rows"]
    );
    for reading in [working, performing, trend] {
        assert_eq!(reading.failures, []);
    }
}

#[test]
fn a_call_that_fails_is_named_and_the_others_are_made() {
    let rig = Rig::new("t4");
    let mut backend = rig.backend();
    let report = backend.survey();
    rig.node
        .fault("nvmlDeviceGetPcieReplayCounter", None, UNKNOWN)
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
    let report = backend.survey();
    rig.node.lose(&target("3")).unwrap();
    rig.node.trace().unwrap();
    let lost = reading(&mut backend, Tier::Working, ids(&report)[3]);
    assert_eq!(lost.failures.len(), 1);
    assert!(lost.failures[0].fatal);
    assert!(fields(&lost).is_empty() && lost.unsupported.is_empty());
    let calls = rig.node.calls().unwrap();
    let made = calls.iter().filter(|call| call.ends_with(ids(&report)[3]));
    assert_eq!(made.count(), 1, "{calls:#?}");
    assert_eq!(
        working(&mut backend, ids(&report)[4]).ecc_uncorrected,
        Some(0)
    );
}

#[test]
fn a_memory_error_of_one_mig_device_is_told_of_that_one() {
    let rig = Rig::new("a100-mig");
    let mut backend = rig.backend();
    backend.survey();
    let migs = rig.node.migs().unwrap();
    rig.node
        .ecc(&target(&migs[1].uuid), sim::EccKind::Uncorrected)
        .unwrap();
    assert_eq!(
        working(&mut backend, &migs[1].uuid).ecc_uncorrected,
        Some(1)
    );
    assert_eq!(
        working(&mut backend, &migs[0].uuid).ecc_uncorrected,
        Some(0)
    );
    assert_eq!(working(&mut backend, &migs[1].gpu).ecc_uncorrected, Some(0));
    let others = backend.checkups(Tier::Performing, true);
    let is_part = |id: &str| id.starts_with("MIG-");
    assert!(
        others
            .iter()
            .all(|checkup| !is_part(checkup.device.as_str()))
    );
}

#[test]
fn a_reset_clears_what_is_counted_from_it_on_and_does_what_waited_for_it() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let report = backend.survey();
    let id = ids(&report)[1];
    for (sensor, value) in [
        ("ecc-uncorrected", 4),
        ("remap-pending", 1),
        ("remapped-uncorrected", 1),
        ("recovery-action", 4),
    ] {
        rig.node.set(&target("1"), sensor, value).unwrap();
    }
    assert_eq!(working(&mut backend, id).remap_pending, Some(true));
    rig.node.reset(&target("1"), Duration::ZERO).unwrap();
    assert_eq!(backend.survey(), report);
    let after = working(&mut backend, id);
    assert_eq!(after.ecc_uncorrected, Some(0));
    assert_eq!(after.remap_pending, Some(false));
    assert_eq!(after.recovery, Some(RecoveryAction::None));
    let trend = reading(&mut backend, Tier::Trend, id);
    assert_eq!(fields(&trend)["remapped_rows"], 1);
}

#[test]
fn each_loading_of_the_driver_has_a_name_of_its_own() {
    let rig = Rig::new("t4");
    let instance = || rig.backend().survey().driver.unwrap().instance.unwrap();
    let mut seen = vec![instance()];
    assert_eq!(instance(), seen[0], "nothing happened");
    for _ in 0..3 {
        rig.node.reload_driver().unwrap();
        let new = instance();
        assert!(!seen.contains(&new), "{new} in {seen:?}");
        seen.push(new);
    }
    let boot = || {
        let file = rig.node.root().join("proc/sys/kernel/random/boot_id");
        fs_err::read_to_string(file).unwrap()
    };
    let before = boot();
    rig.node.reboot().unwrap();
    assert_ne!(boot(), before);
    assert!(!seen.contains(&instance()));
}

#[test]
fn processes_are_told_where_they_are_asked_for() {
    let rig = Rig::new("dgx-a100");
    let mut silent = rig.backend();
    silent.survey();
    assert!(
        silent
            .samples()
            .iter()
            .all(|s| s.telemetry.processes.is_none())
    );

    let mut settings = rig.settings(Scope::All);
    settings.processes = true;
    let mut backend = Nvidia::new(settings, Arc::default());
    let report = backend.survey();
    let process = |pid, work| sim::state::Process {
        pid,
        work,
        memory_mib: 3,
        instance: None,
    };
    use sim::state::Work;
    let processes = [
        process(4711, Work::Compute),
        process(12, Work::Mps),
        process(99, Work::Graphics),
    ];
    rig.node.set_processes(&target("1"), &processes).unwrap();
    let comm = rig.node.root().join("proc/4711/comm");
    fs_err::create_dir_all(comm.parent().unwrap()).unwrap();
    fs_err::write(comm, "python3\n").unwrap();
    let samples = backend.samples();
    let of = |id: &str| {
        let sample = samples.iter().find(|s| s.device.as_str() == id).unwrap();
        sample.telemetry.processes.clone().unwrap()
    };
    assert_eq!(of(ids(&report)[0]), []);
    let told = of(ids(&report)[1]);
    let told: Vec<_> = told
        .iter()
        .map(|p| (p.pid, p.name.as_deref(), p.memory_bytes))
        .collect();
    let bytes = Some(3 << 20);
    assert_eq!(told, [(12, None, bytes), (4711, Some("python3"), bytes)]);
}

#[test]
fn more_processes_than_were_expected_are_all_told() {
    let rig = Rig::new("t4");
    let mut settings = rig.settings(Scope::All);
    settings.processes = true;
    let mut backend = Nvidia::new(settings, Arc::default());
    backend.survey();
    let processes: Vec<_> = (1..=200)
        .map(|pid| sim::state::Process {
            pid,
            work: sim::state::Work::Compute,
            memory_mib: 1,
            instance: None,
        })
        .collect();
    rig.node.set_processes(&target("0"), &processes).unwrap();
    let samples = backend.samples();
    assert_eq!(samples[0].telemetry.processes.as_ref().unwrap().len(), 200);
}

#[test]
fn a_card_is_idle_without_processes_and_without_work() {
    let rig = Rig::new("t4");
    let mut backend = rig.backend();
    backend.survey();
    let id = backend.patients()[0].id.clone();
    assert_eq!(backend.busy(&id), None);
    rig.node.set(&target("0"), "utilization", 3).unwrap();
    assert!(backend.busy(&id).unwrap().contains("3 %"));
    rig.node.set(&target("0"), "utilization", 0).unwrap();
    let process = sim::state::Process {
        pid: 4711,
        work: sim::state::Work::Compute,
        memory_mib: 0,
        instance: None,
    };
    rig.node.set_processes(&target("0"), &[process]).unwrap();
    assert!(backend.busy(&id).unwrap().contains("4711"));
}

#[test]
fn a_card_that_is_left_out_is_not_opened() {
    let rig = Rig::new("dgx-a100");
    let left_out = rig.node.gpus().unwrap()[2].pci;
    let skip = Scope::Skip(vec![probe::protocol::CardRef::Pci(left_out)]);
    let mut backend = rig.backend_for(skip);
    let mut report = backend.survey();
    backend.links(&mut report, false);
    backend.samples();
    for tier in TIERS {
        backend.checkups(tier, true);
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
