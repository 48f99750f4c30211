//! Log on standard error, as text or JSON.
//!
//! A log that cannot be written, or that is not read, must not stop the agent. Lines go through a
//! short queue to a thread of their own. When the queue is full, they are dropped and counted.

mod lossy;

use clap::{Args as ClapArgs, ValueEnum};
use tracing_subscriber::EnvFilter;

pub(super) use self::lossy::LogGuard;

/// Level and format of the log.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Logging")]
pub(super) struct LogArgs {
    /// Log level (error, warn, info, debug, trace), or a filter such as `kubelet=debug`
    /// [default: info for the agent and its probes, warn for the other commands]
    #[arg(long = "log", global = true, env = "OSTLER_LOG", value_name = "LEVEL")]
    level: Option<String>,

    /// Format of log lines: text or json
    #[arg(
        long,
        global = true,
        hide_possible_values = true,
        env = "OSTLER_LOG_FORMAT",
        value_name = "FORM",
        default_value = "text"
    )]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// Plain text
    Text,
    /// One JSON object per line
    Json,
}

// === impl LogArgs ===

impl LogArgs {
    /// Starts the log. Without a filter, or with an invalid one, the level is `usual`. The last lines
    /// are written when the returned value is dropped.
    pub(super) fn start_log(&self, usual: &str) -> LogGuard {
        let level = self.level.as_deref().unwrap_or(usual);
        let filter = EnvFilter::try_new(level);
        let wrong = filter.as_ref().err().map(ToString::to_string);
        let (writer, flush) = lossy::start_writer(std::io::stderr());
        // The defaults of tracing-subscriber would report a failed write on standard error, which is
        // the output that has failed, and print colours into files.
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new(usual)))
            .with_writer(writer)
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .log_internal_errors(false)
            .with_target(false);
        match self.log_format {
            LogFormat::Text => log.init(),
            LogFormat::Json => log.json().flatten_event(true).init(),
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

    /// Arguments that make another process log in the same way.
    pub(super) fn repeat(&self) -> Vec<String> {
        let form = match self.log_format {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        };
        let level = self.level.iter().map(|level| format!("--log={level}"));
        level.chain([format!("--log-format={form}")]).collect()
    }
}
