//! Lines on the standard output.

use std::io::{self, Write};

use crate::protocol::Message;

/// Where the lines go.
#[derive(Debug)]
pub(super) struct Output(io::Stdout);

// === impl Output ===

impl Output {
    pub(super) fn new() -> Self {
        Self(io::stdout())
    }

    /// Writes one line. Blocks while nobody reads: then there is nothing else to do.
    pub(super) fn write(&mut self, message: &Message) -> io::Result<()> {
        let mut line = message.line();
        line.push('\n');
        self.0.write_all(line.as_bytes())?;
        self.0.flush()
    }
}
