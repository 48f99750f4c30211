//! The results as a person and as a program reads them.

use std::path::Path;

use serde::Serialize;

use crate::{
    figures::Figures,
    machine::Machine,
    pair::Pair,
    value::{Ratio, Value},
};

mod chart;
mod page;
mod table;
mod why;

pub(crate) use self::table::aligned;

/// The form of `results.json`; it goes up when a reader of the old form would go wrong.
const FORM: u32 = 2;

/// Everything that was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    form: u32,
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
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) values: Pair<Value>,
    /// How many times as much theirs needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<Ratio>,
    /// What our median should be at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    aim: Option<f64>,
    /// Why we lose, or why there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

// === impl Report ===

impl Report {
    /// A report of these measurements.
    pub(crate) fn new(machine: Machine, sections: Vec<Section>) -> Self {
        Self {
            form: FORM,
            machine,
            sections,
        }
    }

    /// Writes `RESULTS.md` and `results.json`, and `results.svg` if there was a peer; says where.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<String> {
        fs_err::create_dir_all(folder)?;
        let mut names = vec!["RESULTS.md", "results.json"];
        fs_err::write(folder.join("RESULTS.md"), page::write(self))?;
        let data = serde_json::to_string_pretty(self)? + "\n";
        fs_err::write(folder.join("results.json"), data)?;
        if self.machine.peer.is_some() {
            fs_err::write(folder.join("results.svg"), chart::draw(self))?;
            names.push("results.svg");
        }
        Ok(format!("{} in {}", names.join(", "), folder.display()))
    }

    /// Tables in Markdown that are aligned for a terminal too.
    pub(crate) fn text(&self) -> String {
        let tables = self.sections.iter().map(table::write);
        tables.collect::<Vec<_>>().join("\n")
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
}

// === impl Row ===

impl Row {
    /// A measurement of both.
    pub(crate) fn new(name: &str, values: Pair<Value>) -> Self {
        let theirs = values.theirs.as_ref();
        let ratio = theirs.and_then(|theirs| Ratio::of(&values.ours, theirs));
        Self {
            name: name.to_owned(),
            why: why::of(name, &values, ratio),
            values,
            ratio,
            aim: None,
        }
    }

    /// A measurement that there is only of ours.
    pub(crate) fn own(name: &str, figures: Figures) -> Self {
        let values = Pair {
            ours: Value::Figures(figures),
            theirs: None,
        };
        Self::new(name, values)
    }

    /// The same with an aim for our median, in the unit of the figures.
    pub(crate) fn aim(mut self, aim: f64) -> Self {
        self.aim = Some(aim);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Unit;

    #[test]
    fn the_data_has_plain_numbers_with_their_unit_and_says_what_is_missing() {
        let figures = Figures::of(vec![0.010, 0.020, 0.030], Unit::Seconds);
        let values = Pair {
            ours: Value::Figures(figures),
            theirs: Some(Value::Never { seconds: 60.0 }),
        };
        let data = serde_json::to_value(Row::new("reset to Healthy", values).aim(0.015)).unwrap();
        assert_eq!(data["ours"]["kind"], "figures");
        assert_eq!(data["ours"]["median"], 0.020);
        assert_eq!(data["ours"]["unit"], "seconds");
        assert_eq!(data["theirs"]["kind"], "never");
        assert_eq!(data["theirs"]["seconds"], 60.0);
        assert_eq!(data["aim"], 0.015);
        assert!(data["why"].as_str().unwrap().contains("no way back"));
        assert!(data.get("ratio").is_none());
    }
}
