//! NVIDIA's backend: reads the cards through NVML.
//!
//! The cards are listed from the PCI bus, and NVML is asked for each by its PCI address. So a card
//! has a name before the driver is called, and a lost card does not shift the others.

mod backend;
mod bus;
mod card;
mod checks;
mod constants;
mod driver;
mod driver_files;
mod extras;
mod fabric;
#[cfg(test)]
mod fixture;
mod glance;
mod library;
mod look;
mod nodes;
mod numa;
mod platform;
mod profile;
mod seen;
mod sensors;
mod shapes;
mod stage;
mod topology;
mod watch;

use std::{
    collections::BTreeSet, os::unix::fs::MetadataExt as _, path::PathBuf, sync::Arc, time::Duration,
};

use config::{Discovery, NvidiaProbe};
use model::{Device, DeviceId, DriverFiles, PciAddress};
use nvml::NvmlSession;
use probe::{
    CallTable,
    protocol::{Configure, FileSearch, Problem, Report, Scope},
    sysfs::{self, HostFiles},
};
use tokio::time::Instant;

use self::{
    card::{CardReader, SurveyedCard},
    driver::DriverConnection,
    driver_files::FileFinder,
    glance::{LostCards, MigLayout},
    library::LibrarySearch,
    look::{CardSurvey, Surveyor},
    nodes::NodeFinder,
    seen::{KnownCard, watched},
    stage::{SharedDriver, Watchlist},
    topology::KnownLinks,
};

/// Folder of the kernel driver. Its inode number names one loading of the driver: the kernel
/// numbers such folders and gives no number twice while it runs, so a driver that was loaded again
/// has another number.
const MODULE: &str = "/sys/module/nvidia";

/// Backend for NVIDIA's cards. Owns the open driver and the state between two surveys.
#[derive(Debug)]
pub struct NvmlBackend {
    scope: Scope,
    processes: bool,
    discovery: Discovery,
    mps_path: Option<PathBuf>,
    /// Longest time that a card may take to join its fabric without a warning.
    fabric_join: Duration,
    files: HostFiles,
    /// Finds the driver's files; `None` if they are not asked for or only one card is surveyed.
    finder: Option<FileFinder>,
    /// Devices of the survey that put off the search for the driver's files; `None` once the search
    /// is made.
    unfiled: Option<Vec<Device>>,
    driver: DriverConnection,
    stage: SharedDriver,
    reader: CardReader,
    topology: KnownLinks,
    /// Cards of the last survey.
    seen: Vec<KnownCard>,
    /// Cards that are bound to the driver and were unknown to NVML in the last survey.
    strangers: BTreeSet<PciAddress>,
    /// MIG layout of the last survey.
    layout: Option<MigLayout>,
    /// Cards without an NVML handle in the last survey.
    away: LostCards,
    /// Id of the one device that stands for all cards, where cards cannot be told apart.
    merged: Option<DeviceId>,
}

/// Parses a text as each of the driver's files and names that this crate reads. For the fuzz
/// targets only.
#[doc(hidden)]
pub fn read_text(text: &str) {
    let _ = nodes::MigMinors::parse_mig_minors(text);
    let _ = sysfs::bus::parse_hex(text);
    let _ = profile::suffix_of(profile::from_device_name(text).unwrap_or(text));
}

/// Searches a folder for driver files, with these bytes as the loader's cache. For the fuzz targets
/// only.
#[doc(hidden)]
pub fn find_driver_files(cache: &[u8], root: &std::path::Path, version: &str) -> DriverFiles {
    driver_files::fuzz(cache, root, version, &[])
}

/// Searches a folder for the files of a Tegra board. For the fuzz targets only.
#[doc(hidden)]
pub fn find_board_files(root: &std::path::Path) -> DriverFiles {
    let files = HostFiles::new(root, Arc::default());
    driver_files::fuzz(&[], root, "unknown", &[platform::tegra_card(&files, None)])
}

// === impl NvmlBackend ===

impl NvmlBackend {
    /// Creates a backend that has surveyed nothing yet. Its driver calls are recorded in `calls`.
    pub fn new(configure: &Configure, section: NvidiaProbe, calls: Arc<CallTable>) -> Self {
        let files = HostFiles::new(&configure.host_root, Arc::clone(&calls));
        let files = files.with_dev(section.dev_path);
        // A probe of one card only finds out if that card hangs; the report with the files comes
        // from the probe of all cards.
        let is_all = !matches!(configure.cards, Scope::Only(_));
        let is_asked = configure.driver_files != FileSearch::Never;
        let finder = (is_asked && is_all).then(|| {
            let root = section.driver_path.as_ref();
            let root = root.unwrap_or(&configure.host_root).clone();
            FileFinder::new(root, files.clone())
        });
        let search = LibrarySearch {
            file: section.nvml_library,
            driver_path: section.driver_path,
            or_loader: section.loader_fallback,
        };
        let stage = SharedDriver::default();
        Self {
            driver: DriverConnection::new(search, calls, stage.clone()),
            stage,
            reader: CardReader::new(NodeFinder::new(files.clone())),
            files,
            finder,
            unfiled: (configure.driver_files != FileSearch::Now).then(Vec::new),
            scope: configure.cards.clone(),
            processes: configure.processes,
            discovery: section.discovery,
            mps_path: section.mps_path,
            fabric_join: section.fabric_join,
            topology: KnownLinks::default(),
            seen: Vec::new(),
            strangers: BTreeSet::new(),
            layout: None,
            away: LostCards::default(),
            merged: None,
        }
    }

