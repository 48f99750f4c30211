//! Check-ups of a card and of its MIG devices. A reading names the values that the device does not
//! support. A device that is gone gets no further calls.

use std::time::Duration;

use model::{
    CallFailure, Condition, Performing, Reading, RecoveryAction, Tier, Trend, Values, Work, Working,
};
use nvml::{Code, Device, Error, Threshold};
use probe::Calls;

use super::{card::failure, fabric};

/// Makes the calls of one check-up and collects conditions, unsupported values and failures.
#[derive(Debug, Default)]
struct Exam {
    conditions: Vec<Condition>,
    unsupported: Vec<String>,
    failures: Vec<CallFailure>,
}

/// Result of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer<T> {
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
pub(super) fn card(
    card: Device<'_>,
    tier: Tier,
    links: Option<&Calls>,
    join_limit: Duration,
) -> Option<Reading> {
    let mut exam = Exam::default();
    let values = match tier {
        Tier::Working => Values::Working(working(card, &mut exam, join_limit)),
        Tier::Performing => Values::Performing(performing(card, &mut exam, links)),
        Tier::Trend => Values::Trend(trend(card, &mut exam)),
        Tier::Present | Tier::Deep => return None,
    };
    Some(exam.conclude(values))
}

/// Makes the driver calls of a tier for a MIG device. Only its own SRAM errors are read: NVML tells
/// all other values for the whole card.
pub(super) fn partition(part: Device<'_>, tier: Tier) -> Option<Reading> {
    if tier != Tier::Working {
        return None;
    }
    let mut exam = Exam::default();
    let values = Working {
        ecc_uncorrected: exam.ask("ecc_uncorrected", || part.sram_uncorrected()),
        ..Working::default()
    };
    Some(exam.conclude(Values::Working(values)))
}

/// Makes the reading of a device for which NVML gives no handle.
pub(super) fn refused(error: &Error, tier: Tier) -> Option<Reading> {
    let values = match tier {
        Tier::Working => Values::Working(Working::default()),
        Tier::Performing => Values::Performing(Performing::default()),
        Tier::Trend => Values::Trend(Trend::default()),
        Tier::Present | Tier::Deep => return None,
    };
    let mut exam = Exam::default();
    exam.failures.push(failure(error));
    Some(exam.conclude(values))
}

fn working(card: Device<'_>, exam: &mut Exam, join_limit: Duration) -> Working {
    let ecc_uncorrected = exam.ask("ecc_uncorrected", || card.ecc_uncorrected());
    // Cards from Ampere on remap rows, older cards retire pages. Each supports one of the two
    // calls.
    let rows = exam.put(|| card.rows());
    let pages = exam.put(|| card.retirement_pending());
    let pending = rows.map(|rows| rows.pending).or(pages);
    let failed = rows.map(|rows| rows.failed);
    let joining = exam.ask("fabric", || card.joining());
    exam.conditions = joining.map_or_else(Vec::new, |state| fabric::conditions(state, join_limit));
    Working {
        ecc_uncorrected,
        repair_pending: exam.take("repair_pending", pending),
        repair_failed: exam.take("repair_failed", failed),
        recovery: exam
            .ask("recovery", || card.recovery_action())
            .map(recovery),
    }
}

fn performing(card: Device<'_>, exam: &mut Exam, links: Option<&Calls>) -> Performing {
    let (link_errors, links_down) = links.map_or((None, None), |calls| {
        calls.during(Work::Links, || {
            (
                exam.ask("link_errors", || card.link_errors()),
                exam.ask("links_down", || links_down(card)),
            )
        })
    });
    let reasons = exam.ask("throttled", || card.clock_reasons());
    Performing {
        throttled: reasons.map(|reasons| reasons.into_iter().map(str::to_owned).collect()),
        pcie_width: exam.ask("pcie_width", || card.pcie_width()),
        pcie_width_max: exam.ask("pcie_width_max", || card.max_pcie_width()),
        pcie_generation: exam.ask("pcie_generation", || card.pcie_generation()),
        pcie_generation_max: exam.ask("pcie_generation_max", || card.max_pcie_generation()),
        utilization_percent: exam.ask("utilization_percent", || card.utilization()),
        link_errors,
        links_down,
        temperature_celsius: exam.ask("temperature_celsius", || card.temperature()),
        slowdown_celsius: exam.ask("slowdown_celsius", || card.threshold(Threshold::Slowdown)),
        shutdown_celsius: exam.ask("shutdown_celsius", || card.threshold(Threshold::Shutdown)),
    }
}

