//! Check-ups of a card and of its MIG devices. A reading names the values that the device does not
//! support. A device that is gone gets no further calls.

use std::time::Duration;

use model::{
    CallFailure, Condition, Performing, Reading, RecoveryAction, Tier, Trend, Values, Work, Working,
};
use nvml::{DeviceHandle, Error, ReturnCode, TemperatureThreshold};
use probe::CallTable;

use super::{card::call_failure, fabric};

/// Makes the calls of one check-up and collects conditions, unsupported values and failures.
#[derive(Debug, Default)]
struct CheckupQueries {
    conditions: Vec<Condition>,
    unsupported: Vec<String>,
    failures: Vec<CallFailure>,
}

/// Result of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallAnswer<T> {
    /// Value from the driver.
    Given(T),
    /// The device or the driver does not support the call.
    Unsupported,
    /// The call failed, or was not made because the device is gone.
    Failed,
}

/// Makes the driver calls of a tier for a card; `None` for a tier that makes none.
///
/// If a call about links hangs, the link reading is blamed and not the card; without `links` no
/// such call is made. Joining the fabric may take as long as `join_limit` without a warning.
pub(super) fn check_card(
    card: DeviceHandle<'_>,
    tier: Tier,
    links: Option<&CallTable>,
    join_limit: Duration,
) -> Option<Reading> {
    let mut exam = CheckupQueries::default();
    let values = match tier {
        Tier::Working => Values::Working(working(card, &mut exam, join_limit)),
        Tier::Performing => Values::Performing(performing(card, &mut exam, links)),
        Tier::Trend => Values::Trend(trend(card, &mut exam)),
        Tier::Present | Tier::Deep => return None,
    };
    Some(exam.into_reading(values))
}

/// Makes the driver calls of a tier for a MIG device. Only its own SRAM errors are read: NVML tells
/// all other values for the whole card.
pub(super) fn check_partition(part: DeviceHandle<'_>, tier: Tier) -> Option<Reading> {
    if tier != Tier::Working {
        return None;
    }
    let mut exam = CheckupQueries::default();
    let values = Working {
        ecc_uncorrected: exam.query_field("ecc_uncorrected", || part.sram_uncorrected()),
        ..Working::default()
    };
    Some(exam.into_reading(Values::Working(values)))
}

/// Makes the reading of a device for which NVML gives no handle.
pub(super) fn refused_reading(error: &Error, tier: Tier) -> Option<Reading> {
    let values = match tier {
        Tier::Working => Values::Working(Working::default()),
        Tier::Performing => Values::Performing(Performing::default()),
        Tier::Trend => Values::Trend(Trend::default()),
        Tier::Present | Tier::Deep => return None,
    };
    let mut exam = CheckupQueries::default();
    exam.failures.push(call_failure(error));
    Some(exam.into_reading(values))
}

fn working(card: DeviceHandle<'_>, exam: &mut CheckupQueries, join_limit: Duration) -> Working {
    let ecc_uncorrected = exam.query_field("ecc_uncorrected", || card.ecc_uncorrected());
    // Cards from Ampere on remap rows, older cards retire pages. Each supports one of the two
    // calls.
    let rows = exam.query_driver(|| card.read_remapped_rows());
    let pages = exam.query_driver(|| card.retirement_pending());
    let pending = rows.map(|rows| rows.pending).either_true(pages);
    let failed = rows.map(|rows| rows.failed);
    let joining = exam.query_field("fabric", || card.joining());
    exam.conditions = joining.map_or_else(Vec::new, |state| fabric::conditions(state, join_limit));
    Working {
        ecc_uncorrected,
        repair_pending: exam.take_value("repair_pending", pending),
        repair_failed: exam.take_value("repair_failed", failed),
        recovery: exam
            .query_field("recovery", || card.recovery_action())
            .map(to_recovery_action),
    }
}

fn performing(
    card: DeviceHandle<'_>,
    exam: &mut CheckupQueries,
    links: Option<&CallTable>,
) -> Performing {
    let (link_errors, links_down) = links.map_or((None, None), |calls| {
        calls.during(Work::Links, || {
            (
                exam.query_field("link_errors", || card.link_errors()),
                exam.query_field("links_down", || links_down(card)),
            )
        })
    });
    let reasons = exam.query_field("throttled", || card.clock_reasons());
    Performing {
        throttled: reasons.map(|reasons| reasons.into_iter().map(str::to_owned).collect()),
        pcie_width: exam.query_field("pcie_width", || card.pcie_width()),
        pcie_width_max: exam.query_field("pcie_width_max", || card.max_pcie_width()),
        pcie_generation: exam.query_field("pcie_generation", || card.pcie_generation()),
        pcie_generation_max: exam.query_field("pcie_generation_max", || card.max_pcie_generation()),
        utilization_percent: exam.query_field("utilization_percent", || card.read_utilization()),
        link_errors,
        links_down,
        temperature_celsius: exam.query_field("temperature_celsius", || card.read_temperature()),
        slowdown_celsius: exam.query_field("slowdown_celsius", || {
            card.threshold(TemperatureThreshold::Slowdown)
        }),
        shutdown_celsius: exam.query_field("shutdown_celsius", || {
            card.threshold(TemperatureThreshold::Shutdown)
        }),
    }
}

