//! What was seen of the agents, as a table.

use std::fmt::Write as _;

use super::{
    starts::Starts,
    watch::{Mode, Seen},
};
use crate::pair::Pair;

/// One row: its name, how many digits it has after the point, and its value; none if it is not
/// known.
type Row<T> = (&'static str, usize, fn(&T) -> Option<f64>);

const ROWS: [Row<Seen>; 7] = [
    ("snapshots published", 0, |seen| Some(count(seen.snapshots))),
    ("plans made", 0, |seen| seen.plans.map(count)),
    ("specs rewritten", 0, |seen| Some(count(seen.rewritten))),
    ("lists sent", 0, |seen| Some(count(seen.lists))),
    ("CPU time, s", 3, |seen| Some(seen.cpu)),
    ("wake-ups", 0, |seen| Some(seen.wakes)),
    ("anonymous memory, KiB", 0, |seen| {
        Some(seen.anonymous / 1024.0)
    }),
];

const START_ROWS: [Row<Starts>; 2] = [
    ("start to registered, ms", 1, Starts::registered),
    ("start to first list, ms", 1, Starts::listed),
];

/// The table.
pub(super) fn text(head: &str, seen: &[(Mode, Pair<Seen>)], starts: &Pair<Starts>) -> String {
    let mut text = format!("{head:<34}{:>10}{:>10}{:>10}", "ours", "beside", "ratio");
    for (mode, pair) in seen {
        let _ = write!(text, "\n{}", mode.name());
        add_rows(&mut text, &ROWS, pair);
    }
    text.push_str("\nmedian of the starts");
    add_rows(&mut text, &START_ROWS, starts);
    text
}

fn add_rows<T>(text: &mut String, rows: &[Row<T>], pair: &Pair<T>) {
    let shown = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    for (name, digits, value) in rows {
        let (ours, theirs) = (value(&pair.ours), pair.theirs.as_ref().and_then(value));
        let ratio = ours.zip(theirs).filter(|(_, theirs)| *theirs > 0.0);
        let ratio = ratio.map(|(ours, theirs)| ours / theirs);
        let _ = write!(
            text,
            "\n  {name:<32}{:>10}{:>10}{:>10}",
            shown(ours, *digits),
            shown(theirs, *digits),
            shown(ratio, 2)
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_agent_stands_beside_ours_with_the_ratio() {
        let ours = Seen {
            plans: Some(0),
            cpu: 0.3,
            wakes: 1000.0,
            anonymous: 2048.0,
            ..Seen::default()
        };
        let theirs = Some(Seen {
            snapshots: 60,
            plans: None,
            cpu: 0.6,
            ..ours
        });
        let seen = [
            (Mode::Defaults, Pair { ours, theirs }),
            (Mode::Cdi, Pair { ours, theirs: None }),
        ];
        let text = text("idle for 600 s", &seen, &Pair::default());
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        assert_eq!(lines.len(), 1 + 3 + 2 * ROWS.len() + START_ROWS.len());
        assert_eq!(lines[0], "idle for 600 s ours beside ratio");
        assert_eq!(lines[2], "snapshots published 0 60 0.00");
        assert_eq!(lines[3], "plans made 0 - -");
        assert_eq!(lines[6], "CPU time, s 0.300 0.600 0.50");
        assert_eq!(lines[8], "anonymous memory, KiB 2 2 1.00");
        assert_eq!(lines[16], "anonymous memory, KiB 2 - -");
    }
}
