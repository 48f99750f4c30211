//! Tests of commands without an agent. The test target `agent` has those that need one.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[cfg(feature = "sim")]
mod capture;
mod cdi;
mod config;
#[cfg(feature = "sim")]
mod demo;
mod probe;
#[cfg(feature = "sim")]
mod sim;

use std::process::{Command, Stdio};

/// Command for the program with these arguments, without variables and without a terminal.
fn ostler(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
    command.args(args).env_clear().stdin(Stdio::null());
    command
}

/// Output as text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
