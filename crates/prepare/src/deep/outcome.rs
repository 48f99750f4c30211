//! Outcome of a deep check, and the reasons not to make one.

use std::time::Duration;

use model::{Deep as Outcome, Telemetry};

use super::attend;
use crate::{command::EndCause, look};

/// Makes the outcome of a check whose command was started.
pub(super) fn from_result(ended: attend::CommandResult, limit: Duration) -> Outcome {
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return not_run(&error.explain()),
    };
    let (passed, why) = match ended.fate {
        EndCause::Exited(status) if status.success() => (Some(true), String::new()),
        EndCause::Exited(status) => (Some(false), status.to_string()),
        EndCause::Late => {
            let limit = limit.as_secs_f64();
            let why = format!("ended because it took longer than {limit} s");
            (Some(false), why)
        }
        EndCause::Stopped => (None, "ended because the card was released".to_owned()),
    };
    let parts = [ended.output, why];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Outcome {
        passed,
        output: parts.join("\n"),
    }
}

/// Makes the outcome of a check that was not made.
pub(super) fn not_run(reason: &str) -> Outcome {
    Outcome {
        passed: None,
        output: format!("not run: {reason}"),
    }
}

/// Reason why a card is not idle; `None` if it is. A card without a list of processes never counts as idle.
pub(super) fn busy_reason(telemetry: &Telemetry) -> Option<String> {
    // A card in MIG mode reports no utilization, so a missing value does not mean that it is busy.
    if telemetry.processes.is_none() {
        return Some("it does not tell who is on it".to_owned());
    }
    let works = || match telemetry.utilization_percent {
        None | Some(0) => None,
        Some(percent) => Some(format!("its engines are busy to {percent} %")),
    };
    look::computes(telemetry).or_else(works)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

    use model::Process;

    use super::*;
    use crate::command::{EndedCommand, Error};

    fn outcome(fate: EndCause, output: &str) -> (Option<bool>, String) {
        let ended = EndedCommand {
            program: "memtest".to_owned(),
            fate,
            output: output.to_owned(),
        };
        let outcome = from_result(Ok(ended), Duration::from_secs(90));
        (outcome.passed, outcome.output)
    }

    #[test]
    fn only_an_end_of_the_command_is_a_verdict() {
        let exited = |raw| EndCause::Exited(ExitStatus::from_raw(raw));
        assert_eq!(outcome(exited(0), "x"), (Some(true), "x".to_owned()));
        let failed = "3 errors\nexit status: 1".to_owned();
        assert_eq!(outcome(exited(1 << 8), "3 errors"), (Some(false), failed));
        let late = "ended because it took longer than 90 s".to_owned();
        assert_eq!(outcome(EndCause::Late, ""), (Some(false), late));
        assert_eq!(outcome(EndCause::Stopped, "").0, None);
        let absent = Error::Start {
            program: "memtest".to_owned(),
            why: "not found".to_owned(),
        };
        let absent = from_result(Err(absent), Duration::ZERO);
        assert_eq!(absent.passed, None);
        let why = "not run: `memtest` cannot be started: not found";
        assert_eq!(absent.output, why);
    }

    #[test]
    fn a_card_is_idle_without_processes_and_without_work() {
        let telemetry = |processes, utilization_percent| Telemetry {
            processes,
            utilization_percent,
            ..Telemetry::default()
        };
        assert_eq!(busy_reason(&telemetry(Some(Vec::new()), Some(0))), None);
        assert_eq!(busy_reason(&telemetry(Some(Vec::new()), None)), None);
        assert!(busy_reason(&telemetry(None, Some(0))).is_some());
        let works = busy_reason(&telemetry(Some(Vec::new()), Some(50)));
        assert_eq!(works.unwrap(), "its engines are busy to 50 %");
        let process = Process {
            pid: 7,
            name: None,
            memory_bytes: None,
        };
        let used = busy_reason(&telemetry(Some(vec![process]), Some(0)));
        assert!(used.unwrap().contains("process 7"));
    }
}
