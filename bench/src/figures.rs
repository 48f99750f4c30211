//! Many measurements in a few figures, and how they are written.

use std::time::Duration;

use serde::Serialize;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    /// Time.
    Seconds,
    /// Memory.
    Bytes,
    /// A part of one, of one core for example.
    Share,
    /// A rate.
    PerSecond,
    /// A number of things.
    Count,
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    /// What is counted.
    pub(crate) unit: Unit,
    /// How many values there were.
    pub(crate) count: usize,
    /// The smallest.
    pub(crate) min: f64,
    /// Half of the values are at most this.
    pub(crate) median: f64,
    /// Nine of ten are at most this.
    pub(crate) p90: f64,
    /// Ninety-nine of a hundred are at most this.
    pub(crate) p99: f64,
}

// === impl Figures ===

impl Figures {
    /// The figures of some durations; there must be one at least.
    pub(crate) fn times(times: &[Duration]) -> Self {
        let seconds = times.iter().map(Duration::as_secs_f64).collect();
        Self::of(seconds, Unit::Seconds)
    }

    /// The figures of one value.
    pub(crate) fn one(value: f64, unit: Unit) -> Self {
        Self::of(vec![value], unit)
    }

    /// The figures of some values; there must be one at least.
    pub(crate) fn of(mut values: Vec<f64>, unit: Unit) -> Self {
        values.sort_by(f64::total_cmp);
        // The nearest rank: a value that was measured, never one in between.
        let rank = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        Self {
            unit,
            count: values.len(),
            min: rank(0),
            median: rank(50),
            p90: rank(90),
            p99: rank(99),
        }
    }
}

// === impl Unit ===

impl Unit {
    /// A value as a person reads it.
    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 1e-6 => format!("{:.0} ns", value * 1e9),
            Self::Seconds if value < 1e-3 => format!("{:.1} µs", value * 1e6),
            Self::Seconds if value < 1.0 => format!("{:.1} ms", value * 1e3),
            Self::Seconds => format!("{value:.1} s"),
            Self::Bytes => format!("{:.1} MiB", value / f64::from(1 << 20)),
            Self::Share => format!("{:.3} %", value * 100.0),
            Self::PerSecond => format!("{value:.1}/s"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn figures_are_values_that_were_measured() {
        let values = (1..=100).rev().map(f64::from).collect();
        let figures = Figures::of(values, Unit::Seconds);
        assert_eq!(figures.count, 100);
        assert_eq!(
            [figures.min, figures.median, figures.p90, figures.p99],
            [1.0, 50.0, 90.0, 99.0]
        );
    }

    #[test]
    fn one_value_is_every_figure() {
        let figures = Figures::one(7.0, Unit::Bytes);
        assert_eq!([figures.min, figures.median, figures.p99], [7.0; 3]);
    }

    #[rstest]
    #[case(Unit::Seconds, 4.2e-7, "420 ns")]
    #[case(Unit::Seconds, 1.25e-5, "12.5 µs")]
    #[case(Unit::Seconds, 0.015, "15.0 ms")]
    #[case(Unit::Seconds, 2.0, "2.0 s")]
    #[case(Unit::Bytes, 16_777_216.0, "16.0 MiB")]
    #[case(Unit::Share, 0.001, "0.100 %")]
    #[case(Unit::PerSecond, 3.0, "3.0/s")]
    #[case(Unit::Count, 9.0, "9")]
    fn values_have_the_unit_that_fits(
        #[case] unit: Unit,
        #[case] value: f64,
        #[case] expected: &str,
    ) {
        assert_eq!(unit.write(value), expected);
    }
}
