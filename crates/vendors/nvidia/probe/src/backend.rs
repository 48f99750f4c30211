//! NVIDIA's implementation of the probe's [`Backend`].

use config::Discovery;
use model::Tier;
use probe::{
    child::{Backend, Events},
    protocol::{Checkup, ProblemKind, Report, Sample},
};
use tokio::time::Instant;

use super::{Nvidia, glance::Layout, platform, watch::Watch};

// === impl Nvidia ===

impl Backend for Nvidia {
    fn name(&self) -> &'static str {
        "nvidia"
    }

    fn survey(&mut self) -> Report {
        self.try_survey().unwrap_or_else(|problem| {
            // A driver that does not answer is closed, so that a driver that comes back is opened
            // anew.
            self.forget();
            if problem.kind == ProblemKind::NoDriver
                && self.discovery == Discovery::Auto
                // NVIDIA's device plugin too takes a machine for a Tegra board if it has the
                // board's files and no NVML library.
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
        // Cards that are reported as one device have no links between them.
        let Some(session) = self.driver.session().filter(|_| self.merged.is_none()) else {
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

    fn files(&mut self, report: &mut Report) -> bool {
        let (Some(finder), Some(driver)) = (&mut self.finder, &report.driver) else {
            return false;
        };
        let Some(devices) = self.unfiled.take() else {
            return false;
        };
        report.extras.files = Some(finder.look(driver, &devices, Instant::now()));
        true
    }

    fn glance(&mut self) -> bool {
        let (Some(session), Some(layout)) = (self.driver.session(), &self.layout) else {
            return false;
        };
        self.away.is_back(session) || *layout != Layout::now(session, &self.seen)
    }

    fn samples(&mut self) -> Vec<Sample> {
        let Some(session) = self.driver.session() else {
            return Vec::new();
        };
        let files = self.processes.then_some(&self.files);
        let cards = self.seen.iter();
        let samples = cards
            .flat_map(|card| card.samples(session, files))
            .collect();
        if self.merged.is_some() && self.seen.len() > 1 {
            return platform::sum(samples);
        }
        samples
    }

    fn checkups(&mut self, tier: Tier, links: bool) -> Vec<Checkup> {
        let Some(session) = self.driver.session() else {
            return Vec::new();
        };
        // If several cards are one device, a fault could not be assigned to one of them.
        if self.merged.is_some() && self.seen.len() > 1 {
            return Vec::new();
        }
        let links = links.then_some(self.files.calls());
        let cards = self.seen.iter();
        cards
            .flat_map(|card| card.checkups(session, tier, links, self.fabric_join))
            .collect()
    }

    fn events(&self) -> Option<Box<dyn Events>> {
        Some(Box::new(Watch::new(self.stage.clone())))
    }
}
