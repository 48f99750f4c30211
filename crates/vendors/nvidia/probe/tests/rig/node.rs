//! Simulated node of one test.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

use config::NvidiaProbe;
use model::PciAddress;
use probe::protocol::{Configure, Scope};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sim::{DeviceTarget, ScratchNode};

/// Longest time to wait for an expected event.
const DEADLINE: Duration = Duration::from_secs(60);

/// Simulated node, seen as the probe sees a machine.
pub(crate) struct Rig {
    pub(crate) node: ScratchNode,
}

impl Rig {
    /// Creates a node of this profile. Its library is a file of its own: a library that is loaded
    /// twice from one file has one state, and the tests of one process would share it.
    pub(crate) fn new(profile: &str) -> Self {
        let node = ScratchNode::from_name(profile).unwrap();
        Self { node }
    }

    /// Returns the address of a card. Product and simulator each have their own type for it.
    pub(crate) fn pci(&self, card: usize) -> PciAddress {
        let text = self.node.list_gpus().unwrap()[card].pci.to_string();
        text.parse().unwrap()
    }

    /// Returns the settings with which a probe finds the driver of the node.
    pub(crate) fn section(&self) -> NvidiaProbe {
        NvidiaProbe {
            nvml_library: Some(self.node.driver_library()),
            ..NvidiaProbe::default()
        }
    }

    /// Returns the settings for these cards of the node.
    pub(crate) fn configure(&self, cards: Scope) -> Configure {
        Configure {
            host_root: self.node.host_root(),
            cards,
            backend: self.section().to_value(),
            ..Configure::default()
        }
    }

    /// Returns the path of a file of a card on the PCI bus.
    pub(crate) fn bus_file(&self, card: PciAddress, file: &str) -> PathBuf {
        let folder = self.node.host_root().join("sys/bus/pci/devices");
        folder.join(card.to_string()).join(file)
    }

    /// Makes each read of this file of a card hang until a test writes to it.
    pub(crate) fn hang_file(&self, card: PciAddress, file: &str) -> PathBuf {
        let file = self.bus_file(card, file);
        fs_err::remove_file(&file).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &file, FileType::Fifo, mode, 0).unwrap();
        file
    }
}

/// Parses a device as an operator types it.
pub(crate) fn target(text: &str) -> DeviceTarget {
    text.parse().unwrap()
}

/// Repeats a question until there is an answer.
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
