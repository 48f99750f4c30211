//! Checks of the tier *working*: the device computes correctly.

use config::Thresholds;
use model::{RecoveryAction, Working};

use super::Finding;
use crate::Check;

pub(super) fn findings(values: &Working, thresholds: &Thresholds) -> Vec<(Check, Finding)> {
    let repair_failed = "a memory repair failed";
    let repair_pending = "memory repairs wait for the next reset";
    vec![
        (Check::Ecc, ecc(values.ecc_uncorrected, thresholds)),
        (
            Check::RepairPending,
            Finding::flag(values.repair_pending, repair_pending),
        ),
        (
            Check::RepairFailed,
            Finding::flag(values.repair_failed, repair_failed),
        ),
        (Check::Recovery, recovery(values.recovery)),
    ]
}

/// Checks the uncorrected memory errors since the driver was loaded. Any error counts, not only a
/// new one: nothing repairs the memory before a reset.
fn ecc(errors: Option<u64>, thresholds: &Thresholds) -> Finding {
    match errors {
        Some(errors) if errors > u64::from(thresholds.ecc_uncorrected) => Finding::Bad(format!(
            "memory errors that were not repaired since the driver was loaded: {errors}"
        )),
        Some(_) => Finding::Good,
        None => Finding::Unread,
    }
}

/// Checks the recovery action that the driver asks for (NVML field 230,
/// NVML_FI_DEV_GET_GPU_RECOVERY_ACTION).
fn recovery(action: Option<RecoveryAction>) -> Finding {
    let asks = match action {
        None => return Finding::Unread,
        Some(RecoveryAction::None) => return Finding::Good,
        Some(RecoveryAction::Reset) => "a reset of the device".to_owned(),
        Some(RecoveryAction::Reboot) => "a reboot of the node".to_owned(),
        Some(RecoveryAction::DrainP2p) => {
            "an end of all work that uses other devices, then a reset".to_owned()
        }
        Some(RecoveryAction::DrainAndReset) => "an end of all work, then a reset".to_owned(),
        Some(RecoveryAction::Other(code)) => format!("recovery action {code}"),
    };
    Finding::Bad(format!("the driver asks for {asks}"))
}
