//! Lines on the standard output.

use std::io::{self, Write};

use crate::protocol::Message;

/// Where the lines go.
#[derive(Debug)]
pub(super) struct Output<W = io::Stdout> {
    stream: W,
}

// === impl Output ===

impl<W: Write> Output<W> {
    pub(super) fn new(stream: W) -> Self {
        Self { stream }
    }

    /// Writes one line. Blocks while nobody reads: then there is nothing else to do.
    pub(super) fn write(&mut self, message: &Message) -> io::Result<()> {
        let mut line = message.line();
        line.push('\n');
        self.stream.write_all(line.as_bytes())?;
        self.stream.flush()
    }
}
