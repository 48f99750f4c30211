//! The commands that a person types, on their own; `agent` has those that speak to one.

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

/// The program with these arguments, and nothing said by the environment or a terminal.
fn ostler(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
    command.args(args).env_clear().stdin(Stdio::null());
    command
}

/// What was printed.
fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
