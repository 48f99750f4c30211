//! Ostler: one small node agent that hands accelerators to pods.

mod cli;
mod reap;
mod run;
mod vendors;

use std::{io::Write, process::ExitCode};

use clap::Parser;

/// The exit status for a wrong command line, as in `sysexits.h`.
const USAGE: u8 = 64;
/// The exit status for a wrong config.
const CONFIG: u8 = 78;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse_from(cli::spell_out(std::env::args_os().collect())) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    // NVIDIA's program has one status for whatever is wrong.
    let config = if cli.is_plugin() { 1 } else { CONFIG };
    match cli.start() {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "ostler: {error:#}");
            let is_config = error.chain().any(|cause| cause.is::<config::Error>());
            ExitCode::from(if is_config { config } else { 1 })
        }
    }
}
