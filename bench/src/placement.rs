//! What placement makes of a node while thousands of containers come and go. Nothing is timed: the
//! numbers come from a seed, so that they are the same on every machine.

mod known;
mod machine;
mod packing;
mod page;
mod plot;
mod topology;
mod traffic;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::ensure;
use serde::Serialize;

use self::{packing::Packing, topology::Topology};

/// What the containers are made up from, if nothing else is said.
const SEED: u64 = 42;

/// The machine on which cards are shared.
const SHARED: &str = "dgx-a100";

/// The machines on which whole cards are handed out. Of more than eight, the known search takes too
/// long to be asked so often.
const WHOLE: [&str; 3] = ["dgx1-v100", "l40s-pcie", "dgx-a100"];

/// Let containers come and go, and write PLACEMENT.md, placement.json and two plots.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many containers come or go
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    events: usize,

    /// What the containers are made up from
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,

    /// Where to write [default: the folder of this program's source]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Findings {
    /// How many containers came or went.
    events: usize,
    packing: Packing,
    topology: Vec<Topology>,
}

/// One line of a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Course {
    /// Whose it is.
    name: &'static str,
    /// The mean over the whole run.
    mean: f64,
    /// The means over each hundredth of it.
    points: Vec<f64>,
}

/// Runs it, prints the page, and writes the files.
///
/// # Errors
/// If what is promised of the policies does not hold, or a file cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let findings = Findings::of(args.events, args.seed)?;
    let page = page::write(&findings);
    writeln!(io::stdout(), "{page}")?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = args.output.as_deref().unwrap_or(own);
    fs_err::create_dir_all(folder)?;
    let data = serde_json::to_string_pretty(&findings)? + "\n";
    for (name, text) in [
        ("PLACEMENT.md", page),
        ("placement.json", data),
        ("placement-packing.svg", plot::packing(&findings)),
        ("placement-topology.svg", plot::topology(&findings)),
    ] {
        fs_err::write(folder.join(name), text)?;
    }
    findings.check_states()?;
    findings.check_means()
}

// === impl Findings ===

impl Findings {
    fn of(events: usize, seed: u64) -> anyhow::Result<Self> {
        ensure!(events > 0, "nothing happens in 0 events");
        ensure!(seed > 0, "all numbers that come from 0 are 0");
        let packing = packing::run(&machine::read(SHARED)?, events, seed)?;
        let each = WHOLE.iter().map(|profile| {
            let snapshot = machine::read(profile)?;
            topology::run(profile, &snapshot, events, seed)
        });
        Ok(Self {
            events,
            packing,
            topology: each.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Fails if in any state a policy did not do what is promised of it.
    fn check_states(&self) -> anyhow::Result<()> {
        ensure!(
            self.packing.more == 0,
            "packed opened more cards than first-fit, {} times",
            self.packing.more
        );
        for machine in &self.topology {
            ensure!(
                machine.in_order.lower == 0,
                "on {} a set scored less than the known search's, {} times",
                machine.profile,
                machine.in_order.lower
            );
        }
        Ok(())
    }

    /// Fails if a long run does not end as is promised.
    fn check_means(&self) -> anyhow::Result<()> {
        let mean = |name: &str| {
            let mut courses = self.packing.courses.iter();
            let course = courses.find(|course| course.name == name);
            course.map_or(f64::NAN, |course| course.mean)
        };
        let (packed, first) = (mean("packed"), mean("first-fit"));
        ensure!(
            packed > first,
            "packed leaves {packed} whole cards free and first-fit {first}"
        );
        Ok(())
    }
}

// === impl Course ===

impl Course {
    /// A line through these values, one for each event.
    fn new(name: &'static str, values: &[f64]) -> Self {
        let points = values.chunks(values.len().div_ceil(100).max(1)).map(mean);
        Self {
            name,
            mean: mean(values),
            points: points.map(round).collect(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of events")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len().max(1) as f64)
}

/// To four digits, so that the file stays small.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_holds_and_the_same_is_found_each_time() {
        let findings = Findings::of(300, 42).unwrap();
        findings.check_states().unwrap();
        assert_eq!(findings, Findings::of(300, 42).unwrap());
        assert_ne!(findings, Findings::of(300, 43).unwrap());
        let page = page::write(&findings);
        assert!(page.contains("300 containers come or go"), "{page}");
        for picture in [plot::packing(&findings), plot::topology(&findings)] {
            assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
            assert!(!picture.contains("NaN"), "{picture}");
        }
    }

    #[test]
    fn a_broken_promise_is_an_error_that_names_it() {
        let findings = Findings::of(50, 42).unwrap();
        let mut more = findings.clone();
        more.packing.more = 2;
        let mut worse = findings.clone();
        let mut lower = findings;
        lower.topology[0].in_order.lower = 1;
        for (findings, word) in [(more, "opened more cards"), (lower, "dgx1-v100")] {
            let error = findings.check_states().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        worse.packing.courses[0].mean = worse.packing.courses[2].mean;
        let error = worse.check_means().unwrap_err().to_string();
        assert!(error.contains("and first-fit"), "{error}");
    }

    #[test]
    fn a_course_has_a_hundred_points_at_most() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let course = Course::new("a", &values);
        assert_eq!((course.points.len(), course.mean), (100, 499.5));
        assert_eq!((course.points[0], course.points[99]), (4.5, 994.5));
        assert_eq!(Course::new("b", &values[..3]).points, [0.0, 1.0, 2.0]);
    }
}