fn trend(card: Device<'_>, exam: &mut Exam) -> Trend {
    let rows = exam.ask("repaired_rows", || card.rows());
    Trend {
        ecc_corrected: exam.ask("ecc_corrected", || card.ecc_corrected()),
        repaired_rows: rows.map(|rows| u64::from(rows.corrected) + u64::from(rows.uncorrected)),
        pcie_replays: exam.ask("pcie_replays", || card.pcie_replays()),
        energy_millijoules: exam.ask("energy_millijoules", || card.energy()),
    }
}

/// Counts the NVLinks of the card that are down.
fn links_down(card: Device<'_>) -> Result<u32, Error> {
    let mut down = 0;
    for link in 0..Device::LINKS {
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

fn recovery(number: u32) -> RecoveryAction {
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
    error.code() == Some(Code::INVALID_ARGUMENT)
}

// === impl Answer ===

impl<T> Answer<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Given(value) => Answer::Given(change(value)),
            Self::Unsupported => Answer::Unsupported,
            Self::Failed => Answer::Failed,
        }
    }
}

impl Answer<bool> {
    /// Combines two answers: true if one of them is true, unsupported only if both are. If one call
    /// failed and the other says no, the result is a failure, because the failed call might have
    /// said yes.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Given(true), _) | (_, Self::Given(true)) => Self::Given(true),
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Given(false), _) | (_, Self::Given(false)) => Self::Given(false),
            (Self::Unsupported, Self::Unsupported) => Self::Unsupported,
        }
    }
}

// === impl Exam ===

impl Exam {
    /// Makes the call for `field`; `None` if it failed or is not supported.
    fn ask<T>(&mut self, field: &str, question: impl FnOnce() -> Result<T, Error>) -> Option<T> {
        let answer = self.put(question);
        self.take(field, answer)
    }

    /// Makes a call and collects its failure.
    fn put<T>(&mut self, question: impl FnOnce() -> Result<T, Error>) -> Answer<T> {
        if self.failures.iter().any(|failure| failure.fatal) {
            return Answer::Failed;
        }
        match question() {
            Ok(answer) => Answer::Given(answer),
            Err(error) if error.is_not_supported() || is_unknown(&error) => Answer::Unsupported,
            Err(error) => {
                self.failures.push(failure(&error));
                Answer::Failed
            }
        }
    }

    /// Returns the value of an answer. Notes `field` as unsupported if the answer says so.
    fn take<T>(&mut self, field: &str, answer: Answer<T>) -> Option<T> {
        match answer {
            Answer::Given(value) => return Some(value),
            Answer::Unsupported => self.unsupported.push(field.to_owned()),
            Answer::Failed => {}
        }
        None
    }

    /// Makes the reading. Unsupported fields are sorted, so that equal readings compare as equal.
    fn conclude(mut self, values: Values) -> Reading {
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
    use super::Answer::{self, Failed, Given, Unsupported};

    #[test]
    fn repairs_wait_if_rows_or_pages_do() {
        let cases: [(Answer<bool>, Answer<bool>, Answer<bool>); 7] = [
            (Given(false), Given(true), Given(true)),
            (Given(false), Given(false), Given(false)),
            (Given(true), Failed, Given(true)),
            (Given(false), Failed, Failed),
            (Given(false), Unsupported, Given(false)),
            (Unsupported, Failed, Failed),
            (Unsupported, Unsupported, Unsupported),
        ];
        for (one, other, both) in cases {
            assert_eq!([one.or(other), other.or(one)], [both, both]);
        }
    }
}
