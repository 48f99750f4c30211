//! A section as a table in Markdown that is aligned for a terminal too.

use super::{Row, Section};
use crate::{figures::Unit, value::Value};

/// The table of a section, with its title and its notes.
pub(super) fn write(section: &Section) -> String {
    let paired = section.rows.iter().any(|row| row.values.theirs.is_some());
    let mut notes: Vec<&'static str> = Vec::new();
    let mut lines = vec![match paired {
        true => paired_head(),
        false => own_head(),
    }];
    for row in &section.rows {
        let note = row.why.map(|why| number(&mut notes, why));
        lines.push(match paired {
            true => paired_cells(row, note),
            false => own_cells(row),
        });
    }
    let mut text = format!("## {}\n\n{}", section.title, aligned(&lines));
    if !notes.is_empty() {
        text.push('\n');
    }
    for (at, note) in notes.iter().enumerate() {
        text.push_str(&format!("{}. {note}\n", at + 1));
    }
    text
}

/// The number of a note; the same words have the same number.
fn number(notes: &mut Vec<&'static str>, why: &'static str) -> usize {
    let known = notes.iter().position(|note| *note == why);
    let at = known.unwrap_or_else(|| {
        notes.push(why);
        notes.len() - 1
    });
    at + 1
}

fn paired_head() -> Vec<String> {
    let head = [
        "",
        "n",
        "Ostler",
        "p99",
        "n",
        "NVIDIA",
        "p99",
        "Ostler is",
        "at p99",
        "aim",
        "note",
    ];
    head.map(str::to_owned).to_vec()
}

fn paired_cells(row: &Row, note: Option<usize>) -> Vec<String> {
    let mut cells = vec![row.name.clone()];
    cells.extend(row.values.ours.cells());
    let theirs = row.values.theirs.as_ref();
    cells.extend(theirs.map(Value::cells).unwrap_or_default());
    let unit = row.values.ours.figures().map(|ours| ours.unit);
    let ratio = row.ratio.zip(unit).map(|(ratio, unit)| ratio.cells(unit));
    cells.extend(ratio.unwrap_or_default());
    cells.push(aim(row));
    cells.push(note.map_or(String::new(), |note| note.to_string()));
    cells
}

fn own_head() -> Vec<String> {
    let head = ["", "n", "min", "median", "p90", "p99", "aim"];
    head.map(str::to_owned).to_vec()
}

fn own_cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.name.clone()];
    match row.values.ours.figures() {
        Some(figures) => {
            let value = |value| figures.unit.write(value);
            let several = |figure: f64| match figures.count {
                1 => String::new(),
                _ => value(figure),
            };
            cells.push(figures.count.to_string());
            cells.push(several(figures.min));
            cells.push(value(figures.median));
            cells.extend([figures.p90, figures.p99].map(several));
        }
        None => {
            let [count, text, _] = row.values.ours.cells();
            let none = String::new;
            cells.extend([count, none(), text, none(), none()]);
        }
    }
    cells.push(aim(row));
    cells
}

/// The aim, and whether it is met.
fn aim(row: &Row) -> String {
    let (Some(aim), Some(figures)) = (row.aim, row.values.ours.figures()) else {
        return String::new();
    };
    let verdict = match figures.median <= aim {
        true => "met",
        false => "**missed**",
    };
    let aim = match figures.unit {
        Unit::Seconds if aim >= 1.0 => format!("{aim:.0} s"),
        unit => unit.write(aim),
    };
    format!("{aim}: {verdict}")
}

/// Names to the left, figures to the right.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let length = |line: &Vec<String>, at: usize| line.get(at).map_or(0, |c| c.chars().count());
    let width = |at| lines.iter().map(|line| length(line, at)).max();
    let widths: Vec<usize> = (0..columns)
        .map(|at| width(at).unwrap_or(0).max(3))
        .collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            text.push_str(&match at {
                0 => format!("| {cell:<width$} "),
                _ => format!("| {cell:>width$} "),
            });
        }
        text.push_str("|\n");
        if number == 0 {
            text.push_str(&rule(&widths));
        }
    }
    text
}

fn rule(widths: &[usize]) -> String {
    let dashes = |(at, width): (usize, &usize)| match at {
        0 => format!("| {} ", "-".repeat(*width)),
        _ => format!("| {}: ", "-".repeat(width - 1)),
    };
    widths.iter().enumerate().map(dashes).collect::<String>() + "|\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{figures::Figures, pair::Pair};

    fn section(rows: Vec<Row>) -> Section {
        Section {
            title: "title".to_owned(),
            rows,
        }
    }

    fn times(values: &[f64]) -> Value {
        Value::Figures(Figures::of(values.to_vec(), Unit::Seconds))
    }

    #[test]
    fn a_table_of_ours_alone_says_which_aims_are_met() {
        let starts = Figures::of(vec![0.010, 0.020, 0.030], Unit::Seconds);
        let bytes = Figures::one(1_048_576.0, Unit::Bytes);
        let section = section(vec![
            Row::own("start", starts).aim(0.015),
            Row::own("memory", bytes).aim(2_097_152.0),
        ]);
        let expected = "\
## title

|        |   n |     min |  median |     p90 |     p99 |                 aim |
| ------ | --: | ------: | ------: | ------: | ------: | ------------------: |
| start  |   3 | 10.0 ms | 20.0 ms | 30.0 ms | 30.0 ms | 15.0 ms: **missed** |
| memory |   1 |         | 1.0 MiB |         |         |        2.0 MiB: met |
";
        assert_eq!(write(&section), expected);
    }

    #[test]
    fn a_table_of_both_has_ratios_and_the_reasons_of_losses() {
        let pair = |ours, theirs| Pair {
            ours,
            theirs: Some(theirs),
        };
        let section = section(vec![
            Row::new(
                "Allocate 1",
                pair(times(&[0.001; 100]), times(&[0.002; 100])),
            ),
            Row::new("SIGTERM to exit", pair(times(&[0.3]), times(&[0.1]))),
            Row::new(
                "best 3",
                pair(times(&[0.5]), Value::Beyond { seconds: 60.0 }),
            ),
            Row::new("labels", pair(Value::NOT_YET, times(&[0.1]))),
        ]);
        insta::assert_snapshot!(write(&section));
    }
}