    /// Surveys all cards.
    ///
    /// # Errors
    /// The driver is absent, cannot be loaded, or no longer works.
    fn try_survey(&mut self) -> Result<Report, Problem> {
        if self.discovery == Discovery::Tegra {
            return Ok(self.report_tegra());
        }
        let session = self.driver.ensure_open()?;
        let mut driver = self.driver.read_driver_facts(&session)?;
        let module = self.files.node_metadata(MODULE);
        driver.instance = module.map(|folder| folder.ino().to_string());
        self.reader.note_driver(&driver);
        let (session, look) = self.survey_or_reopen(session)?;
        self.merged = self.merged_id(&look.cards);
        self.remember(session, &look.cards);
        self.away = LostCards::from_unreadable(&look.unreadable);
        let mut devices: Vec<_> = look
            .cards
            .into_iter()
            .flat_map(|card| card.devices)
            .collect();
        self.topology.apply_links(&mut devices);
        let mut report = Report {
            driver: Some(driver),
            devices,
            unreadable: look.unreadable,
            skipped: look.skipped,
            extras: extras::read_extras(&self.files, self.mps_path.as_ref()),
            ..Report::default()
        };
        report.extras.files = self.driver_files(&report);
        self.merge_devices(&mut report);
        Ok(report)
    }

    /// Returns the driver's files; `None` if they are not asked for or the search is put off.
    fn driver_files(&mut self, report: &Report) -> Option<Arc<DriverFiles>> {
        if let Some(unfiled) = &mut self.unfiled {
            unfiled.clone_from(&report.devices);
            return None;
        }
        let (finder, driver) = (self.finder.as_mut()?, report.driver.as_ref()?);
        Some(finder.find_current_files(driver, &report.devices, Instant::now()))
    }

    /// Returns the id of the one device that stands for all cards; `None` if each card is a device.
    fn merged_id(&self, cards: &[SurveyedCard]) -> Option<DeviceId> {
        if self.discovery == Discovery::Nvml || cards.is_empty() {
            return None;
        }
        let models = cards.iter().flat_map(|card| card.devices.first());
        let mut models = models.filter_map(|device| device.product_name());
        if models.any(platform::is_integrated) {
            return Some(platform::TEGRA.into());
        }
        platform::is_wsl(&self.files).then(|| platform::ALL.into())
    }

    /// Merges the devices of a report whose cards cannot be told apart.
    fn merge_devices(&self, report: &mut Report) {
        let Some(id) = &self.merged else { return };
        let mut models = report
            .devices
            .iter()
            .filter_map(|device| device.product_name());
        let model = models.find(|name| platform::is_integrated(name));
        if id.as_str() == platform::TEGRA {
            report.devices = vec![platform::tegra_card(&self.files, model)];
        } else {
            let cards = std::mem::take(&mut report.devices);
            report.devices.extend(platform::together(cards));
        }
    }

    /// Makes the report of a Tegra board without NVML.
    fn report_tegra(&mut self) -> Report {
        let mut report = Report {
            driver: Some(platform::tegra_driver(&self.files)),
            devices: vec![platform::tegra_card(&self.files, None)],
            extras: extras::read_extras(&self.files, self.mps_path.as_ref()),
            ..Report::default()
        };
        report.extras.files = self.driver_files(&report);
        report
    }

    /// Surveys every card. Opens the driver anew if a card is bound to the driver that NVML does
    /// not know.
    fn survey_or_reopen(
        &mut self,
        session: Arc<NvmlSession>,
    ) -> Result<(Arc<NvmlSession>, CardSurvey), Problem> {
        let look = self.look_once(&session);
        if look.strangers.is_subset(&self.strangers) {
            self.strangers.clone_from(&look.strangers);
            return Ok((session, look));
        }
        // NVML lists the cards in `nvmlInit_v2`: a card that came later needs a new initialisation.
        // Cards that were unknown before do not cause another one, or a card that NVML never learns
        // would close the driver in each survey.
        tracing::info!(cards = ?look.strangers, "the driver has new cards: opening it anew");
        self.strangers = look.strangers;
        drop(session);
        self.driver.close_driver();
        let session = self.driver.ensure_open()?;
        let look = self.look_once(&session);
        Ok((session, look))
    }

    fn look_once(&mut self, session: &NvmlSession) -> CardSurvey {
        let looker = Surveyor {
            session,
            files: &self.files,
            reader: &mut self.reader,
            scope: &self.scope,
        };
        looker.survey_cards()
    }

    /// Keeps the cards for samples and check-ups until the next survey, and passes them to the
    /// thread that waits for events.
    fn remember(&mut self, session: Arc<NvmlSession>, cards: &[SurveyedCard]) {
        let merged = self.merged.as_ref();
        self.seen = cards
            .iter()
            .map(|card| KnownCard::from_card(card, merged))
            .collect();
        self.layout = Some(MigLayout::from_cards(cards));
        self.stage.set_watchlist(Watchlist {
            session: Some(session),
            cards: cards.iter().map(|card| watched(card, merged)).collect(),
        });
    }

    /// Closes the driver and drops everything that was read through it.
    fn forget_driver(&mut self) {
        self.seen.clear();
        self.layout = None;
        self.away = LostCards::default();
        self.merged = None;
        self.topology.forget_links();
        self.driver.close_driver();
    }
}
