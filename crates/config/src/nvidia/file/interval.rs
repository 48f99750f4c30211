//! Lengths of time as Go's `time.ParseDuration` reads them and its `Duration.String` writes them.

use std::{fmt, str::FromStr};

/// Time between two updates of the node's labels, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepInterval(i64);

/// Units with their number of nanoseconds.
// Go takes both characters for micro: U+00B5, the micro sign, and U+03BC, the Greek letter.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

// === impl SleepInterval ===

impl SleepInterval {
    /// Interval without an end, written `infinite`. In NVIDIA's plugin too it is the largest
    /// integer.
    pub const INFINITE: Self = Self(i64::MAX);

    /// Makes an interval of a number of nanoseconds.
    pub fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the number of nanoseconds.
    pub fn nanos(self) -> i64 {
        self.0
    }
}

impl FromStr for SleepInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a length of time");
        if text == "infinite" {
            return Ok(Self::INFINITE);
        }
        let (sign, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Ok(Self(0));
        }
        let mut total = 0.0;
        while {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            let (number, tail) = rest.split_at(end.ok_or_else(wrong)?);
            let end = tail.find(|c: char| c.is_ascii_digit() || c == '.');
            let (unit, tail) = tail.split_at(end.unwrap_or(tail.len()));
            let (_, factor) = UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .ok_or_else(wrong)?;
            total += number.parse::<f64>().map_err(|_| wrong())? * factor;
            rest = tail;
            !rest.is_empty()
        } {}
        let nanos = sign * total;
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        match nanos.abs() < 9.2e18 {
            true => Ok(Self(nanos.round() as i64)),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for SleepInterval {
    /// Writes the interval as Go prints a duration: `1h0m30s`, `1.5s`, `5ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::INFINITE {
            return f.write_str("infinite");
        }
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        let fraction = |unit: u64, name: &str| {
            let (whole, part) = (nanos % (60 * unit) / unit, nanos % unit);
            let digits = format!("{part:0width$}", width = unit.ilog10() as usize);
            match digits.trim_end_matches('0') {
                "" => format!("{whole}{name}"),
                digits => format!("{whole}.{digits}{name}"),
            }
        };
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{sign}{nanos}ns"),
            1_000..1_000_000 => write!(f, "{sign}{}", fraction_of(nanos, 1_000, "µs")),
            1_000_000..1_000_000_000 => write!(f, "{sign}{}", fraction_of(nanos, 1_000_000, "ms")),
            _ => {
                let seconds = fraction(1_000_000_000, "s");
                let minutes = nanos / 60_000_000_000;
                match (minutes / 60, minutes % 60) {
                    (0, 0) => write!(f, "{sign}{seconds}"),
                    (0, minutes) => write!(f, "{sign}{minutes}m{seconds}"),
                    (hours, minutes) => write!(f, "{sign}{hours}h{minutes}m{seconds}"),
                }
            }
        }
    }
}

/// Writes a length below a second in one unit.
fn fraction_of(nanos: u64, unit: u64, name: &str) -> String {
    let digits = format!("{:0width$}", nanos % unit, width = unit.ilog10() as usize);
    match digits.trim_end_matches('0') {
        "" => format!("{}{name}", nanos / unit),
        digits => format!("{}.{digits}{name}", nanos / unit),
    }
}
