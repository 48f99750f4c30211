//! What a person reads while the tests run.

use std::{fmt, io::Write as _};

/// Prints a line at once. A reader that is gone is no reason to stop: the node must still be
/// taken down.
pub fn say(line: impl fmt::Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
