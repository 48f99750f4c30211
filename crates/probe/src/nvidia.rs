//! NVIDIA's cards through NVML.
//!
//! Cards are found on the PCI bus and asked for by their addresses, so that a card has a name
//! before the driver is asked anything, and one that is lost does not shift the others.

mod bus;
mod card;
mod driver;
mod extras;
mod files;
mod glance;
mod library;
mod look;
mod nodes;
mod platform;
mod profile;
mod sensors;
mod stage;
mod topology;
mod watch;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use model::{Device, DeviceId, Kind, PciAddress};
use nvml::{Calls, Locator, Session};

pub use self::platform::Discovery;
use self::{
    card::{Card, Reader},
    driver::Connection,
    files::Files,
    glance::Layout,
    library::Search,
    look::{Look, Looker},
    nodes::Nodes,
    stage::{Scene, Stage, Watched},
    topology::{Topology, handle},
    watch::Watch,
};
use crate::{
    child::{Backend, Events},
    protocol::{Problem, ProblemKind, Report, Sample, Scope},
};

/// Where the cards and their driver are.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder under which the host's /sys, /proc and /dev are; `/` on the host itself.
    pub host_root: PathBuf,
    /// The folder under which the driver's files are, as this process sees them.
    pub driver_path: Option<PathBuf>,
    /// Whether the loader is asked for the library where `driver_path` does not have it.
    pub loader_fallback: bool,
    /// The driver library itself; nothing else is looked for.
    pub nvml_library: Option<PathBuf>,
    /// A second folder under which device nodes are, as this process sees it.
    pub dev_path: Option<PathBuf>,
    /// The folder of the MPS daemons, as this process sees it.
    pub mps_path: Option<PathBuf>,
    /// How the cards are found.
    pub discovery: Discovery,
    /// Which cards to look at.
    pub scope: Scope,
}

/// The backend for NVIDIA's cards.
#[derive(Debug)]
pub struct Nvidia {
    scope: Scope,
    discovery: Discovery,
    mps_path: Option<PathBuf>,
    files: Files,
    driver: Connection,
    stage: Stage,
    reader: Reader,
    topology: Topology,
    /// The cards of the last look.
    seen: Vec<Seen>,
    /// Cards of the driver's that its library did not know when it was opened last.
    strangers: BTreeSet<PciAddress>,
    /// How the cards were cut when they were looked at last.
    layout: Option<Layout>,
}

/// A card of the last look: where it is, its id, and the places and ids of its MIG devices.
#[derive(Debug)]
struct Seen {
    at: Locator,
    id: DeviceId,
    parts: Vec<(u32, DeviceId)>,
}

// === impl Settings ===

impl Default for Settings {
    /// The host itself, the loader's own search, all cards.
    fn default() -> Self {
        Self {
            host_root: PathBuf::from("/"),
            driver_path: None,
            loader_fallback: false,
            nvml_library: None,
            dev_path: None,
            mps_path: None,
            discovery: Discovery::Auto,
            scope: Scope::All,
        }
    }
}

/// Reads a text as each of the driver's files and names that are read here: a door for the fuzz
/// targets, and for nothing else.
#[doc(hidden)]
pub fn read_text(text: &str) {
    let _ = nodes::MigMinors::parse(text);
    let _ = bus::hex(text);
    let _ = profile::suffix_of(profile::from_device_name(text).unwrap_or(text));
}

// === impl Nvidia ===

impl Nvidia {
    /// A backend that has not looked at anything yet. Its driver calls are written down in `calls`.
    pub fn new(settings: Settings, calls: Arc<Calls>) -> Self {
        let search = Search {
            file: settings.nvml_library,
            driver_path: settings.driver_path,
            or_loader: settings.loader_fallback,
        };
        let files = Files::new(settings.host_root, Arc::clone(&calls)).with_dev(settings.dev_path);
        let stage = Stage::default();
        Self {
            driver: Connection::new(search, calls, stage.clone()),
            stage,
            reader: Reader::new(Nodes::new(files.clone())),
            files,
            scope: settings.scope,
            discovery: settings.discovery,
            mps_path: settings.mps_path,
            topology: Topology::default(),
            seen: Vec::new(),
            strangers: BTreeSet::new(),
            layout: None,
        }
    }

    fn try_survey(&mut self) -> Result<Report, Problem> {
        if self.discovery == Discovery::Tegra {
            return Ok(self.tegra());
        }
        let session = self.driver.ready()?;
        let driver = self.driver.facts(&session)?;
        let (session, look) = self.look(session)?;
        self.remember(session, &look.cards);
        let mut devices: Vec<_> = look
            .cards
            .into_iter()
            .flat_map(|card| card.devices)
            .collect();
        self.topology.apply(&mut devices);
        let mut report = Report {
            driver: Some(driver),
            devices,
            unreadable: look.unreadable,
            skipped: look.skipped,
            extras: extras::read(&self.files, self.mps_path.as_ref()),
            ..Report::default()
        };
        self.merge(&mut report);
        Ok(report)
    }

