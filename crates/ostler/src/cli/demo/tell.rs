//! How the story is told: numbered steps and plain lines, coloured and paced on a terminal only.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use comfy_table::Table;
use tokio::time::sleep;

/// How long a person reads a step.
const READ: Duration = Duration::from_millis(1800);

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Tells the story on standard output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Teller {
    /// Whether somebody watches, who reads and may want to play on.
    live: bool,
    steps: u32,
}

// === impl Teller ===

impl Teller {
    pub(super) fn new(oneshot: bool) -> Self {
        Self {
            live: !oneshot && io::stdout().is_terminal(),
            steps: 0,
        }
    }

    /// Whether the node stays up after the story.
    pub(super) fn is_live(self) -> bool {
        self.live
    }

    /// The first line.
    pub(super) fn title(self, text: &str) -> io::Result<()> {
        writeln!(anstream::stdout(), "{BOLD}{text}{BOLD:#}")
    }

    /// Begins the next step, once the last one is read.
    pub(super) async fn step(&mut self, title: &str) -> io::Result<()> {
        if self.live {
            sleep(READ).await;
        }
        self.steps += 1;
        let number = self.steps;
        writeln!(anstream::stdout(), "\n{BOLD}{number}. {title}{BOLD:#}")
    }

    /// One or more lines of a step.
    pub(super) fn say(self, text: &str) -> io::Result<()> {
        let mut out = anstream::stdout();
        text.lines().try_for_each(|line| match line.is_empty() {
            true => writeln!(out),
            false => writeln!(out, "   {line}"),
        })
    }

    /// A table, with an empty line before it.
    pub(super) fn table(self, rows: &Table) -> io::Result<()> {
        self.say(&format!("\n{}", rows.trim_fmt()))
    }
}

/// A text that tells of something good.
pub(super) fn good(text: &str) -> String {
    format!("{GOOD}{text}{GOOD:#}")
}

/// A text that tells of something bad.
pub(super) fn bad(text: &str) -> String {
    format!("{BAD}{text}{BAD:#}")
}

/// A length of time as a person says it.
pub(super) fn time(length: Duration) -> String {
    match length.as_millis() {
        0..10 => format!("{:.1} ms", length.as_secs_f64() * 1000.0),
        millis @ 10..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", length.as_secs_f64()),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_like_sentences() {
        let items = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert_eq!(list(&items("a")), "a");
        assert_eq!(list(&items("a b")), "a and b");
        assert_eq!(list(&items("a b c")), "a, b and c");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(time(Duration::from_micros(4210)), "4.2 ms");
        assert_eq!(time(Duration::from_millis(42)), "42 ms");
        assert_eq!(time(Duration::from_millis(1250)), "1.2 s");
    }
}
