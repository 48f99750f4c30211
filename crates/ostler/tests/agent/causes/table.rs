//! Fault for each check, and test for each kind of cause. Both are exhaustive: a new check or a new
//! kind does not compile without a line here.

use std::{collections::BTreeSet, process::Command};

use health::Check;
use model::{CauseKind, Tier};
use schemars::schema_for;

/// Profiles of machines whose cards can have the faults.
pub(super) const HOPPER: &str = "hgx-h100";
pub(super) const VOLTA: &str = "dgx1-v100";

/// Conditions that NVIDIA's probe reports, in the tier `working`.
const CONDITIONS: [&str; 2] = ["fabric", FABRIC_JOINING];
/// Condition that is a warning.
pub(super) const FABRIC_JOINING: &str = "fabric-joining";

/// Fault of a card.
pub(super) enum Trouble {
    /// Sensors with these values, on a card of this machine.
    Values(&'static str, &'static [(&'static str, u64)]),
    /// A counter that grows, on a card of this machine.
    Growth(&'static str, &'static str),
    /// An NVLink that is down, on a card of this machine.
    Link(&'static str),
    /// Fault that the test of this name makes.
    Own(&'static str),
    /// Nothing that a simulated card can have.
    Nothing,
}

/// Every check, including those of NVIDIA's conditions.
pub(super) fn checks() -> impl Iterator<Item = Check> {
    let condition = |name: &str| Check::Condition(Tier::Working, name.parse().unwrap());
    Check::ALL.into_iter().chain(CONDITIONS.map(condition))
}

/// Fault that this check finds.
pub(super) fn trouble(check: &Check) -> Trouble {
    use Trouble::{Growth, Link, Nothing, Own, Values};
    match check {
        Check::Lost | Check::Gone | Check::NotAnswering | Check::MonitorDown | Check::Deep => {
            Own(test(check.cause_kind()))
        }
        Check::Condition(_, name) => match name.as_str() {
            // 999 is NVML_ERROR_UNKNOWN: the fabric gave no reason.
            "fabric" => Values(HOPPER, &[("fabric-state", 3), ("fabric-status", 999)]),
            FABRIC_JOINING => Values(HOPPER, &[("fabric-state", 2)]),
            _ => Nothing,
        },
        Check::Ecc => Values(HOPPER, &[("ecc-uncorrected", 1)]),
        // Cards before Ampere retire pages, later ones remap rows (NVIDIA, GPU memory error
        // management).
        Check::RepairPending => Values(VOLTA, &[("retired-pending", 1)]),
        Check::RepairFailed => Values(HOPPER, &[("remap-failed", 1)]),
        Check::Recovery => Values(HOPPER, &[("recovery-action", 1)]),
        Check::Throttled => Values(HOPPER, &[("clock-reasons", 0x8)]),
        Check::PcieWidth => Values(HOPPER, &[("pcie-width", 4)]),
        Check::PcieGeneration => Values(HOPPER, &[("pcie-generation", 2), ("utilization", 90)]),
        Check::LinkErrors => Growth(HOPPER, "nvlink-errors"),
        Check::LinksDown => Link(HOPPER),
        Check::Temperature => Values(HOPPER, &[("temperature", 120)]),
        Check::EccCorrectedRate => Growth(HOPPER, "ecc-corrected"),
        Check::RepairRate => Growth(HOPPER, "remapped-corrected"),
        Check::ReplayRate => Growth(HOPPER, "pcie-replays"),
        Check::Power => Own("causes::circle::a_mean_power_above_its_limit"),
    }
}

/// Part of the evidence that the check gives for its fault.
pub(super) fn evidence(check: &Check) -> &'static str {
    match check {
        Check::Ecc => "memory errors that were not repaired",
        Check::RepairPending => "memory repairs wait",
        Check::RepairFailed => "a memory repair failed",
        Check::Condition(_, name) => match name.as_str() {
            "fabric" => "fabric: the fabric refused the card",
            FABRIC_JOINING => "fabric-joining: joining the fabric has not ended",
            _ => "",
        },
        Check::Recovery => "asks for a reset",
        Check::Throttled => "holds the clocks down",
        Check::PcieWidth => "has 4 of 16 lanes",
        Check::PcieGeneration => "generation 2 of 5",
        Check::LinkErrors => "link errors since",
        Check::LinksDown => "1 link to another card is down",
        Check::Temperature => "120 °C",
        Check::EccCorrectedRate => "repaired memory errors",
        Check::RepairRate => "repaired memory rows",
        Check::ReplayRate => "PCIe replays",
        Check::Lost
        | Check::Gone
        | Check::NotAnswering
        | Check::MonitorDown
        | Check::Power
        | Check::Deep => "",
    }
}

/// Name of the test in which a cause of this kind begins and ends.
fn test(kind: CauseKind) -> &'static str {
    match kind {
        CauseKind::Lost => "causes::circle::a_card_that_is_lost",
        CauseKind::Gone => "causes::circle::a_card_that_is_taken_out",
        CauseKind::Event => "causes::circle::a_card_with_an_xid",
        CauseKind::NotAnswering => "causes::circle::a_card_that_does_not_answer",
        CauseKind::MonitorDown => "causes::circle::a_monitor_that_stays_away",
        CauseKind::Ecc
        | CauseKind::RecoveryAction
        | CauseKind::Throttled
        | CauseKind::Pcie
        | CauseKind::Link
        | CauseKind::Temperature
        | CauseKind::Condition
        | CauseKind::Trend => "causes::sweep::check_ups_of_hopper_cards",
        CauseKind::MemoryRepair => "causes::sweep::check_ups_of_volta_cards",
        CauseKind::Deep => "causes::circle::a_card_on_which_the_command_of_the_user_fails",
        CauseKind::Residue => "causes::circle::a_card_with_a_process_of_somebody_else",
        CauseKind::Cordoned => "causes::circle::a_card_that_an_operator_cordons",
        CauseKind::Released => "causes::circle::a_card_that_an_operator_releases",
    }
}

/// Every kind of cause of the product, from its schema.
fn kinds() -> Vec<CauseKind> {
    let schema = schema_for!(CauseKind).to_value();
    let kinds = schema["oneOf"].as_array().unwrap().iter();
    kinds
        .map(|kind| serde_json::from_value(kind["const"].clone()).unwrap())
        .collect()
}

#[test]
fn every_check_and_every_kind_of_cause_has_its_test() {
    let listed = Command::new(std::env::current_exe().unwrap())
        .arg("--list")
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let tests: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .collect();
    for kind in kinds() {
        let test = test(kind);
        assert!(tests.contains(test), "{kind:?}: {test}");
    }
    for check in checks() {
        match trouble(&check) {
            Trouble::Own(test) => assert!(tests.contains(test), "{check:?}: {test}"),
            Trouble::Values(machine, _) | Trouble::Growth(machine, _) | Trouble::Link(machine) => {
                assert!([HOPPER, VOLTA].contains(&machine), "{check:?}: {machine}");
                assert!(!evidence(&check).is_empty(), "{check:?}");
            }
            Trouble::Nothing => panic!("nothing breaks a card for {check:?}"),
        }
    }
}
