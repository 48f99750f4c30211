//! Lines of the protocol.

use std::{
    fs::File,
    io::{self, Write},
};

use rustix::{io::fcntl_dupfd_cloexec, stdio::dup2_stdout};

use crate::protocol::{DESCRIPTOR, Message};

/// The descriptor that the lines go to.
#[derive(Debug)]
pub(super) struct Output(File);

// === impl Output ===

impl Output {
    /// Opens a descriptor of its own in the place of the standard output. Where the agent runs the
    /// probe, the standard output becomes the standard error: a vendor's library that prints breaks no
    /// line.
    pub(super) fn open(supervised: bool) -> io::Result<Self> {
        let lines = fcntl_dupfd_cloexec(io::stdout(), DESCRIPTOR)?;
        if supervised {
            dup2_stdout(io::stderr())?;
        }
        Ok(Self(File::from(lines)))
    }

    /// Writes one line. Blocks while nobody reads: then there is nothing else to do.
    pub(super) fn write(&mut self, message: &Message) -> io::Result<()> {
        let mut line = message.line();
        line.push('\n');
        self.0.write_all(line.as_bytes())
    }
}
