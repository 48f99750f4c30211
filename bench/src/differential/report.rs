//! What came out, for a person and as JSON.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde::Serialize;

use super::{
    compare::{Difference, Shown, Verdict},
    known::Known,
};

/// How many differences of a case are printed.
const SHOWN: usize = 40;

/// What came out of all cases.
#[derive(Debug)]
pub(crate) struct Report {
    cases: Vec<(String, Done)>,
    unseen: Vec<String>,
}

/// What came out of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Both programs were recorded and compared.
    Compared(Verdict),
    /// Only NVIDIA's program was recorded.
    Pending,
    /// One of the two could not be run or asked.
    Failed(String),
}

#[derive(Debug, Serialize)]
struct Json<'a> {
    equal: usize,
    explained: usize,
    different: usize,
    failed: usize,
    pending: usize,
    /// Documented differences that no case showed.
    unseen: &'a [String],
    cases: Vec<Entry<'a>>,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    name: &'a str,
    verdict: &'static str,
    facts: usize,
    explained: BTreeMap<&'a str, usize>,
    differences: Vec<Shown<'a>>,
}

// === impl Report ===

impl Report {
    /// The report of these cases. Whether a documented difference was never seen is only said if
    /// all cases were `complete`.
    pub(crate) fn new(cases: Vec<(String, Done)>, known: &Known, complete: bool) -> Self {
        let verdicts = cases.iter().filter_map(|(_, done)| done.verdict());
        let seen: BTreeSet<_> = verdicts.flat_map(|v| v.explained.keys().cloned()).collect();
        let unseen = if complete {
            known.unseen(&seen)
        } else {
            Vec::new()
        };
        Self { cases, unseen }
    }

    /// Whether there is a difference that nothing explains, or a case that could not be run.
    pub(crate) fn fails(&self) -> bool {
        self.count("DIFFERENT") + self.count("FAILED") > 0
    }

    fn count(&self, word: &str) -> usize {
        let words = self.cases.iter().map(|(_, done)| done.word());
        words.filter(|other| *other == word).count()
    }

    /// A table, the differences, and the sums.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let widths = self.cases.iter().map(|(name, _)| name.chars().count());
        let width = widths.max().unwrap_or(0).max(4);
        let _ = writeln!(text, "{:width$}  facts  verdict", "case");
        for (name, done) in &self.cases {
            let facts = done
                .verdict()
                .map_or(String::new(), |v| v.facts.to_string());
            let _ = writeln!(text, "{name:width$}  {facts:>5}  {}", done.sentence());
        }
        for (name, done) in &self.cases {
            let different = done.verdict().map_or(&[][..], |v| &v.different);
            if !different.is_empty() {
                let _ = write!(text, "\n{name}\n{}", listing(different));
            }
        }
        let _ = writeln!(text, "\n{}", self.sums());
        if !self.unseen.is_empty() {
            let unseen = self.unseen.join(", ");
            let _ = writeln!(
                text,
                "warning: documented and not seen in any case: {unseen}"
            );
        }
        text
    }

    fn sums(&self) -> String {
        format!(
            "{} cases: {} equal, {} explained, {} different, {} failed, {} pending (only NVIDIA's side is recorded)",
            self.cases.len(),
            self.count("equal"),
            self.count("explained"),
            self.count("DIFFERENT"),
            self.count("FAILED"),
            self.count("pending"),
        )
    }

    /// All of it as JSON.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        let cases = self.cases.iter().map(|(name, done)| entry(name, done));
        let json = Json {
            equal: self.count("equal"),
            explained: self.count("explained"),
            different: self.count("DIFFERENT"),
            failed: self.count("FAILED"),
            pending: self.count("pending"),
            unseen: &self.unseen,
            cases: cases.collect(),
        };
        Ok(serde_json::to_string_pretty(&json)?)
    }
}

// === impl Done ===

impl Done {
    fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Compared(verdict) => Some(verdict),
            Self::Pending | Self::Failed(_) => None,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed(_) => "FAILED",
            Self::Compared(verdict) if !verdict.different.is_empty() => "DIFFERENT",
            Self::Compared(verdict) if !verdict.explained.is_empty() => "explained",
            Self::Compared(_) => "equal",
        }
    }

    fn sentence(&self) -> String {
        let verdict = match self {
            Self::Compared(verdict) => verdict,
            Self::Pending => return "pending".to_owned(),
            Self::Failed(why) => return format!("FAILED: {why}"),
        };
        let ids = verdict.explained.iter();
        let ids: Vec<_> = ids.map(|(id, count)| format!("{id} ({count})")).collect();
        let ids = ids.join(", ");
        match (verdict.different.len(), ids.is_empty()) {
            (0, true) => "equal".to_owned(),
            (0, false) => format!("explained by {ids}"),
            (count, true) => format!("DIFFERENT in {count} facts"),
            (count, false) => format!("DIFFERENT in {count} facts; others explained by {ids}"),
        }
    }
}

/// Differences for a person.
fn listing(differences: &[Difference]) -> String {
    let mut text = String::new();
    for Difference { at, upstream, ours } in differences.iter().take(SHOWN) {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        let (upstream, ours) = (side(upstream), side(ours));
        let _ = writeln!(
            text,
            "  {at}\n    - upstream: {upstream}\n    + ostler:   {ours}"
        );
    }
    if let Some(more) = differences
        .len()
        .checked_sub(SHOWN)
        .filter(|more| *more > 0)
    {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

fn entry<'a>(name: &'a str, done: &'a Done) -> Entry<'a> {
    let verdict = done.verdict();
    let explained = verdict.iter().flat_map(|verdict| &verdict.explained);
    let different = verdict.iter().flat_map(|verdict| &verdict.different);
    Entry {
        name,
        verdict: done.word(),
        facts: verdict.map_or(0, |verdict| verdict.facts),
        explained: explained.map(|(id, count)| (id.as_str(), *count)).collect(),
        differences: different.map(Difference::shown).collect(),
    }
}

#[cfg(test)]
mod tests;
