//! NVIDIA's implementation of the probe's [`ProbeBackend`].

use config::Discovery;
use model::Tier;
use probe::{
    child::{EventSource, ProbeBackend},
    protocol::{Checkup, ProblemKind, Report, Sample},
};
use tokio::time::Instant;

use super::{NvmlBackend, glance::MigLayout, platform, watch::EventWatch};

// === impl NvmlBackend ===

impl ProbeBackend for NvmlBackend {
    fn backend_name(&self) -> &'static str {
        "nvidia"
    }

    fn survey_devices(&mut self) -> Report {
        self.try_survey().unwrap_or_else(|problem| {
            // A driver that does not answer is closed, so that a driver that comes back is opened
            // anew.
            self.forget_driver();
            if problem.kind == ProblemKind::NoDriver
                && self.discovery == Discovery::Auto
                // NVIDIA's device plugin too takes a machine for a Tegra board if it has the
                // board's files and no NVML library.
                && platform::is_tegra(&self.files)
            {
                return self.report_tegra();
            }
            Report {
                problem: Some(problem),
                ..Report::default()
            }
        })
    }

    fn add_new_links(&mut self, report: &mut Report, again: bool) -> bool {
        // Cards that are reported as one device have no links between them.
        let Some(session) = self.driver.open_session().filter(|_| self.merged.is_none()) else {
            return false;
        };
        if again {
            self.topology.forget_links();
        }
        let cards = self.seen.iter().map(|card| (card.id.clone(), card.at));
        let asked = self
            .topology
            .complete_links(session, &cards.collect::<Vec<_>>());
        if asked {
            self.topology.apply_links(&mut report.devices);
        }
        asked
    }

    fn add_driver_files(&mut self, report: &mut Report) -> bool {
        let (Some(finder), Some(driver)) = (&mut self.finder, &report.driver) else {
            return false;
        };
        let Some(devices) = self.unfiled.take() else {
            return false;
        };
        report.extras.files = Some(finder.find_current_files(driver, &devices, Instant::now()));
        true
    }

    fn needs_survey(&mut self) -> bool {
        let (Some(session), Some(layout)) = (self.driver.open_session(), &self.layout) else {
            return false;
        };
        self.away.is_back(session) || *layout != MigLayout::read_now(session, &self.seen)
    }

    fn read_samples(&mut self) -> Vec<Sample> {
        let Some(session) = self.driver.open_session() else {
            return Vec::new();
        };
        let files = self.processes.then_some(&self.files);
        let cards = self.seen.iter();
        let samples = cards
            .flat_map(|card| card.read_samples(session, files))
            .collect();
        if self.merged.is_some() && self.seen.len() > 1 {
            return platform::merge_samples(samples);
        }
        samples
    }

    fn read_checkups(&mut self, tier: Tier, links: bool) -> Vec<Checkup> {
        let Some(session) = self.driver.open_session() else {
            return Vec::new();
        };
        // If several cards are one device, a fault could not be assigned to one of them.
        if self.merged.is_some() && self.seen.len() > 1 {
            return Vec::new();
        }
        let links = links.then_some(self.files.call_table());
        let cards = self.seen.iter();
        cards
            .flat_map(|card| card.check_up(session, tier, links, self.fabric_join))
            .collect()
    }

    fn open_events(&self) -> Option<Box<dyn EventSource>> {
        Some(Box::new(EventWatch::new(self.stage.clone())))
    }
}
