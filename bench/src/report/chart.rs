//! `results.svg`: both programs' medians as pairs of bars, on a logarithmic axis for each unit.

use std::fmt::Write as _;

use self::axis::Axis;
use super::{Report, Row};
use crate::{
    figures::Unit,
    value::{Ratio, Value, Verdict},
};

mod axis;

/// All lengths are in pixels.
const WIDTH: f64 = 920.0;
const MARGIN: f64 = 24.0;
/// Where names end, bars begin and end, and ratios end.
const NAMES: f64 = 262.0;
const LEFT: f64 = 272.0;
const RIGHT: f64 = 700.0;
const RATIOS: f64 = WIDTH - MARGIN;
/// Heights of a bar, of a row, of a heading, and of a panel's axis.
const BAR: f64 = 9.0;
const ROW: f64 = 28.0;
const HEADING: f64 = 26.0;
const AXIS: f64 = 34.0;
const TOP: f64 = 92.0;
/// The width of a small letter.
const LETTER: f64 = 5.4;

/// Sizes that are shown of many.
const SHOWN: [usize; 9] = [1, 2, 3, 4, 6, 8, 12, 15, 16];

/// The panels: what they show, and their title. Counts have none: most are small or nothing.
const PANELS: [(Unit, &str); 4] = [
    (Unit::Seconds, "Time"),
    (Unit::Bytes, "Memory and size"),
    (Unit::Share, "CPU"),
    (Unit::PerSecond, "Idle wake-ups"),
];

