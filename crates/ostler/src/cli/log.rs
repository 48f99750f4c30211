//! Logging: to standard error, for people or for programs.
//!
//! A log that cannot be written, or that nobody reads, must not stop the agent: lines go through
//! a short queue to a thread of their own, and are dropped and counted when it is full.

mod lossy;

use clap::{Args as ClapArgs, ValueEnum};
use tracing_subscriber::EnvFilter;

pub(super) use self::lossy::Flush;

/// How much is logged, and in which form.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Logging")]
pub(super) struct Args {
    /// What to log: error, warn, info, debug, trace, or a filter such as `kubelet=debug`
    /// [default: info for the agent and its probes, warn for the other commands]
    #[arg(long = "log", global = true, env = "OSTLER_LOG", value_name = "LEVEL")]
    level: Option<String>,

    /// The form of log lines: text for people, json for programs
    #[arg(
        long,
        global = true,
        hide_possible_values = true,
        env = "OSTLER_LOG_FORMAT",
        value_name = "FORM",
        default_value = "text"
    )]
    log_format: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// Lines for people
    Text,
    /// One JSON object per line
    Json,
}

// === impl Args ===

impl Args {
    /// Starts logging. Without a filter, or with one that cannot be read, at the `usual` level.
    pub(super) fn start(&self, usual: &str) -> Flush {
        let level = self.level.as_deref().unwrap_or(usual);
        let filter = EnvFilter::try_new(level);
        let wrong = filter.as_ref().err().map(ToString::to_string);
        let (writer, flush) = lossy::start(std::io::stderr());
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new(usual)))
            .with_writer(writer)
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .log_internal_errors(false)
            .with_target(false);
        match self.log_format {
            Form::Text => log.init(),
            Form::Json => log.json().flatten_event(true).init(),
        }
        if let Some(error) = wrong {
            tracing::warn!(
                level,
                error,
                "the log filter is not used; logging `{usual}`"
            );
        }
        flush
    }

    /// The arguments that make another process log in the same way.
    pub(super) fn repeat(&self) -> Vec<String> {
        let form = match self.log_format {
            Form::Text => "text",
            Form::Json => "json",
        };
        let level = self.level.iter().map(|level| format!("--log={level}"));
        level.chain([format!("--log-format={form}")]).collect()
    }
}
