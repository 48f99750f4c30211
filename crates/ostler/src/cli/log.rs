//! Logging: to standard error, for people or for programs.

use clap::{Args as ClapArgs, ValueEnum};
use tracing_subscriber::EnvFilter;

/// How much is logged, and in which form.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// What to log: error, warn, info, debug, trace, or a filter such as `kubelet=debug`
    #[arg(
        long = "log",
        global = true,
        env = "OSTLER_LOG",
        value_name = "LEVEL",
        default_value = "info"
    )]
    level: String,

    /// The form of log lines
    #[arg(
        long,
        global = true,
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
    /// Starts logging. A filter that cannot be read falls back to `info`.
    pub(super) fn start(&self) {
        let filter = EnvFilter::try_new(&self.level);
        let wrong = filter.as_ref().err().map(ToString::to_string);
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new("info")))
            .with_writer(std::io::stderr)
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .with_target(false);
        match self.log_format {
            Form::Text => log.init(),
            Form::Json => log.json().flatten_event(true).init(),
        }
        if let Some(error) = wrong {
            tracing::warn!(
                level = self.level,
                error,
                "the log filter is not used; logging `info`"
            );
        }
    }
}
