//! The plots: lines over the course of a run, one panel below the other.

use std::fmt::Write as _;

use super::{Course, Findings};

/// All lengths are in pixels.
const WIDTH: f64 = 920.0;
const MARGIN: f64 = 24.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 84.0;
/// Heights of a panel's lines, and of what is above and below them.
const HEIGHT: f64 = 190.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 40.0;
/// Names of lines do not come closer than this.
const NAME: f64 = 15.0;

/// How it looks on light and on dark pages.
const STYLE: &str = "\
text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:18px;font-weight:600}.panel{font-size:14px;font-weight:600}
.about,.small{fill:#59636e}.small{font-size:10px}.end{text-anchor:end}.mid{text-anchor:middle}
.page{fill:#fff}.grid{stroke:#d1d9e0;stroke-width:1}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}
.a{stroke:#0969da}.b{stroke:#1a7f37}.c{stroke:#8c959f}.d{stroke:#bc4c00}
.name-a{fill:#0969da;font-weight:600}.name-b{fill:#1a7f37}.name-c{fill:#59636e}.name-d{fill:#bc4c00}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.about,.small,.name-c{fill:#9198a1}
.page{fill:#0d1117}.grid{stroke:#30363d}
.a{stroke:#4493f8}.b{stroke:#3fb950}.c{stroke:#9198a1}.d{stroke:#f0883e}
.name-a{fill:#4493f8}.name-b{fill:#3fb950}.name-d{fill:#f0883e}}";

/// The looks of the lines, in order.
const CLASSES: [&str; 4] = ["a", "b", "c", "d"];

/// Lines on one pair of axes.
struct Panel<'a> {
    title: String,
    /// The values of the grid's lines, the lowest first, and what each is called.
    marks: Vec<(f64, String)>,
    /// How a mean is written.
    word: fn(f64) -> String,
    /// Each with its look.
    lines: Vec<(&'a Course, &'static str)>,
}

/// Cards that stay whole under each policy.
pub(super) fn packing(findings: &Findings) -> String {
    let packing = &findings.packing;
    let marks = (0..=packing.cards).step_by(2);
    let panel = Panel {
        title: "Cards that nobody uses".to_owned(),
        #[expect(clippy::cast_precision_loss, reason = "a few cards")]
        marks: marks.map(|at| (at as f64, at.to_string())).collect(),
        word: |mean| format!("{mean:.2}"),
        lines: packing.courses.iter().zip(CLASSES).collect(),
    };
    let about = format!(
        "{} containers come or go on {} cards, each shared as {} units; they want 1 to {}",
        findings.events, packing.cards, packing.units, packing.most
    );
    draw("Shared cards under four policies", &about, &[panel])
}

/// How well the cards of containers are connected.
pub(super) fn topology(findings: &Findings) -> String {
    let marks = [0.0, 0.25, 0.5, 0.75, 1.0];
    let whole = |part: f64| format!("{:.0} %", part * 100.0);
    let panels = findings.topology.iter().map(|machine| Panel {
        title: format!("{}, {} cards", machine.profile, machine.cards),
        marks: marks.map(|at| (at, whole(at))).into(),
        word: percent,
        lines: machine.courses.iter().zip(["a", "c"]).collect(),
    });
    let about = format!(
        "Score of a container's cards as a part of the best set that the empty machine has; {} events",
        findings.events
    );
    let panels: Vec<Panel<'_>> = panels.collect();
    draw("Whole cards, by topology", &about, &panels)
}

fn draw(title: &str, about: &str, panels: &[Panel<'_>]) -> String {
    let mut body = String::new();
    text(&mut body, (MARGIN, 34.0), "title", title);
    text(&mut body, (MARGIN, 54.0), "about", about);
    let how =
        "Each point is the mean over a hundredth of the run; the figures are means over all of it.";
    text(&mut body, (MARGIN, 72.0), "about", how);
    let mut top = TOP;
    for panel in panels {
        panel.draw(&mut body, top + ABOVE);
        top += ABOVE + HEIGHT + BELOW;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{top}\" \
         viewBox=\"0 0 {WIDTH} {top}\" role=\"img\">\n<style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{top}\" rx=\"8\"/>\n{body}</svg>\n"
    )
}

// === impl Panel ===

impl Panel<'_> {
    fn draw(&self, body: &mut String, top: f64) {
        let highest = self.marks.last().map_or(1.0, |(value, _)| *value);
        let y = |value: f64| top + HEIGHT * (1.0 - value / highest);
        text(body, (MARGIN, top - 14.0), "panel", &self.title);
        for (value, name) in &self.marks {
            let y = y(*value);
            put(
                body,
                &format!(
                    "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
                ),
            );
            text(body, (LEFT - 8.0, y + 3.5), "small end", name);
        }
        for (words, x) in [("first event", LEFT), ("last event", RIGHT)] {
            text(body, (x, top + HEIGHT + 16.0), "small mid", words);
        }
        for (course, class) in &self.lines {
            let points: Vec<String> = places(course, y).collect();
            let points = points.join(" ");
            put(
                body,
                &format!("<polyline class=\"line {class}\" points=\"{points}\"/>"),
            );
        }
        self.names(body, y);
    }

    /// The names beside the ends of the lines, the highest mean first.
    fn names(&self, body: &mut String, y: impl Fn(f64) -> f64) {
        let mut lines: Vec<_> = self.lines.iter().collect();
        lines.sort_by(|(a, _), (b, _)| b.mean.total_cmp(&a.mean));
        let mut lowest = f64::NEG_INFINITY;
        for (course, class) in lines {
            let at = (y(course.mean) + 4.0).max(lowest + NAME);
            lowest = at;
            let words = format!("{} {}", course.name, (self.word)(course.mean));
            text(body, (RIGHT + 10.0, at), &format!("name-{class}"), &words);
        }
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// The points of a line.
fn places(course: &Course, y: impl Fn(f64) -> f64) -> impl Iterator<Item = String> {
    let count = course.points.len();
    #[expect(clippy::cast_precision_loss, reason = "a hundred points")]
    let x = move |at: usize| LEFT + (RIGHT - LEFT) * (at as f64 + 0.5) / count as f64;
    let points = course.points.iter().enumerate();
    points.map(move |(at, value)| format!("{:.1},{:.1}", x(at), y(*value)))
}

fn text(body: &mut String, (x, y): (f64, f64), class: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    put(
        body,
        &format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>"),
    );
}

fn put(body: &mut String, line: &str) {
    writeln!(body, "{line}").expect("a string takes everything");
}
