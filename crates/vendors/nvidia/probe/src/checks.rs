//! The check-ups of a card and of the MIG devices on it: facts of how well they are. What a device
//! does not support is named, and a device that is gone is asked nothing more.

use std::time::Duration;

use model::{
    CallFailure, Condition, Performing, Reading, RecoveryAction, Tier, Trend, Values, Work, Working,
};
use nvml::{Code, Device, Error, Threshold};
use probe::Calls;

use super::{card::failure, fabric};

/// Asks the questions of one check-up.
#[derive(Debug, Default)]
struct Exam {
    conditions: Vec<Condition>,
    unsupported: Vec<String>,
    failures: Vec<CallFailure>,
}

/// The answer to one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer<T> {
    /// The driver answered.
    Given(T),
    /// The device, or the driver, does not support the question.
    Unsupported,
    /// The question failed, or was not asked because the device is gone.
    Failed,
}

/// What a tier reads of a card; `None` for one that is not made of driver calls. A call about links
/// that hangs is held against the links and not against the card; without `links` none is made. Joining
/// the fabric may take as long as `join_limit`.
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

/// What a tier reads of a MIG device: of all that only its own memory errors.
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

/// The check-up of a device that gives no handle.
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

/// How many of the card's NVLinks are down.
fn links_down(card: Device<'_>) -> Result<u32, Error> {
    let mut down = 0;
    for link in 0..Device::LINKS {
        match card.link_up(link) {
            Ok(up) => down += u32::from(!up),
            // There are no more, or none at all.
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
        other => RecoveryAction::Other(other),
    }
}

/// Whether a driver does not know what it was asked for: our arguments are constants, so it is old.
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
    /// True if either is. A question that failed might have been answered with yes, so that the other's no
    /// does not stand for both. Unsupported only if both are.
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
    /// Returns the answer to the question behind `field`; `None` where there is none.
    fn ask<T>(&mut self, field: &str, question: impl FnOnce() -> Result<T, Error>) -> Option<T> {
        let answer = self.put(question);
        self.take(field, answer)
    }

    /// Puts a question, and notes a failure.
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

    /// Takes the value of `field` from an answer, and notes that the field is not supported.
    fn take<T>(&mut self, field: &str, answer: Answer<T>) -> Option<T> {
        match answer {
            Answer::Given(value) => return Some(value),
            Answer::Unsupported => self.unsupported.push(field.to_owned()),
            Answer::Failed => {}
        }
        None
    }

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
