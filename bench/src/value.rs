//! What came of a measurement: figures, or the reason why there are none; and two of them compared.

use std::time::Duration;

use serde::Serialize;

use crate::figures::{Figures, Unit};

/// What came of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Value {
    /// Figures.
    Figures(Figures),
    /// Not even once within this time.
    Beyond {
        /// The time, in seconds.
        seconds: f64,
    },
    /// It was waited for, and it did not happen.
    Never {
        /// How long it was waited for, in seconds.
        seconds: f64,
    },
    /// There is nothing to measure.
    Nothing {
        /// Why.
        reason: &'static str,
    },
}

/// How many times as much NVIDIA's program needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    /// Of the medians.
    pub(crate) median: f64,
    /// Whether that is only known to be at least so much.
    pub(crate) at_least: bool,
    /// Of the 99th percentiles, where there are enough values on both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99: Option<f64>,
}

/// How the ratio of two figures is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Ours is less, which is better in every row.
    Win,
    /// No difference that noise would not explain.
    Same,
    /// Ours is more.
    Loss,
}

/// How many values a 99th percentile needs to be more than the largest.
const ENOUGH: usize = 100;

/// What a ratio has to be beyond to be a difference.
const NOISE: f64 = 1.05;

// === impl Value ===

impl Value {
    /// Why Ostler has no figures for what it does not do yet.
    pub(crate) const NOT_YET: Self = Self::Nothing { reason: "not yet" };

    /// The figures of these times; without any, the time that was not enough for one.
    pub(crate) fn times(times: &[Duration], limit: Duration) -> Self {
        match times {
            [] => Self::Beyond {
                seconds: limit.as_secs_f64(),
            },
            times => Self::Figures(Figures::times(times)),
        }
    }

    /// The figures, if there are.
    pub(crate) fn figures(&self) -> Option<&Figures> {
        match self {
            Self::Figures(figures) => Some(figures),
            _ => None,
        }
    }

    /// How many values, the middle one, and the 99th percentile, as a person reads them.
    pub(crate) fn cells(&self) -> [String; 3] {
        let whole = |seconds: f64| format!("{seconds:.0} s");
        match self {
            Self::Figures(figures) => [
                figures.count.to_string(),
                figures.unit.write(figures.median),
                tail(figures).map_or(String::new(), |p99| figures.unit.write(p99)),
            ],
            Self::Beyond { seconds } => [
                "0".to_owned(),
                format!("> {}", whole(*seconds)),
                String::new(),
            ],
            Self::Never { seconds } => {
                let text = format!("never (within {})", whole(*seconds));
                [String::new(), text, String::new()]
            }
            Self::Nothing { reason } => [String::new(), (*reason).to_owned(), String::new()],
        }
    }
}

// === impl Ratio ===

impl Ratio {
    /// Theirs over ours, where both can be told.
    pub(crate) fn of(ours: &Value, theirs: &Value) -> Option<Self> {
        let ours = ours.figures().filter(|ours| ours.median > 0.0)?;
        match theirs {
            Value::Figures(theirs) => Some(Self {
                median: theirs.median / ours.median,
                at_least: false,
                p99: tail(theirs).zip(tail(ours)).map(|(t, o)| t / o),
            }),
            Value::Beyond { seconds } => Some(Self {
                median: seconds / ours.median,
                at_least: true,
                p99: None,
            }),
            Value::Never { .. } | Value::Nothing { .. } => None,
        }
    }

    /// How it is to be taken.
    pub(crate) fn verdict(&self) -> Verdict {
        verdict(self.median)
    }

    /// The medians' and the percentiles' in words; a loss is in bold.
    pub(crate) fn cells(&self, unit: Unit) -> [String; 2] {
        let mark = if self.at_least { "> " } else { "" };
        let median = format!("{mark}{}", words(self.median, unit));
        [
            median,
            self.p99.map_or(String::new(), |p99| words(p99, unit)),
        ]
    }
}

fn verdict(ratio: f64) -> Verdict {
    if ratio > NOISE {
        Verdict::Win
    } else if ratio < 1.0 / NOISE {
        Verdict::Loss
    } else {
        Verdict::Same
    }
}

/// The 99th percentile, if it is more than the largest of a few.
fn tail(figures: &Figures) -> Option<f64> {
    (figures.count >= ENOUGH).then_some(figures.p99)
}

fn words(ratio: f64, unit: Unit) -> String {
    let (less, more) = match unit {
        Unit::Seconds => ("faster", "slower"),
        Unit::Bytes => ("smaller", "larger"),
        Unit::Share | Unit::PerSecond | Unit::Count => ("less", "more"),
    };
    match verdict(ratio) {
        Verdict::Win => format!("{}× {less}", number(ratio)),
        Verdict::Same => "the same".to_owned(),
        Verdict::Loss => format!("**{}× {more}**", number(1.0 / ratio)),
    }
}

/// Two digits that count, and all of those before the point, in groups.
fn number(ratio: f64) -> String {
    if ratio < 9.95 {
        return format!("{ratio:.1}");
    }
    let digits = format!("{ratio:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn one(value: f64) -> Value {
        Value::Figures(Figures::one(value, Unit::Seconds))
    }

    #[rstest]
    #[case(2.0, 5.0, Verdict::Win, "2.5× faster")]
    #[case(5.0, 2.0, Verdict::Loss, "**2.5× slower**")]
    #[case(1.0, 1.04, Verdict::Same, "the same")]
    #[case(0.001, 12.3456, Verdict::Win, "12\u{202f}346× faster")]
    #[case(1.0, 123.4, Verdict::Win, "123× faster")]
    fn a_ratio_says_who_is_better(
        #[case] ours: f64,
        #[case] theirs: f64,
        #[case] verdict: Verdict,
        #[case] words: &str,
    ) {
        let ratio = Ratio::of(&one(ours), &one(theirs)).unwrap();
        assert_eq!(ratio.verdict(), verdict);
        assert_eq!(
            ratio.cells(Unit::Seconds),
            [words.to_owned(), String::new()]
        );
    }

    #[test]
    fn a_question_without_an_answer_is_at_least_so_much_slower() {
        let theirs = Value::times(&[], Duration::from_secs(60));
        let ratio = Ratio::of(&one(0.5), &theirs).unwrap();
        assert_eq!(ratio.cells(Unit::Seconds)[0], "> 120× faster");
        assert_eq!(theirs.cells(), ["0", "> 60 s", ""]);
    }

    #[test]
    fn what_one_side_does_not_do_has_no_ratio() {
        let never = Value::Never { seconds: 60.0 };
        assert_eq!(Ratio::of(&one(1.0), &never), None);
        assert_eq!(Ratio::of(&Value::NOT_YET, &one(1.0)), None);
        assert_eq!(never.cells(), ["", "never (within 60 s)", ""]);
    }

    #[test]
    fn percentiles_are_compared_only_where_both_have_enough_values() {
        let many = |value| Value::Figures(Figures::of(vec![value; 100], Unit::Seconds));
        let ratio = Ratio::of(&many(1.0), &many(3.0)).unwrap();
        assert_eq!(ratio.p99, Some(3.0));
        assert_eq!(Ratio::of(&many(1.0), &one(3.0)).unwrap().p99, None);
    }
}
