//! Output for a reader while the tests run.

use std::{fmt, io::Write as _};

/// Prints a line without buffering. A closed output is ignored: the node must still be stopped.
pub fn say(line: impl fmt::Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
