//! Checks of the tier *working*: the device computes correctly.

use config::Thresholds;
use model::{RecoveryAction, Working};

use super::CheckResult;
use crate::Check;

pub(super) fn check_working(
    values: &Working,
    thresholds: &Thresholds,
) -> Vec<(Check, CheckResult)> {
    let repair_failed = "a memory repair failed";
    let repair_pending = "memory repairs wait for the next reset";
    vec![
        (Check::Ecc, check_ecc(values.ecc_uncorrected, thresholds)),
        (
            Check::RepairPending,
            CheckResult::check_flag(values.repair_pending, repair_pending),
        ),
        (
            Check::RepairFailed,
            CheckResult::check_flag(values.repair_failed, repair_failed),
        ),
        (Check::Recovery, check_recovery_action(values.recovery)),
    ]
}

/// Checks the uncorrected memory errors since the driver was loaded. Any error counts, not only a
/// new one: nothing repairs the memory before a reset.
fn check_ecc(errors: Option<u64>, thresholds: &Thresholds) -> CheckResult {
    match errors {
        Some(errors) if errors > u64::from(thresholds.ecc_uncorrected) => CheckResult::Failed(
            format!("memory errors that were not repaired since the driver was loaded: {errors}"),
        ),
        Some(_) => CheckResult::Passed,
        None => CheckResult::Unread,
    }
}

/// Checks the recovery action that the driver asks for (NVML field 230,
/// NVML_FI_DEV_GET_GPU_RECOVERY_ACTION).
fn check_recovery_action(action: Option<RecoveryAction>) -> CheckResult {
    let asks = match action {
        None => return CheckResult::Unread,
        Some(RecoveryAction::None) => return CheckResult::Passed,
        Some(RecoveryAction::Reset) => "a reset of the device".to_owned(),
        Some(RecoveryAction::Reboot) => "a reboot of the node".to_owned(),
        Some(RecoveryAction::DrainP2p) => {
            "an end of all work that uses other devices, then a reset".to_owned()
        }
        Some(RecoveryAction::DrainAndReset) => "an end of all work, then a reset".to_owned(),
        Some(RecoveryAction::Other(code)) => format!("recovery action {code}"),
    };
    CheckResult::Failed(format!("the driver asks for {asks}"))
}
