//! The results as a person and as a program reads them.

use std::{fmt::Write as _, path::Path};

use serde::Serialize;

use crate::{figures::Figures, machine::Machine};

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Where and when.
    pub(crate) machine: Machine,
    /// What.
    pub(crate) sections: Vec<Section>,
}

/// Measurements that belong together.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    /// What was measured.
    pub(crate) title: String,
    /// The measurements.
    pub(crate) rows: Vec<Row>,
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    #[serde(flatten)]
    figures: Figures,
    /// What the median should be at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    aim: Option<f64>,
}

// === impl Report ===

impl Report {
    /// Tables in Markdown that are aligned for a terminal too.
    pub(crate) fn text(&self) -> String {
        let tables = self.sections.iter().map(Section::table);
        tables.collect::<Vec<_>>().join("\n")
    }

    /// Writes `RESULTS.md` and `results.json`; says where.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<String> {
        let (page, data) = (folder.join("RESULTS.md"), folder.join("results.json"));
        fs_err::write(&page, self.page())?;
        fs_err::write(&data, serde_json::to_string_pretty(self)? + "\n")?;
        Ok(format!("{} and {}", page.display(), data.display()))
    }

    fn page(&self) -> String {
        let Machine {
            commit,
            date,
            cores,
            processor,
            kernel,
            version,
        } = &self.machine;
        format!(
            "# Results\n\nWritten by `cargo run --release -p bench`; what each row means is in \
             [README.md](README.md).\n\n{version}, commit {commit}, {date}, {cores} cores of \
             {processor}, Linux {kernel}.\n\n{}",
            self.text()
        )
    }
}

// === impl Section ===

impl Section {
    /// A section without rows.
    pub(crate) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            rows: Vec::new(),
        }
    }

    fn table(&self) -> String {
        let head = ["", "n", "min", "median", "p90", "p99", "aim", ""].map(str::to_owned);
        let mut lines = vec![head];
        lines.extend(self.rows.iter().map(Row::cells));
        let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max();
        let widths: [usize; 8] = std::array::from_fn(|at| width(at).unwrap_or(0).max(3));
        let mut text = format!("## {}\n\n", self.title);
        for (number, line) in lines.iter().enumerate() {
            text.push_str(&written(line, &widths));
            if number == 0 {
                text.push_str(&rule(&widths));
            }
        }
        text
    }
}

// === impl Row ===

impl Row {
    /// A measurement without an aim.
    pub(crate) fn new(name: &str, figures: Figures) -> Self {
        Self {
            name: name.to_owned(),
            figures,
            aim: None,
        }
    }

    /// The same with an aim for its median, in the unit of the figures.
    pub(crate) fn aim(mut self, aim: f64) -> Self {
        self.aim = Some(aim);
        self
    }

    fn cells(&self) -> [String; 8] {
        let figures = &self.figures;
        let value = |value| figures.unit.write(value);
        let several = |figure: f64| match figures.count {
            1 => String::new(),
            _ => value(figure),
        };
        let verdict = match self.aim {
            Some(aim) if figures.median <= aim => "met",
            Some(_) => "missed",
            None => "",
        };
        [
            self.name.clone(),
            figures.count.to_string(),
            several(figures.min),
            value(figures.median),
            several(figures.p90),
            several(figures.p99),
            self.aim.map(value).unwrap_or_default(),
            verdict.to_owned(),
        ]
    }
}

/// A line of a table: names to the left, figures to the right.
fn written(line: &[String; 8], widths: &[usize; 8]) -> String {
    let mut text = String::new();
    for (at, (cell, width)) in line.iter().zip(widths).enumerate() {
        let done = match at {
            0 => write!(text, "| {cell:<width$} "),
            _ => write!(text, "| {cell:>width$} "),
        };
        done.expect("a string takes everything");
    }
    text + "|\n"
}

fn rule(widths: &[usize; 8]) -> String {
    let mut text = format!("| {} ", "-".repeat(widths[0]));
    for width in &widths[1..] {
        let dashes = "-".repeat(width - 1);
        text = format!("{text}| {dashes}: ");
    }
    text + "|\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Unit;

    fn section() -> Section {
        let mut section = Section::new("title");
        let figures = Figures::of(vec![0.010, 0.020, 0.030], Unit::Seconds);
        section.rows.push(Row::new("start", figures).aim(0.015));
        let bytes = Figures::one(1_048_576.0, Unit::Bytes);
        section
            .rows
            .push(Row::new("memory", bytes).aim(2_097_152.0));
        section
    }

    #[test]
    fn a_table_says_which_aims_are_met() {
        let expected = "\
## title

|        |   n |     min |  median |     p90 |     p99 |     aim |        |
| ------ | --: | ------: | ------: | ------: | ------: | ------: | -----: |
| start  |   3 | 10.0 ms | 20.0 ms | 30.0 ms | 30.0 ms | 15.0 ms | missed |
| memory |   1 |         | 1.0 MiB |         |         | 2.0 MiB |    met |
";
        assert_eq!(section().table(), expected);
    }

    #[test]
    fn the_data_has_plain_numbers_and_their_unit() {
        let data = serde_json::to_value(section()).unwrap();
        assert_eq!(data["rows"][0]["median"], 0.020);
        assert_eq!(data["rows"][0]["unit"], "seconds");
        assert_eq!(data["rows"][0]["aim"], 0.015);
    }
}
