//! The table: node × program × strategy → well, or what is wrong.

use std::fmt::Write as _;

use super::{Machine, expect::Strategy};
use crate::peer::Program;

/// What came out of one run of one program.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    machine: String,
    program: Program,
    strategy: Strategy,
    verdict: Verdict,
}

/// What is right or wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is the profile's; what that is, in short.
    Well(String),
    /// What is not.
    Wrong(Vec<String>),
}

/// All findings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    findings: Vec<Finding>,
}

// === impl Finding ===

impl Finding {
    pub(super) fn new(
        machine: &Machine,
        program: Program,
        strategy: Strategy,
        verdict: Verdict,
    ) -> Self {
        Self {
            machine: machine.name.clone(),
            program,
            strategy,
            verdict,
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// A program that could not be run.
    pub(super) fn failed(error: anyhow::Error) -> Self {
        Self::Wrong(vec![format!("{error:#}")])
    }
}

// === impl Report ===

impl Report {
    pub(super) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Whether anything is wrong.
    pub(super) fn fails(&self) -> bool {
        let wrong = |finding: &Finding| matches!(finding.verdict, Verdict::Wrong(_));
        self.findings.iter().any(wrong)
    }

    /// The table.
    pub(super) fn text(&self) -> String {
        let names = self.findings.iter().map(|finding| finding.machine.len());
        let width = names.max().unwrap_or(0).max(7);
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{:width$}  {:21}  MIG     result",
            "profile", "program"
        );
        for Finding {
            machine,
            program,
            strategy,
            verdict,
        } in &self.findings
        {
            let (program, strategy) = (program.name(), strategy.name());
            let _ = write!(text, "{machine:width$}  {program:21}  {strategy:6}  ");
            let _ = match verdict {
                Verdict::Well(what) => writeln!(text, "ok: {what}"),
                Verdict::Wrong(problems) => {
                    writeln!(text, "WRONG\n    {}", problems.join("\n    "))
                }
            };
        }
        text
    }
}
