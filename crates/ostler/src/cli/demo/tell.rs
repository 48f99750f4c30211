//! Output of the demo: numbered steps and plain lines. Only a terminal gets colours and pauses.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use comfy_table::Table;
use tokio::time::sleep;

/// Pause after a step, for reading.
const READ: Duration = Duration::from_millis(1800);

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Prints the steps on standard output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Teller {
    /// True if a person watches: standard output is a terminal, and `--oneshot` is not given.
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

    /// True if the node stays up after the last step.
    pub(super) fn is_live(self) -> bool {
        self.live
    }

    /// Prints the first line.
    pub(super) fn title(self, text: &str) -> io::Result<()> {
        // anstream removes the styles if standard output is no terminal.
        writeln!(anstream::stdout(), "{BOLD}{text}{BOLD:#}")
    }

    /// Prints the title of the next step, after a pause for reading the last one.
    pub(super) async fn step(&mut self, title: &str) -> io::Result<()> {
        if self.live {
            sleep(READ).await;
        }
        self.steps += 1;
        let number = self.steps;
        writeln!(anstream::stdout(), "\n{BOLD}{number}. {title}{BOLD:#}")
    }

    /// Prints one or more lines of a step, indented.
    pub(super) fn say(self, text: &str) -> io::Result<()> {
        let mut out = anstream::stdout();
        text.lines().try_for_each(|line| match line.is_empty() {
            true => writeln!(out),
            false => writeln!(out, "   {line}"),
        })
    }

    /// Prints a table, with an empty line before it.
    pub(super) fn table(self, rows: &Table) -> io::Result<()> {
        self.say(&format!("\n{}", rows.trim_fmt()))
    }
}

/// Colours a text green.
pub(super) fn good(text: &str) -> String {
    format!("{GOOD}{text}{GOOD:#}")
}

/// Colours a text red.
pub(super) fn bad(text: &str) -> String {
    format!("{BAD}{text}{BAD:#}")
}

/// Formats a duration with two or three digits and its unit.
pub(super) fn time(length: Duration) -> String {
    match length.as_millis() {
        0..10 => format!("{:.1} ms", length.as_secs_f64() * 1000.0),
        millis @ 10..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", length.as_secs_f64()),
    }
}

/// Joins items to a list in a sentence: `a`, `a and b`, `a, b and c`.
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
