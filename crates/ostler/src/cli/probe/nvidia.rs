//! `ostler probe nvidia`.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use config::{Discovery, NvidiaProbe, Period};
use model::CardRef;
use nvidia_probe::Nvidia;
use probe::{
    child,
    protocol::{Configure, FileSearch, Scope},
};

use crate::cli::place::Place;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,

    /// The time between two looks
    #[arg(long, value_name = "TIME", default_value = "10s")]
    period: Period,

    /// Say in the samples which processes compute on a device
    #[arg(long)]
    processes: bool,

    /// Leave this card out, by PCI address or index; may be given several times
    #[arg(long, value_name = "CARD", conflicts_with = "only")]
    skip: Vec<CardRef>,

    /// Look at this card alone, by PCI address or index
    #[arg(long, value_name = "CARD")]
    only: Option<CardRef>,

    /// Look for the driver's files that a container needs
    #[arg(long)]
    driver_files: bool,

    /// How the cards are found: as the machine is, through NVML, or as a Tegra board
    #[arg(
        long,
        value_name = "WAY",
        default_value = "auto",
        value_parser = PossibleValuesParser::new(["auto", "nvml", "tegra"])
            .try_map(|word| word.parse::<Discovery>())
    )]
    discovery: Discovery,

    /// Do not listen to the driver's events
    #[arg(long)]
    no_events: bool,

    /// Do not find out how cards are linked
    #[arg(long)]
    no_links: bool,

    /// Run as a child of the agent: take all settings from the first line of the input and none from
    /// flags, die with the agent, end when the input ends, leave signals to it
    #[arg(long)]
    child: bool,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let supervised = self.child;
        let configure = if supervised {
            child::read_settings()?
        } else {
            self.configure()?
        };
        let section = configure.section();
        let section = section.context("the section `backend` of the settings is not understood")?;
        let calls = Arc::default();
        let backend = Nvidia::new(&configure, section, Arc::clone(&calls));
        let settings = child::Settings {
            configure,
            supervised,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..child::Settings::default()
        };
        child::run(&settings, backend, calls)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The settings that the flags of a person say.
    ///
    /// # Errors
    /// The config does not take a path, as one that is not UTF-8.
    fn configure(self) -> anyhow::Result<Configure> {
        let resolved = config::native(None, self.place.overrides(), &config::Origin::flag)?;
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
            period: self.period.get(),
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
