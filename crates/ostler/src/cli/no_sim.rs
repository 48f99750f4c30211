//! `ostler demo` and `ostler sim` in a build without the feature `sim`: they refuse to run.

use std::{ffi::OsString, process::ExitCode};

/// Not in this build: it has no simulator.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(super) struct Args {
    /// Arguments for the simulator, of any kind.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _args: Vec<OsString>,
}

// === impl Args ===

impl Args {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "as the commands in whose place it is"
    )]
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        anstream::eprintln!(
            "ostler: this build has no simulator; `cargo build --release`, without \
             --no-default-features, makes one that has"
        );
        Ok(ExitCode::from(crate::USAGE))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use rstest::rstest;

    use crate::cli::{Cli, CliCommand};

    #[rstest]
    #[case(&["demo", "--oneshot"])]
    #[case(&["demo", "--help"])]
    #[case(&["sim", "create", "/tmp/node"])]
    #[case(&["sim"])]
    fn whatever_the_simulator_is_asked_is_refused(#[case] args: &[&str]) {
        let cli = Cli::try_parse_from(["ostler"].iter().chain(args)).unwrap();
        let (CliCommand::Demo(args) | CliCommand::Sim(args)) = cli.command else {
            panic!("{cli:?} is another command");
        };
        assert_eq!(args.start().unwrap(), crate::USAGE.into());
    }

    #[test]
    fn the_help_does_not_speak_of_it() {
        let help = Cli::command().render_long_help().to_string();
        assert!(
            !help.contains("demo") && !help.contains("simulat"),
            "{help}"
        );
    }
}
