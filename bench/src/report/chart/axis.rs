//! A logarithmic axis.

use super::super::Row;
use crate::{figures::Unit, value::Value};

/// From one power of ten to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    unit: Unit,
    low: i32,
    high: i32,
}

// === impl Axis ===

impl Axis {
    /// An axis for these rows; none if there is nothing to show on it.
    #[expect(clippy::cast_possible_truncation, reason = "powers of ten are small")]
    pub(super) fn of(rows: &[&Row], unit: Unit) -> Option<Self> {
        let values = rows.iter().flat_map(|row| row.values.iter());
        let values = values.filter_map(|value| length(value, unit));
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| *value > 0.0) {
            low = low.min(value.log10());
            high = high.max(value.log10());
        }
        // The smallest bar is to be seen, too.
        low.is_finite().then(|| Self {
            unit,
            low: (low - 0.2).floor() as i32,
            high: high.ceil() as i32,
        })
    }

    /// Where a value is between the ends, from 0 to 1; what never comes is at the end.
    pub(super) fn place(&self, value: &Value) -> Option<f64> {
        if matches!(value, Value::Never { .. }) {
            return Some(1.0);
        }
        let value = length(value, self.unit)?.log10();
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        Some(((value - low) / (high - low)).clamp(0.0, 1.0))
    }

    /// Where its lines are, and what they are called.
    pub(super) fn marks(&self) -> impl Iterator<Item = (f64, String)> {
        let (low, high, unit) = (self.low, self.high, self.unit);
        (low..=high).map(move |power| {
            let at = f64::from(power - low) / f64::from(high - low);
            (at, mark(10f64.powi(power), unit))
        })
    }
}

/// What a value is on the axis; memory is counted in MiB, so that the lines have round names.
fn length(value: &Value, unit: Unit) -> Option<f64> {
    let scale = match unit {
        Unit::Bytes => f64::from(1 << 20),
        Unit::Share => 0.01,
        Unit::Seconds | Unit::PerSecond | Unit::Count => 1.0,
    };
    match value {
        Value::Figures(figures) => Some(figures.median / scale),
        Value::Beyond { seconds } => Some(*seconds),
        Value::Never { .. } | Value::Nothing { .. } => None,
    }
}

fn mark(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds if value < 0.9e-6 => format!("{:.0} ns", value * 1e9),
        Unit::Seconds if value < 0.9e-3 => format!("{:.0} µs", value * 1e6),
        Unit::Seconds if value < 0.9 => format!("{:.0} ms", value * 1e3),
        Unit::Seconds => format!("{value:.0} s"),
        Unit::Bytes => format!("{} MiB", plain(value)),
        Unit::Share => format!("{} %", plain(value)),
        Unit::PerSecond => format!("{}/s", plain(value)),
        Unit::Count => plain(value),
    }
}

/// A power of ten without needless digits.
fn plain(value: f64) -> String {
    match value < 0.9 {
        true => format!("{value:.9}").trim_end_matches('0').to_owned(),
        false => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{figures::Figures, pair::Pair};

    fn row(ours: f64, theirs: Value, unit: Unit) -> Row {
        let ours = Value::Figures(Figures::one(ours, unit));
        let theirs = Some(theirs);
        Row::new("row", Pair { ours, theirs })
    }

    #[test]
    fn its_lines_are_powers_of_ten_around_all_values() {
        let row = row(30e-6, Value::Beyond { seconds: 60.0 }, Unit::Seconds);
        let axis = Axis::of(&[&row], Unit::Seconds).unwrap();
        let names: Vec<String> = axis.marks().map(|(_, name)| name).collect();
        let expected = [
            "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s",
        ];
        assert_eq!(names, expected);
        let places = row.values.iter().map(|value| axis.place(value).unwrap());
        let places: Vec<f64> = places.collect();
        assert!(0.0 < places[0] && places[0] < places[1] && places[1] < 1.0);
    }

    #[test]
    fn shares_and_memory_have_lines_with_round_names() {
        let share = row(0.0008, Value::NOT_YET, Unit::Share);
        let axis = Axis::of(&[&share], Unit::Share).unwrap();
        let names: Vec<String> = axis.marks().map(|(_, name)| name).collect();
        assert_eq!(names, ["0.01 %", "0.1 %"]);
        let memory = row(9.5 * 1_048_576.0, Value::NOT_YET, Unit::Bytes);
        let axis = Axis::of(&[&memory], Unit::Bytes).unwrap();
        let names: Vec<String> = axis.marks().map(|(_, name)| name).collect();
        assert_eq!(names, ["1 MiB", "10 MiB"]);
    }

    #[test]
    fn what_never_comes_is_at_the_end_and_nothing_is_nowhere() {
        let row = row(1.0, Value::Never { seconds: 60.0 }, Unit::Seconds);
        let axis = Axis::of(&[&row], Unit::Seconds).unwrap();
        assert_eq!(axis.place(&Value::Never { seconds: 60.0 }), Some(1.0));
        assert_eq!(axis.place(&Value::NOT_YET), None);
    }
}