    /// Puts cards together that cannot be told apart.
    fn merge(&self, report: &mut Report) {
        if self.discovery == Discovery::Nvml {
            return;
        }
        let is_integrated = |device: &&Device| platform::is_integrated(&device.model);
        if let Some(card) = report.devices.iter().find(is_integrated) {
            report.devices = vec![platform::tegra(&self.files, Some(&card.model))];
        } else if platform::is_wsl(&self.files) {
            let cards = std::mem::take(&mut report.devices);
            report.devices.extend(platform::together(cards));
        }
    }

    /// The report of a Tegra board without NVML.
    fn tegra(&self) -> Report {
        Report {
            driver: Some(platform::tegra_driver(&self.files)),
            devices: vec![platform::tegra(&self.files, None)],
            ..Report::default()
        }
    }

    /// Looks at every card; opens the driver anew where it does not know a card of its own.
    fn look(&mut self, session: Arc<Session>) -> Result<(Arc<Session>, Look), Problem> {
        let look = self.look_once(&session);
        if look.strangers.is_subset(&self.strangers) {
            self.strangers.clone_from(&look.strangers);
            return Ok((session, look));
        }
        // NVML lists the cards when it is initialised: one that came later needs a new start.
        tracing::info!(cards = ?look.strangers, "the driver has new cards: opening it anew");
        self.strangers = look.strangers;
        drop(session);
        self.driver.close();
        let session = self.driver.ready()?;
        let look = self.look_once(&session);
        Ok((session, look))
    }

    fn look_once(&mut self, session: &Session) -> Look {
        let looker = Looker {
            session,
            files: &self.files,
            reader: &mut self.reader,
            scope: &self.scope,
        };
        looker.look()
    }

    /// Keeps where the cards are, and shows them to the thread that waits for events.
    fn remember(&mut self, session: Arc<Session>, cards: &[Card]) {
        self.seen = cards.iter().map(Seen::of).collect();
        self.layout = Some(Layout::seen(cards));
        self.stage.show(Scene {
            session: Some(session),
            cards: cards.iter().map(watched).collect(),
        });
    }

    fn forget(&mut self) {
        self.seen.clear();
        self.layout = None;
        self.topology.forget();
        self.driver.close();
    }
}

impl Backend for Nvidia {
    fn name(&self) -> &'static str {
        "nvidia"
    }

    fn survey(&mut self) -> Report {
        self.try_survey().unwrap_or_else(|problem| {
            self.forget();
            if problem.kind == ProblemKind::NoDriver
                && self.discovery == Discovery::Auto
                && platform::is_tegra(&self.files)
            {
                return self.tegra();
            }
            Report {
                problem: Some(problem),
                ..Report::default()
            }
        })
    }

    fn links(&mut self, report: &mut Report, again: bool) -> bool {
        let Some(session) = self.driver.session() else {
            return false;
        };
        if again {
            self.topology.forget();
        }
        let cards = self.seen.iter().map(|card| (card.id.clone(), card.at));
        let asked = self.topology.complete(session, &cards.collect::<Vec<_>>());
        if asked {
            self.topology.apply(&mut report.devices);
        }
        asked
    }

    fn glance(&mut self) -> bool {
        let (Some(session), Some(layout)) = (self.driver.session(), &self.layout) else {
            return false;
        };
        *layout != Layout::now(session, &self.seen)
    }

    fn samples(&mut self) -> Vec<Sample> {
        let Some(session) = self.driver.session() else {
            return Vec::new();
        };
        let cards = self.seen.iter();
        cards.flat_map(|card| card.samples(session)).collect()
    }

    fn events(&self) -> Option<Box<dyn Events>> {
        Some(Box::new(Watch::new(self.stage.clone())))
    }
}

// === impl Seen ===

impl Seen {
    fn of(card: &Card) -> Self {
        let parts = card.devices.iter().skip(1).map(|device| device.id.clone());
        Self {
            at: card.at,
            id: card.devices[0].id.clone(),
            parts: card.places.iter().copied().zip(parts).collect(),
        }
    }

    fn samples(&self, session: &Session) -> Vec<Sample> {
        let read = handle(session, self.at)
            .ok()
            .and_then(|card| Some((card, sensors::read(card)?)));
        let Some((card, telemetry)) = read else {
            return Vec::new();
        };
        let whole = Sample {
            device: self.id.clone(),
            telemetry,
        };
        let parts = self.parts.iter().filter_map(|(place, id)| {
            let part = card.mig_device(*place).ok()?;
            Some(Sample {
                device: id.clone(),
                telemetry: sensors::read_partition(part)?,
            })
        });
        std::iter::once(whole).chain(parts).collect()
    }
}

fn watched(card: &Card) -> Watched {
    let part = |device: &model::Device| match &device.kind {
        Kind::Partition {
            gpu_instance,
            compute_instance,
            ..
        } => Some((*gpu_instance, *compute_instance, device.id.clone())),
        Kind::Card { .. } => None,
    };
    Watched {
        at: card.at,
        id: card.devices[0].id.clone(),
        partitions: card.devices.iter().filter_map(part).collect(),
    }
}
