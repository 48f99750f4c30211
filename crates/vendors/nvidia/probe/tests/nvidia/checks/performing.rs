//! Tier *performing*: values that show a card below its full performance.

use rstest::rstest;

use super::*;

#[rstest]
#[case::throttle(("t4", "clock-reasons", 0x49), ("throttled", r#"["HwSlowdown","HwThermalSlowdown"]"#))]
#[case::width(("t4", "pcie-width", 8), ("pcie_width", "8"))]
#[case::generation(("t4", "pcie-generation", 2), ("pcie_generation", "2"))]
#[case::busy(("t4", "utilization", 77), ("utilization_percent", "77"))]
#[case::links(("dgx-a100", "nvlink-errors", 5), ("link_errors", "5"))]
#[case::heat(("t4", "temperature", 94), ("temperature_celsius", "94"))]
fn each_fact_follows_the_hardware_of_one_card(#[case] set: Set, #[case] fact: Fact) {
    follows(set, Tier::Performing, fact);
}

#[test]
fn links_that_are_down_are_counted() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    rig.node.set_link(&target("2"), 3, false).unwrap();
    rig.node.set_link(&target("2"), 4, false).unwrap();
    let reading = reading(&mut backend, Tier::Performing, ids(&report)[2]);
    assert_eq!(fields(&reading)["links_down"], 2);
}
