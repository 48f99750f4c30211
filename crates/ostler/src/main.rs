//! Ostler: a node agent that gives accelerators to pods.

mod cli;
mod reap;
mod run;
mod vendors;

use std::{io::Write, process::ExitCode};

use clap::Parser;

/// Exit status for a wrong command line: `EX_USAGE` of sysexits.h.
const USAGE: u8 = 64;
/// Exit status for an invalid config: `EX_CONFIG` of sysexits.h.
const CONFIG: u8 = 78;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse_from(cli::spell_out(std::env::args_os().collect())) {
        Ok(cli) => cli,
        // `--help` and `--version` come as errors too: those go to standard output, with status 0.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    // NVIDIA's program ends with 1 after any error (k8s-device-plugin,
    // cmd/nvidia-device-plugin/main.go, `main`).
    let config = if cli.is_plugin() { 1 } else { CONFIG };
    match cli.run_command() {
        Ok(code) => code,
        Err(error) => {
            // Not `eprintln!`, which panics if standard error is closed.
            let _ = writeln!(anstream::stderr(), "ostler: {error:#}");
            let is_config = error.chain().any(|cause| cause.is::<config::Error>());
            ExitCode::from(if is_config { config } else { 1 })
        }
    }
}
