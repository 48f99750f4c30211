//! `ostler probe`: what the agent starts as a child, and what a person can run to see the same.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Subcommand;
use config::{Discovery, NvidiaBackend, Period};
use model::CardRef;
use probe::{
    child, nvidia,
    protocol::{Configure, FileSearch, Scope},
};

use super::place::Place;

/// The heading of the flags for checks.
const CHECKS: &str = "Checks";

/// Look at the hardware and print what is there, one JSON object per line.
///
/// The agent runs this as a child process; run by hand, it prints what the agent would see.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    backend: Backend,
}

#[derive(Debug, Subcommand)]
enum Backend {
    /// NVIDIA's cards, through NVML
    Nvidia(Nvidia),
}

/// How the cards are found.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Way {
    /// As the machine is
    Auto,
    /// Through NVML, whatever the machine looks like
    Nvml,
    /// As a Tegra board, whatever the machine looks like
    Tegra,
}

#[derive(Debug, clap::Args)]
struct Nvidia {
    #[command(flatten)]
    place: Place,

    /// The time between two looks
    #[arg(long, value_name = "TIME", default_value = "10s")]
    period: Period,

    /// The time between two checks whether the cards work: memory errors, rows that wait to be
    /// replaced, the fabric, the recovery action; 0 is never
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = period_or_never, help_heading = CHECKS)]
    working_period: Duration,

    /// The time between two checks whether they work well: throttling, PCIe, NVLink, temperature;
    /// 0 is never
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = period_or_never, help_heading = CHECKS)]
    performing_period: Duration,

    /// The time between two looks at counters whose growth tells: corrected memory errors, replaced
    /// rows, PCIe replays, energy; 0 is never
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = period_or_never, help_heading = CHECKS)]
    trend_period: Duration,

    /// A program to run for each card that is idle; given again, its arguments. The card passes if
    /// it exits with 0
    #[arg(long, value_name = "WORD", allow_hyphen_values = true, help_heading = CHECKS)]
    deep_command: Vec<String>,

    /// The time between two runs of the --deep-command; 0 is never
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = period_or_never, help_heading = CHECKS)]
    deep_period: Duration,

    /// How long the --deep-command may take for a card
    #[arg(long, value_name = "TIME", default_value = "10m", help_heading = CHECKS)]
    deep_limit: Period,

    /// How long ago the last run of the --deep-command was: the next is a period after it
    #[arg(long, value_name = "SECONDS", default_value = "0", help_heading = CHECKS)]
    deep_last_ago: u64,

    /// Say in the samples which processes compute on a device
    #[arg(long)]
    processes: bool,

    /// Leave this card out, by PCI address or index; may be given several times
    #[arg(long, value_name = "CARD", conflicts_with = "only")]
    skip: Vec<CardRef>,

    /// Look at this card alone, by PCI address or index
    #[arg(long, value_name = "CARD")]
    only: Option<CardRef>,

    /// Ask the loader for the library where --driver-path does not have it
    #[arg(long)]
    loader_fallback: bool,

    /// A second folder under which device nodes are, as this process sees it
    #[arg(long, value_name = "DIR")]
    dev_path: Option<PathBuf>,

    /// The folder of the MPS daemons, as this process sees it
    #[arg(long, value_name = "DIR")]
    mps_path: Option<PathBuf>,

    /// Look for the driver's files that a container needs
    #[arg(long)]
    driver_files: bool,

    /// The same, but not in the first report
    #[arg(long)]
    driver_files_later: bool,

    /// How the cards are found
    #[arg(long, value_name = "WAY", default_value = "auto")]
    discovery: Way,

    /// Do not listen to the driver's events
    #[arg(long)]
    no_events: bool,

    /// Do not find out how cards are linked
    #[arg(long)]
    no_links: bool,

    /// Run as a child of the agent: die with it, end when the input ends, leave signals to it
    #[arg(long)]
    child: bool,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        match self.backend {
            Backend::Nvidia(args) => args.start(),
        }
    }
}

// === impl Nvidia ===

impl Nvidia {
    fn start(self) -> anyhow::Result<ExitCode> {
        let scope = match self.only {
            Some(card) => Scope::Only(card),
            None if self.skip.is_empty() => Scope::All,
            None => Scope::Skip(self.skip),
        };
        let calls = Arc::default();
        let configure = Configure {
            host_root: self.place.host_root.unwrap_or_else(|| "/".into()),
            cards: scope,
            processes: self.processes,
            driver_files: match (self.driver_files, self.driver_files_later) {
                (true, _) => FileSearch::Now,
                (false, true) => FileSearch::Later,
                (false, false) => FileSearch::Never,
            },
            ..Configure::default()
        };
        let section = NvidiaBackend {
            driver_path: self.place.driver_path,
            nvml_library: self.place.nvml_library,
            loader_fallback: self.loader_fallback,
            dev_path: self.dev_path,
            mps_path: self.mps_path,
            discovery: match self.discovery {
                Way::Auto => Discovery::Auto,
                Way::Nvml => Discovery::Nvml,
                Way::Tegra => Discovery::Tegra,
            },
        };
        let backend = nvidia::Nvidia::new(&configure, section, Arc::clone(&calls));
        let settings = child::Settings {
            period: self.period.get(),
            events: !self.no_events,
            links: child::Settings::default().links.filter(|_| !self.no_links),
            checks: child::Periods {
                working: self.working_period,
                performing: self.performing_period,
                trend: self.trend_period,
            },
            deep: (!self.deep_command.is_empty() && !self.deep_period.is_zero()).then_some(
                child::DeepCheck {
                    command: self.deep_command,
                    period: self.deep_period,
                    limit: self.deep_limit.get(),
                    last_ago: Duration::from_secs(self.deep_last_ago),
                },
            ),
            supervised: self.child,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        child::run(&settings, backend, calls)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A length of time; `0` and `off` stand for none.
fn period_or_never(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0s" | "0ms" | "off" => Ok(Duration::ZERO),
        text => text.parse().map(Period::get),
    }
}
