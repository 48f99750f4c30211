//! Shapes of a card: read once, with or without MIG mode.

use model::Shape;
use rstest::rstest;

use super::*;

const PLACEMENTS: &str = "nvmlDeviceGetGpuInstancePossiblePlacements_v2";
const PROFILE: &str = "nvmlDeviceGetGpuInstanceProfileInfo";
const NO_PERMISSION: Effect = Effect::Fail { code: 4 };

/// Formats shapes: name, count, MiB, and placements as `nvidia-smi mig -lgipp` writes them.
fn written(shapes: &[Shape]) -> Vec<String> {
    let line = |shape: &Shape| {
        let mib = shape.memory.unwrap() >> 20;
        let starts: Vec<String> = shape
            .placements
            .iter()
            .map(|span| span.start.to_string())
            .collect();
        let size = shape.placements.first().map_or(0, |span| span.size);
        let starts = starts.join(",");
        let Shape { profile, most, .. } = shape;
        format!("{profile} x{most} {mib} {{{starts}}}:{size}")
    };
    shapes.iter().map(line).collect()
}

/// Returns the number of calls that read shapes.
fn asked(rig: &Rig) -> usize {
    let calls = rig.node.traced_calls().unwrap();
    let about = |call: &&String| call.contains("ProfileInfo") || call.contains("Placements");
    calls.iter().filter(about).count()
}

#[test]
fn a_card_has_the_shapes_of_its_model_in_either_mode() {
    let rig = Rig::new("a100-mig");
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    let cards = cards(&report);
    let partitioned = |at: usize| cards[at].kind == Kind::Card { partitioned: true };
    assert!(partitioned(0) && !partitioned(7));
    for card in &cards {
        assert_eq!(
            written(&card.shapes),
            [
                "1g.5gb x7 4864 {0,1,2,3,4,5,6}:1",
                "2g.10gb x3 9984 {0,2,4}:2",
                "3g.20gb x2 20096 {0,4}:4",
                "4g.20gb x1 20096 {0}:4",
                "7g.40gb x1 40448 {0}:8",
                "1g.5gb+me x1 4864 {0}:1",
                "1g.10gb x4 9984 {0,2,4,6}:2",
            ],
            "{}",
            card.id
        );
    }
}

#[rstest]
#[case("a100-mig")]
#[case("a100-mig-odd")]
fn a_partition_has_the_name_of_a_shape_of_its_card_and_no_shapes(#[case] profile: &str) {
    let rig = Rig::new(profile);
    let report = rig.backend().survey_devices();
    let mut seen = 0;
    for part in &report.devices {
        let Kind::Partition { parent, profile } = &part.kind else {
            continue;
        };
        let card = report.devices.iter().find(|card| card.id == *parent);
        let shapes = &card.unwrap().shapes;
        let name = profile.as_deref().unwrap();
        // The name of a compute instance that is smaller than its GPU instance begins with `1c.`.
        let name = name.split_once("c.").map_or(name, |(_, name)| name);
        assert!(shapes.iter().any(|shape| shape.profile == name), "{name}");
        assert_eq!(part.shapes, []);
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn a_card_without_mig_has_none_and_is_not_asked() {
    let rig = Rig::new("t4");
    rig.node.trace().unwrap();
    let report = rig.backend().survey_devices();
    assert_eq!(report.devices[0].shapes, []);
    assert_eq!(report.devices[0].failures, []);
    assert_eq!(asked(&rig), 0);
}

#[test]
fn shapes_are_asked_for_once_per_driver_and_mode() {
    let rig = Rig::new("dgx-a100");
    rig.node.trace().unwrap();
    let mut backend = rig.backend();
    let first = backend.survey_devices();
    let once = asked(&rig);
    // One call for each number of the list, and two calls for the placements of each of seven
    // profiles.
    assert_eq!(once, 8 * (24 + 7 * 2));
    assert_eq!(backend.survey_devices(), first);
    assert_eq!(asked(&rig), once, "known shapes cost no call");

    // NVML promises the same answers only as long as the mode is the same.
    rig.node.set_mig(&target("0"), true).unwrap();
    let cut = backend.survey_devices();
    assert_eq!(cut.devices[0].shapes, first.devices[0].shapes);
    assert_eq!(asked(&rig), once + once / 8, "of one card");

    rig.node.reload_driver().unwrap();
    let before = asked(&rig);
    let again = backend.survey_devices();
    assert_eq!(again.devices[7].shapes, first.devices[7].shapes);
    assert_eq!(asked(&rig), before + once, "of every card");
}

#[rstest]
#[case(PLACEMENTS)]
#[case(PROFILE)]
fn a_call_that_fails_costs_the_shapes_of_its_card_until_it_works(#[case] call: &str) {
    let rig = Rig::new("a100-mig");
    let whole = rig.backend().survey_devices();
    rig.node
        .set_fault(call, Some(&target("0")), UNKNOWN)
        .unwrap();
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    let failure = CallFailure {
        call: call.to_owned(),
        code: "UNKNOWN".to_owned(),
        fatal: false,
    };
    let bad: Vec<&Device> = report
        .devices
        .iter()
        .filter(|device| !device.failures.is_empty())
        .collect();
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].failures, [failure]);
    assert_eq!(bad[0].shapes, []);
    let mut repaired = report.clone();
    repaired.devices[0].failures.clear();
    repaired.devices[0]
        .shapes
        .clone_from(&whole.devices[0].shapes);
    assert_eq!(repaired, whole, "nothing else is different");

    rig.node.clear_faults(None).unwrap();
    assert_eq!(backend.survey_devices(), whole);
}

#[rstest]
#[case::older_driver(NOT_SUPPORTED)]
#[case::unprivileged(NO_PERMISSION)]
fn shapes_without_placements_are_no_failure(#[case] effect: Effect) {
    let rig = Rig::new("dgx-a100");
    let whole = rig.backend().survey_devices();
    rig.node.set_fault(PLACEMENTS, None, effect).unwrap();
    let report = rig.backend().survey_devices();
    for (card, before) in report.devices.iter().zip(&whole.devices) {
        assert_eq!(card.failures, []);
        assert_eq!(card.shapes.len(), before.shapes.len());
        assert!(card.shapes.iter().all(|shape| shape.placements.is_empty()));
    }
}
