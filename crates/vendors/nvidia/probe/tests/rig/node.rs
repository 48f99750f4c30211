//! A simulated node of a test's own.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

use config::NvidiaProbe;
use model::PciAddress;
use probe::protocol::{Configure, Scope};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sim::{Scratch, Target};

/// How long to wait for what must come.
const DEADLINE: Duration = Duration::from_secs(60);

/// A simulated node, as the probe meets it.
pub(crate) struct Rig {
    pub(crate) node: Scratch,
}

impl Rig {
    /// A node of this profile. Its library is a file of its own: one that is loaded twice from one
    /// file has one state, and the tests of one process would share it.
    pub(crate) fn new(profile: &str) -> Self {
        let node = Scratch::named(profile).unwrap();
        Self { node }
    }

    /// The address of a card, which the product and the simulator each read in their own way.
    pub(crate) fn pci(&self, card: usize) -> PciAddress {
        let text = self.node.gpus().unwrap()[card].pci.to_string();
        text.parse().unwrap()
    }

    /// Settings by which a probe finds the driver of the node.
    pub(crate) fn section(&self) -> NvidiaProbe {
        NvidiaProbe {
            nvml_library: Some(self.node.library()),
            ..NvidiaProbe::default()
        }
    }

    /// Settings for these cards of the node.
    pub(crate) fn configure(&self, cards: Scope) -> Configure {
        Configure {
            host_root: self.node.root(),
            cards,
            backend: self.section().to_value(),
            ..Configure::default()
        }
    }

    /// A file of a card on the PCI bus.
    pub(crate) fn bus_file(&self, card: PciAddress, file: &str) -> PathBuf {
        let folder = self.node.root().join("sys/bus/pci/devices");
        folder.join(card.to_string()).join(file)
    }

    /// Lets whoever reads this file of a card hang, until somebody writes it.
    pub(crate) fn hang_file(&self, card: PciAddress, file: &str) -> PathBuf {
        let file = self.bus_file(card, file);
        fs_err::remove_file(&file).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &file, FileType::Fifo, mode, 0).unwrap();
        file
    }
}

/// A device as a person types it.
pub(crate) fn target(text: &str) -> Target {
    text.parse().unwrap()
}

/// Asks until there is an answer.
pub(crate) fn wait_for<T>(mut question: impl FnMut() -> Option<T>) -> T {
    let end = SystemTime::now() + DEADLINE;
    loop {
        if let Some(answer) = question() {
            return answer;
        }
        assert!(SystemTime::now() < end, "it did not happen in time");
        thread::sleep(Duration::from_millis(20));
    }
}