/// How it looks on light and on dark pages.
const STYLE: &str = "\
text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:18px;font-weight:600}.panel{font-size:14px;font-weight:600}
.head{font-weight:600}.head,.about,.small{fill:#59636e}
.small{font-size:10px}
.end{text-anchor:end}.mid{text-anchor:middle}
.page{fill:#fff}.grid{stroke:#d1d9e0;stroke-width:1}
.ours{fill:#0969da}.theirs{fill:#8c959f}.never{fill:none;stroke:#8c959f;stroke-dasharray:4 3}
.win{fill:#1a7f37}.loss{fill:#cf222e;font-weight:600}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.head,.about,.small{fill:#9198a1}
.page{fill:#0d1117}
.grid{stroke:#30363d}.ours{fill:#4493f8}.theirs{fill:#6e7681}.never{stroke:#9198a1}
.win{fill:#3fb950}.loss{fill:#ff7b72}}";

/// The drawing, and how far down it is.
#[derive(Debug, Default)]
struct Canvas {
    body: String,
    y: f64,
}

/// The drawing of a report.
pub(super) fn draw(report: &Report) -> String {
    let mut canvas = Canvas {
        body: String::new(),
        y: TOP,
    };
    for (unit, title) in PANELS {
        canvas.panel(report, unit, title);
    }
    let height = canvas.y + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n{}{}</svg>\n",
        head(report),
        canvas.body,
    )
}

/// Title, machine and legend.
fn head(report: &Report) -> String {
    let machine = &report.machine;
    let peer = machine.peer.as_deref().unwrap_or("nothing");
    let mut canvas = Canvas::default();
    canvas.text(MARGIN, 34.0, "title", &format!("Ostler beside {peer}"));
    let about = format!(
        "commit {}, {}, {} cores of {}, simulated driver library",
        machine.commit, machine.date, machine.cores, machine.processor
    );
    canvas.text(MARGIN, 54.0, "about", &about);
    let how = "Medians. Logarithmic: each line is ten times the one before. Shorter is better.";
    canvas.text(MARGIN, 72.0, "about", how);
    for (at, class, name) in [(0.0, "ours", "Ostler"), (80.0, "theirs", "NVIDIA")] {
        canvas.bar(RATIOS - 150.0 + at, 24.0, 12.0, class);
        canvas.text(RATIOS - 132.0 + at, 33.0, "", name);
    }
    canvas.body
}

/// The sections of a report with those rows of this unit that are shown.
fn shown(report: &Report, unit: Unit) -> Vec<(&str, Vec<&Row>)> {
    let fits = |row: &&Row| {
        let ours = row.values.ours.figures();
        row.values.theirs.is_some() && ours.is_some_and(|ours| ours.unit == unit) && few(&row.name)
    };
    let sections = report.sections.iter();
    let sections = sections.map(|section| {
        let rows = section.rows.iter().filter(fits).collect::<Vec<_>>();
        (section.title.as_str(), rows)
    });
    sections.filter(|(_, rows)| !rows.is_empty()).collect()
}

/// Whether a row is among the sizes that are shown, or none of a size.
fn few(name: &str) -> bool {
    let size = name.strip_prefix("best ").and_then(|rest| {
        let (size, _) = rest.split_once(' ')?;
        size.parse::<usize>().ok()
    });
    size.is_none_or(|size| SHOWN.contains(&size))
}

// === impl Canvas ===

impl Canvas {
    /// All rows of one unit, below their axis.
    fn panel(&mut self, report: &Report, unit: Unit, title: &str) {
        let sections = shown(report, unit);
        let rows: Vec<&Row> = sections.iter().flat_map(|(_, rows)| rows.clone()).collect();
        let Some(axis) = Axis::of(&rows, unit) else {
            return;
        };
        let heads = if sections.len() > 1 {
            sections.len()
        } else {
            0
        };
        #[expect(clippy::cast_precision_loss, reason = "a few rows")]
        let height = rows.len() as f64 * ROW + heads as f64 * HEADING;
        self.y += AXIS;
        self.text(MARGIN, self.y - 8.0, "panel", title);
        for (at, name) in axis.marks() {
            let x = LEFT + at * (RIGHT - LEFT);
            self.text(x, self.y - 8.0, "small mid", &name);
            self.line(x, height);
        }
        for (title, rows) in &sections {
            if heads > 0 {
                self.text(MARGIN, self.y + 18.0, "head", title);
                self.y += HEADING;
            }
            for row in rows {
                self.row(row, &axis, unit);
            }
        }
        self.y += 10.0;
    }

    /// A name, two bars with their values, and the ratio.
    fn row(&mut self, row: &Row, axis: &Axis, unit: Unit) {
        let middle = self.y + ROW / 2.0 + 4.0;
        self.text(NAMES, middle, "end", &row.name);
        let tops = [self.y + ROW / 2.0 - BAR - 1.0, self.y + ROW / 2.0 + 1.0];
        for ((value, class), top) in row.values.iter().zip(["ours", "theirs"]).zip(tops) {
            self.value(value, class, top, axis);
        }
        if let Some(ratio) = row.ratio {
            let (class, words) = verdict(&ratio, unit);
            self.text(RATIOS, middle, &format!("end {class}"), &words);
        }
        self.y += ROW;
    }

    fn value(&mut self, value: &Value, class: &str, top: f64, axis: &Axis) {
        let length = axis.place(value).unwrap_or(0.0) * (RIGHT - LEFT);
        match value {
            Value::Never { .. } => self.bar(LEFT, top, length, "never"),
            Value::Nothing { .. } => {}
            Value::Figures(_) | Value::Beyond { .. } => {
                self.bar(LEFT, top, length.max(1.0), class);
            }
        }
        let [_, words, _] = value.cells();
        let x = LEFT + length + 5.0;
        // So that no line of the grid goes through the words.
        #[expect(clippy::cast_precision_loss, reason = "a few letters")]
        self.bar(x, top, words.chars().count() as f64 * LETTER, "page");
        self.text(x, top + BAR - 0.5, "small", &words);
    }

    fn bar(&mut self, x: f64, y: f64, width: f64, class: &str) {
        let bar = format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{BAR}\" rx=\"1.5\"/>\n"
        );
        self.body.push_str(&bar);
    }

    /// A line of the grid, from here down.
    fn line(&mut self, x: f64, height: f64) {
        let (top, bottom) = (self.y, self.y + height);
        let line = writeln!(
            self.body,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"
        );
        line.expect("a string takes everything");
    }

    fn text(&mut self, x: f64, y: f64, class: &str, words: &str) {
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        let words = words.replace('>', "&gt;").replace('*', "");
        let text = format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>\n");
        self.body.push_str(&text);
    }
}

fn verdict(ratio: &Ratio, unit: Unit) -> (&'static str, String) {
    let [words, _] = ratio.cells(unit);
    match ratio.verdict() {
        Verdict::Win => ("win", words),
        Verdict::Same => ("", words),
        Verdict::Loss => ("loss", words),
    }
}

#[cfg(test)]
mod tests;
