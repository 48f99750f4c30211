//! Reader of the commands on the standard input, on its own thread: a blocking read cannot be
//! cancelled.

use std::{
    io::{self, BufRead, BufReader, Read},
    thread,
};

use tokio::sync::mpsc;

use crate::protocol::Command;

/// Length of the longest line that can be a command, in bytes.
const LIMIT: u64 = 4096;

const STACK: usize = 256 << 10;

/// Starts the reader thread. The channel closes when the input ends.
pub(super) fn start_reader(sender: mpsc::Sender<Command>) -> io::Result<()> {
    thread::Builder::new()
        .name("commands".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            if let Err(error) =
                read_each_command(io::stdin(), |command| sender.blocking_send(command).is_ok())
            {
                tracing::warn!(%error, "the standard input broke");
            }
        })
        .map(drop)
}

/// Reads commands until the input ends or `take` returns false. Lines that are not valid commands
/// are skipped: the agent may be newer.
pub(super) fn read_each_command(
    input: impl Read,
    mut take: impl FnMut(Command) -> bool,
) -> io::Result<()> {
    let mut input = BufReader::with_capacity(512, input);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut input).take(LIMIT).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(command) => {
                if !take(command) {
                    return Ok(());
                }
            }
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(error) => tracing::debug!(%error, "a line on the input is no command"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn commands(input: &[u8]) -> Vec<Command> {
        let mut found = Vec::new();
        read_each_command(input, |command| {
            found.push(command);
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn reads_commands_among_nonsense() {
        let long = "x".repeat(3 * 4096);
        let input = format!(
            "{{\"type\":\"refresh\"}}\n\nnonsense\n{{\"type\":\"dance\"}}\n{long}\n{{\"type\":\"stop\",\"new\":1}}"
        );
        assert_eq!(
            commands(input.as_bytes()),
            [Command::Refresh, Command::Stop]
        );
    }

    proptest! {
        #[test]
        fn survives_any_bytes(bytes: Vec<u8>) {
            let _ = commands(&bytes);
        }
    }
}
