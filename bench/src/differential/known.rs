//! The documented differences. A difference counts as known only if a rule here says what it looks
//! like *and* a table says what it is and why: `docs/nvidia.md` for what Ostler does differently
//! on purpose, `bench/differential.md` for what differs between the version that can be run here
//! and the one that Ostler follows. The tables are read when the comparison runs.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context as _, ensure};

use super::{case::Case, compare::Difference};

mod rules;

/// The tables, below the repository: file, and heading above the table.
const TABLES: [(&str, &str); 2] = [
    ("docs/nvidia.md", "## Differences"),
    ("bench/differential.md", "## Versions"),
];

/// What a documented difference looks like in a recording.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// The id of its row.
    id: &'static str,
    /// Whether this is it.
    holds: fn(&Case, &Difference) -> bool,
}

/// The documented differences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    ids: BTreeSet<String>,
}

// === impl Known ===

impl Known {
    /// Reads the tables of a source tree.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut ids = BTreeSet::new();
        for (file, heading) in TABLES {
            let text = fs_err::read_to_string(root.join(file))?;
            let found = rows(&text, heading)
                .with_context(|| format!("{file} has no table below `{heading}`"))?;
            for id in found {
                let new = ids.insert(id.clone());
                ensure!(new, "{file}: the difference `{id}` is documented twice");
            }
        }
        Ok(Self { ids })
    }

    /// The documented differences of these ids.
    #[cfg(test)]
    pub(super) fn of(ids: &[&str]) -> Self {
        let ids = ids.iter().map(|&id| id.to_owned()).collect();
        Self { ids }
    }

    /// The id of the documented difference that this is.
    pub(crate) fn explain(&self, case: &Case, difference: &Difference) -> Option<&'static str> {
        let mut rules = rules::RULES.iter();
        let rule =
            rules.find(|rule| self.ids.contains(rule.id) && (rule.holds)(case, difference))?;
        Some(rule.id)
    }

    /// The documented differences that are not among these.
    pub(crate) fn unseen(&self, seen: &BTreeSet<String>) -> Vec<String> {
        self.ids.difference(seen).cloned().collect()
    }
}

/// The first cells of the table below a heading; nothing if there is no such table.
fn rows(text: &str, heading: &str) -> Option<Vec<String>> {
    let below = text
        .lines()
        .skip_while(|line| line.trim() != heading)
        .skip(1);
    let table = below
        .take_while(|line| !line.starts_with('#'))
        .filter(|line| line.starts_with('|'));
    let first = |line: &str| {
        let cell = line.split('|').nth(1).unwrap_or_default();
        cell.trim().trim_matches('`').to_owned()
    };
    let cells: Vec<_> = table.map(first).collect();
    // The first two lines are the names of the columns and the rule below them.
    (cells.len() > 2).then(|| cells[2..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page

| id | other table |
|---|---|
| `no` | not this one |

## Differences

Words.

| id | upstream | Ostler | why |
|---|---|---|---|
| `socket` | a | b | c |
| nodes | a | b | c |

## Next

| id | x |
|---|---|
| `later` | y |
";

    #[test]
    fn reads_the_ids_below_the_heading_only() {
        assert_eq!(rows(PAGE, "## Differences").unwrap(), ["socket", "nodes"]);
        assert_eq!(rows(PAGE, "## Next").unwrap(), ["later"]);
        assert_eq!(rows(PAGE, "## Missing"), None);
    }

    #[test]
    fn every_rule_is_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let known = Known::read(&root).unwrap();
        for rule in rules::RULES {
            assert!(known.ids.contains(rule.id), "{} is not documented", rule.id);
        }
    }
}
