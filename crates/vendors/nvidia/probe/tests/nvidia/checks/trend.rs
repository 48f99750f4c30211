//! Tier *trend*: counters that show a card getting worse.

use rstest::rstest;

use super::*;

#[rstest]
#[case::corrected(("t4", "ecc-corrected", 6), ("ecc_corrected", "6"))]
#[case::rows(("dgx-a100", "remapped-corrected", 3), ("repaired_rows", "3"))]
#[case::replays(("t4", "pcie-replays", 4), ("pcie_replays", "4"))]
#[case::energy(("t4", "energy", 12), ("energy_millijoules", "12"))]
fn each_fact_follows_the_hardware_of_one_card(#[case] set: Set, #[case] fact: Fact) {
    follows(set, Tier::Trend, fact);
}
