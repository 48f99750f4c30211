//! Reader of the settings of a probe that the agent runs: the first line of the standard input.

use std::{
    io::{self, BufRead, Read as _},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use crate::protocol::{CONFIGURE_LIMIT, Command, Configure};

/// Time for which a probe waits for its settings. The agent writes them before it starts the probe.
const WITHIN: Duration = Duration::from_secs(10);

const STACK: usize = 256 << 10;

/// Error of reading the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigureError {
    /// The line did not arrive in time.
    #[error("no settings on the standard input within {} s", .0.as_secs())]
    Late(Duration),
    /// The input ended before the end of the line.
    #[error("the standard input ended before the line of settings did")]
    Ended,
    /// The line is longer than the limit.
    #[error("the line of settings is longer than {CONFIGURE_LIMIT} bytes")]
    TooLong,
    /// The first line is another command than `configure`.
    #[error("the first line on the standard input is a command and not `configure`")]
    NotFirst,
    /// The line is not valid.
    #[error("the line of settings is not understood")]
    Malformed(#[source] serde_json::Error),
    /// The standard input cannot be read.
    #[error("cannot read the settings from the standard input")]
    Unreadable(#[source] io::Error),
}

/// Reads the settings from the standard input; waits for ten seconds at most. Lines that follow
/// stay unread.
///
/// # Errors
/// The line did not arrive in time, is too long or is not valid.
pub fn read_settings() -> Result<Configure, ConfigureError> {
    let (sender, settings) = mpsc::sync_channel(1);
    // A blocking read cannot be cancelled: it has its own thread, which ends with the process.
    thread::Builder::new()
        .name("settings".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Fails only after the timeout, when nothing waits for the settings.
            let _ = sender.send(read_settings_line(io::stdin().lock()));
        })
        .map_err(ConfigureError::Unreadable)?;
    match settings.recv_timeout(WITHIN) {
        Ok(settings) => settings,
        Err(RecvTimeoutError::Timeout) => Err(ConfigureError::Late(WITHIN)),
        Err(RecvTimeoutError::Disconnected) => Err(ConfigureError::Ended),
    }
}

/// Reads the line of settings and nothing after it.
pub(super) fn read_settings_line(mut input: impl BufRead) -> Result<Configure, ConfigureError> {
    let mut line = Vec::new();
    // The cast is lossless: `usize` has at most 64 bits.
    let mut limited = (&mut input).take(CONFIGURE_LIMIT as u64);
    limited
        .read_until(b'\n', &mut line)
        .map_err(ConfigureError::Unreadable)?;
    if line.last() != Some(&b'\n') {
        return Err(match line.len() >= CONFIGURE_LIMIT {
            true => ConfigureError::TooLong,
            false => ConfigureError::Ended,
        });
    }
    match serde_json::from_slice(&line).map_err(ConfigureError::Malformed)? {
        Command::Configure(configure) => Ok(*configure),
        Command::Refresh | Command::Stop => Err(ConfigureError::NotFirst),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[test]
    fn takes_the_first_line_and_leaves_the_rest() {
        let mut input = &b"{\"type\":\"configure\",\"events\":false}\n{\"type\":\"stop\"}\n"[..];
        let configure = read_settings_line(&mut input).unwrap();
        assert!(!configure.events && configure.links);
        assert_eq!(input, b"{\"type\":\"stop\"}\n");
    }

    #[test]
    fn a_line_of_the_limit_is_read_and_a_longer_one_is_not() {
        let line = |length: usize| {
            let empty = "{\"type\":\"configure\",\"later\":\"\"}\n".len();
            let filling = "x".repeat(length - empty);
            format!("{{\"type\":\"configure\",\"later\":\"{filling}\"}}\n")
        };
        assert_eq!(
            read_settings_line(line(CONFIGURE_LIMIT).as_bytes()).unwrap(),
            Configure::default()
        );
        let longer = read_settings_line(line(CONFIGURE_LIMIT + 1).as_bytes());
        assert!(matches!(longer, Err(ConfigureError::TooLong)), "{longer:?}");
    }

    #[rstest]
    #[case::nothing("", "ended")]
    #[case::half("{\"type\":\"configure\"", "ended")]
    #[case::nonsense("nonsense\n", "not understood")]
    #[case::wrong_type("{\"type\":\"configure\",\"events\":7}\n", "not understood")]
    #[case::unknown_word(
        "{\"type\":\"configure\",\"driver_files\":\"someday\"}\n",
        "not understood"
    )]
    #[case::a_command("{\"type\":\"refresh\"}\n", "not `configure`")]
    fn refuses_and_says_why(#[case] input: &str, #[case] why: &str) {
        let error = read_settings_line(input.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    }

    proptest! {
        #[test]
        fn survives_any_bytes(bytes: Vec<u8>) {
            let _ = read_settings_line(bytes.as_slice());
        }
    }
}