fn trend(card: DeviceHandle<'_>, exam: &mut CheckupQueries) -> Trend {
    let rows = exam.query_field("repaired_rows", || card.read_remapped_rows());
    Trend {
        ecc_corrected: exam.query_field("ecc_corrected", || card.ecc_corrected()),
        repaired_rows: rows.map(|rows| u64::from(rows.corrected) + u64::from(rows.uncorrected)),
        pcie_replays: exam.query_field("pcie_replays", || card.pcie_replays()),
        energy_millijoules: exam.query_field("energy_millijoules", || card.read_energy()),
    }
}

/// Counts the NVLinks of the card that are down.
fn links_down(card: DeviceHandle<'_>) -> Result<u32, Error> {
    let mut down = 0;
    for link in 0..DeviceHandle::LINKS {
        match card.link_up(link) {
            Ok(up) => down += u32::from(!up),
            // Link numbers have no gaps: drivers answer INVALID_ARGUMENT or NOT_SUPPORTED behind
            // the last link.
            Err(error) if link > 0 && (is_unknown(&error) || error.is_not_supported()) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(down)
}

fn to_recovery_action(number: u32) -> RecoveryAction {
    match number {
        0 => RecoveryAction::None,
        1 => RecoveryAction::Reset,
        2 => RecoveryAction::Reboot,
        3 => RecoveryAction::DrainP2p,
        4 => RecoveryAction::DrainAndReset,
        // Newer drivers know 5 (recover the IMEX domain), 6 (reset the PCIe bus) and 7 (reboot).
        other => RecoveryAction::Other(other),
    }
}

/// Returns true if the driver is too old to know an argument. All arguments here are constants of
/// NVML, so INVALID_ARGUMENT has no other cause.
fn is_unknown(error: &Error) -> bool {
    error.return_code() == Some(ReturnCode::INVALID_ARGUMENT)
}

// === impl CallAnswer ===

impl<T> CallAnswer<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> CallAnswer<U> {
        match self {
            Self::Given(value) => CallAnswer::Given(change(value)),
            Self::Unsupported => CallAnswer::Unsupported,
            Self::Failed => CallAnswer::Failed,
        }
    }
}

impl CallAnswer<bool> {
    /// Combines two answers: true if one of them is true, unsupported only if both are. If one call
    /// failed and the other says no, the result is a failure, because the failed call might have
    /// said yes.
    fn either_true(self, other: Self) -> Self {
        match (self, other) {
            (Self::Given(true), _) | (_, Self::Given(true)) => Self::Given(true),
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Given(false), _) | (_, Self::Given(false)) => Self::Given(false),
            (Self::Unsupported, Self::Unsupported) => Self::Unsupported,
        }
    }
}

// === impl CheckupQueries ===

impl CheckupQueries {
    /// Makes the call for `field`; `None` if it failed or is not supported.
    fn query_field<T>(
        &mut self,
        field: &str,
        question: impl FnOnce() -> Result<T, Error>,
    ) -> Option<T> {
        let answer = self.query_driver(question);
        self.take_value(field, answer)
    }

    /// Makes a call and collects its failure.
    fn query_driver<T>(&mut self, question: impl FnOnce() -> Result<T, Error>) -> CallAnswer<T> {
        if self.failures.iter().any(|failure| failure.fatal) {
            return CallAnswer::Failed;
        }
        match question() {
            Ok(answer) => CallAnswer::Given(answer),
            Err(error) if error.is_not_supported() || is_unknown(&error) => CallAnswer::Unsupported,
            Err(error) => {
                self.failures.push(call_failure(&error));
                CallAnswer::Failed
            }
        }
    }

    /// Returns the value of an answer. Notes `field` as unsupported if the answer says so.
    fn take_value<T>(&mut self, field: &str, answer: CallAnswer<T>) -> Option<T> {
        match answer {
            CallAnswer::Given(value) => return Some(value),
            CallAnswer::Unsupported => self.unsupported.push(field.to_owned()),
            CallAnswer::Failed => {}
        }
        None
    }

    /// Makes the reading. Unsupported fields are sorted, so that equal readings compare as equal.
    fn into_reading(mut self, values: Values) -> Reading {
        self.unsupported.sort();
        Reading {
            values,
            conditions: self.conditions,
            unsupported: self.unsupported,
            failures: self.failures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CallAnswer::{self, Failed, Given, Unsupported};

    #[test]
    fn repairs_wait_if_rows_or_pages_do() {
        let cases: [(CallAnswer<bool>, CallAnswer<bool>, CallAnswer<bool>); 7] = [
            (Given(false), Given(true), Given(true)),
            (Given(false), Given(false), Given(false)),
            (Given(true), Failed, Given(true)),
            (Given(false), Failed, Failed),
            (Given(false), Unsupported, Given(false)),
            (Unsupported, Failed, Failed),
            (Unsupported, Unsupported, Unsupported),
        ];
        for (one, other, both) in cases {
            assert_eq!(
                [one.either_true(other), other.either_true(one)],
                [both, both]
            );
        }
    }
}
