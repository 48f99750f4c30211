//! `HOUSE.md`.

use std::iter;

use super::{NamedTree, REVIEWED, rows::ROWS};
use crate::report::aligned;

/// The figures of other projects, as a table in Markdown. Their heads are of August 2026, but
/// kube's and rust-extensions' of July, akri's of June and tonic's of May.
const MODELS: &str = include_str!("models.md");

/// The end of the page.
const REASONS: &str = "\
## Where a reason beats the figure

- **Names of one word.** `new`, `main`, and the methods of a trait (`fmt`, `from`, `next`) have their names from elsewhere. They count here, as
  they do for the other projects; `bench/house --list one-word` leaves them out.
- **Unique type names.** The house has one `Error` per module, and `cdi::Spec` and `config::Error` are plain with their module. A
  longer name that repeats its module is no better.
- **`expect(`.** A text that says why the call cannot fail is a proof for the reader. The aim is not none.
- **Tuple parameters.** A function that is passed to an iterator takes the tuple that the iterator yields.
- **Re-bindings.** `let sender = sender.clone();` before a closure that moves it is common Rust, and no broken chain.
- **Examples and sources.** A field needs no example, and a line without a surprise needs no source.
";

/// The page: a table with a row for each figure, and its limits.
pub(super) fn write_page(before: &NamedTree, now: &NamedTree) -> String {
    let table = aligned(&table_lines(before, now));
    format!(
        "# The house in figures

`bench/house` counts these figures in the Rust files of two states of the code with one program and one set of rules, which
[README.md](README.md#the-house-in-figures) lists. The figures of other projects come from the review of {REVIEWED}, whose scripts are not kept here;
an empty cell was not measured.

{table}
{REASONS}"
    )
}

/// The head and a line of cells for each figure.
fn table_lines(before: &NamedTree, now: &NamedTree) -> Vec<Vec<String>> {
    let titles = [("before", before), ("now", now)];
    let [before_title, now_title] =
        titles.map(|(title, named)| format!("{title} ({})", named.commit));
    let head = vec![String::new(), before_title, now_title];
    let rows = ROWS.iter().map(|(name, measure)| {
        vec![
            (*name).to_owned(),
            measure(&before.tree),
            measure(&now.tree),
        ]
    });
    let own = iter::once(head).chain(rows);
    own.map(|cells| {
        let models = model_cells(&cells[0]);
        [cells, models].concat()
    })
    .collect()
}

/// The cells of the other projects for a figure; those of the head for the empty name.
fn model_cells(name: &str) -> Vec<String> {
    let mut lines = MODELS
        .lines()
        .map(|line| line.trim_matches('|').split('|').map(str::trim));
    let found = lines.find_map(|mut cells| (cells.next() == Some(name)).then_some(cells));
    let cells = found.into_iter().flatten();
    cells.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_of_another_project_has_its_row_and_column() {
        assert_eq!(model_cells("")[7], "akri");
        assert_eq!(model_cells("tracing spans")[..4], ["203", "6", "4", ""]);
        for line in MODELS.lines().skip(2) {
            let name = line.split('|').nth(1).unwrap().trim();
            assert!(ROWS.iter().any(|(row, _)| *row == name), "{name}");
            assert_eq!(model_cells(name).len(), 8, "{name}");
        }
    }
}
