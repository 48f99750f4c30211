//! Tier *working*: values that show if a device works.

use rstest::rstest;

use super::*;

/// Conditions of a card that has not begun to join the fabric.
const NOT_BEGUN: &str = r#"[
    {"name": "fabric", "state": "unknown", "ends_with_reset": true},
    {"name": "fabric-joining", "state": "warning", "reason": "joining the fabric has not begun",
     "ends_with_reset": true, "grace_millis": 600000}
]"#;
/// Conditions of a card that is joining the fabric.
const NOT_ENDED: &str = r#"[
    {"name": "fabric", "state": "unknown", "ends_with_reset": true},
    {"name": "fabric-joining", "state": "warning", "reason": "joining the fabric has not ended",
     "ends_with_reset": true, "grace_millis": 600000}
]"#;
/// Conditions of a card that the fabric refused.
const REFUSED: &str = r#"[
    {"name": "fabric", "state": "critical", "reason": "the fabric refused the card: UNKNOWN",
     "ends_with_reset": true},
    {"name": "fabric-joining", "state": "ok", "ends_with_reset": true, "grace_millis": 600000}
]"#;

#[rstest]
#[case::ecc(("dgx-a100", "ecc-uncorrected", 2), ("ecc_uncorrected", "2"))]
#[case::remap(("dgx-a100", "remap-pending", 1), ("repair_pending", "true"))]
#[case::remap_failed(("dgx-a100", "remap-failed", 1), ("repair_failed", "true"))]
#[case::pages(("dgx1-v100", "retired-pending", 1), ("repair_pending", "true"))]
#[case::fabric_begins(("hgx-h100", "fabric-state", 1), ("conditions", NOT_BEGUN))]
#[case::fabric_joins(("hgx-h100", "fabric-state", 2), ("conditions", NOT_ENDED))]
#[case::fabric_fails(("hgx-h100", "fabric-status", 999), ("conditions", REFUSED))]
#[case::reset(("dgx-a100", "recovery-action", 1), ("recovery", r#""reset""#))]
#[case::reboot(("dgx-a100", "recovery-action", 2), ("recovery", r#""reboot""#))]
#[case::drain(("dgx-a100", "recovery-action", 3), ("recovery", r#""drain_p2p""#))]
#[case::drain_reset(("dgx-a100", "recovery-action", 4), ("recovery", r#""drain_and_reset""#))]
#[case::new_action(("dgx-a100", "recovery-action", 9), ("recovery", r#"{"other":9}"#))]
fn each_fact_follows_the_hardware_of_one_card(#[case] set: Set, #[case] fact: Fact) {
    follows(set, Tier::Working, fact);
}

/// An A100 remaps rows and retires no pages; a V100 retires pages and remaps no rows.
#[test]
fn repairs_that_wait_are_not_supported_only_if_the_card_knows_neither_rows_nor_pages() {
    for (profile, unsupported) in [("dgx-a100", false), ("dgx1-v100", true)] {
        let rig = Rig::new(profile);
        let mut backend = rig.backend();
        let report = backend.survey_devices();
        let reading = reading(&mut backend, Tier::Working, ids(&report)[0]);
        assert_eq!(fields(&reading)["repair_pending"], false);
        let names = &reading.unsupported;
        assert!(!names.iter().any(|name| name == "repair_pending"));
        assert_eq!(
            names.iter().any(|name| name == "repair_failed"),
            unsupported
        );
    }
}

#[test]
fn repairs_that_wait_are_not_read_if_the_one_call_that_is_supported_fails() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    rig.node
        .set_fault("nvmlDeviceGetRemappedRows", None, UNKNOWN)
        .unwrap();
    let reading = reading(&mut backend, Tier::Working, ids(&report)[0]);
    assert!(!fields(&reading).contains_key("repair_pending"));
    let names = &reading.unsupported;
    assert!(!names.iter().any(|name| name.starts_with("repair_")));
    assert_eq!(reading.failures.len(), 1);
}

#[test]
fn a_memory_error_of_one_mig_device_is_told_of_that_one() {
    let rig = Rig::new("a100-mig");
    let mut backend = rig.backend();
    backend.survey_devices();
    let migs = rig.node.list_migs().unwrap();
    rig.node
        .count_ecc_error(&target(&migs[1].uuid), sim::EccKind::Uncorrected)
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
    let others = backend.read_checkups(Tier::Performing, true);
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
    let report = backend.survey_devices();
    let id = ids(&report)[1];
    for (sensor, value) in [
        ("ecc-uncorrected", 4),
        ("remap-pending", 1),
        ("remapped-uncorrected", 1),
        ("recovery-action", 4),
    ] {
        rig.node.set_sensor(&target("1"), sensor, value).unwrap();
    }
    assert_eq!(working(&mut backend, id).repair_pending, Some(true));
    rig.node.reset_cards(&target("1"), Duration::ZERO).unwrap();
    assert_eq!(backend.survey_devices(), report);
    let after = working(&mut backend, id);
    assert_eq!(after.ecc_uncorrected, Some(0));
    assert_eq!(after.repair_pending, Some(false));
    assert_eq!(after.recovery, Some(RecoveryAction::None));
    let trend = reading(&mut backend, Tier::Trend, id);
    assert_eq!(fields(&trend)["repaired_rows"], 1);
}
