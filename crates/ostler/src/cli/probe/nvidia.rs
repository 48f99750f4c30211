//! `ostler probe nvidia`.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use config::{Discovery, NvidiaProbe, Period};
use model::CardRef;
use nvidia_probe::NvmlBackend;
use probe::{
    child,
    protocol::{Configure, FileSearch, Scope},
};

use crate::cli::place::HostFlags;

#[derive(Debug, clap::Args)]
pub(super) struct NvidiaProbeArgs {
    #[command(flatten)]
    place: HostFlags,

    /// Time between two reports
    #[arg(long, value_name = "TIME", default_value = "10s")]
    period: Period,

    /// List in the samples the processes that compute on a device
    #[arg(long)]
    processes: bool,

    /// Skip this card, by PCI address or index; may be given several times
    #[arg(long, value_name = "CARD", conflicts_with = "only")]
    skip: Vec<CardRef>,

    /// Read this card only, by PCI address or index
    #[arg(long, value_name = "CARD")]
    only: Option<CardRef>,

    /// Find the driver's files that a container needs
    #[arg(long)]
    driver_files: bool,

    /// Method of finding the cards: by the platform, through NVML, or as a Tegra board
    #[arg(
        long,
        value_name = "WAY",
        default_value = "auto",
        value_parser = PossibleValuesParser::new(["auto", "nvml", "tegra"])
            .try_map(|word| word.parse::<Discovery>())
    )]
    discovery: Discovery,

    /// Do not wait for the driver's events
    #[arg(long)]
    no_events: bool,

    /// Do not read the links between cards
    #[arg(long)]
    no_links: bool,

    /// Run as a child of the agent: read all settings from the first line of standard input and none
    /// from flags, die with the agent, end at the end of the input, ignore signals for the agent
    #[arg(long)]
    child: bool,
}

// === impl NvidiaProbeArgs ===

impl NvidiaProbeArgs {
    pub(super) fn run_nvidia_probe(self) -> anyhow::Result<ExitCode> {
        let supervised = self.child;
        let configure = if supervised {
            child::read_settings()?
        } else {
            self.into_settings()?
        };
        let section = configure.parse_section();
        let section = section.context("the section `backend` of the settings is not understood")?;
        let calls = Arc::default();
        let backend = NvmlBackend::new(&configure, section, Arc::clone(&calls));
        let settings = child::ProbeSettings {
            configure,
            supervised,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..child::ProbeSettings::default()
        };
        child::run_probe(&settings, backend, calls)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Makes the settings from the flags.
    ///
    /// # Errors
    /// The config refuses a path, such as one that is not UTF-8.
    fn into_settings(self) -> anyhow::Result<Configure> {
        let resolved = config::native(
            None,
            self.place.to_overrides(),
            &config::ValueOrigin::of_flag,
        )?;
        let section = NvidiaProbe {
            discovery: self.discovery,
            ..resolved.config.backends.nvidia.probe
        };
        Ok(Configure {
            host_root: resolved.config.host_root,
            cards: match self.only {
                Some(card) => Scope::Only(card),
                None if self.skip.is_empty() => Scope::All,
                None => Scope::Skip(self.skip),
            },
            events: !self.no_events,
            links: !self.no_links,
            period: self.period.as_duration(),
            processes: self.processes,
            driver_files: match self.driver_files {
                true => FileSearch::Now,
                false => FileSearch::Never,
            },
            backend: section.to_value(),
            ..Configure::default()
        })
    }
}
