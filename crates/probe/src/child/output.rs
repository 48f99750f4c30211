//! Writer of the lines of the protocol.

use std::{
    fs::File,
    io::{self, Write},
};

use rustix::{io::fcntl_dupfd_cloexec, stdio::dup2_stdout};

use crate::protocol::{DESCRIPTOR, Message};

/// Descriptor of the lines.
#[derive(Debug)]
pub(super) struct LineOutput(File);

// === impl LineOutput ===

impl LineOutput {
    /// Moves the standard output to a descriptor of its own. If the agent runs the probe, prints to
    /// the standard output go to the standard error: a vendor's library that prints must not break
    /// a line.
    pub(super) fn open_output(supervised: bool) -> io::Result<Self> {
        let lines = fcntl_dupfd_cloexec(io::stdout(), DESCRIPTOR)?;
        if supervised {
            dup2_stdout(io::stderr())?;
        }
        Ok(Self(File::from(lines)))
    }

    /// Writes one line. Blocks while the pipe is full: without a reader there is nothing else to
    /// do.
    pub(super) fn write_message(&mut self, message: &Message) -> io::Result<()> {
        let mut line = message.line();
        line.push('\n');
        self.0.write_all(line.as_bytes())
    }
}
