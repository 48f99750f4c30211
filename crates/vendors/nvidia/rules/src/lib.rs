//! Rules of NVIDIA's devices: names and link scores, MIG strategies, sharing through MPS, IMEX
//! channels, container edits and CDI specs, XIDs, and the reset command.

pub mod companions;
mod device_names;
mod division;
mod edits;
mod kinds;
mod missing;
pub mod names;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod sharing;
mod specs;
pub mod xid;

use config::{Backends, Sharing};
use model::{Device, Entry, EventCode};
use rules::{
    EditRequest, Eligibility, EventMeaning, Grant, MissingRequirement, ResourceNeed, Rules,
    ScoreTable, SpecRequest, Specs, Vendor, Vendors,
};

/// NVIDIA's rules. Stateless: each call gets facts and config.
#[derive(Clone, Copy, Debug)]
pub struct NvidiaRules;

/// NVIDIA's name, terms and CDI kinds.
pub const NVIDIA: Vendor = Vendor {
    name: "nvidia",
    partition: "MIG device",
    partition_mode: "MIG mode",
    link: "NVLink",
    switch: "NVSwitch",
    link_mark: "NV",
    worth: WORTH,
    cdi_kinds: &kinds::KINDS,
    device_variable: Some("CUDA_VISIBLE_DEVICES"),
};

/// List of vendors with NVIDIA alone, for tests and tools.
pub const VENDORS: Vendors = Vendors::new(&[&NvidiaRules]);

/// Link scores of NVIDIA's go-gpuallocator 0.6.0: one NVLink is worth more than any path through
/// the machine.
const WORTH: ScoreTable = ScoreTable {
    board: 60,
    switch: 50,
    switches: 40,
    host_bridge: 30,
    node: 20,
    system: 10,
    lane: 100,
    most_lanes: 18,
    same_numa: 0,
};

// === impl NvidiaRules ===

impl Rules for NvidiaRules {
    fn vendor(&self) -> &'static Vendor {
        &NVIDIA
    }

    fn divide_devices(&self, entries: &[&Entry], settings: &Backends) -> Vec<Eligibility> {
        division::divide_by_strategy(settings.nvidia.mig, entries)
    }

    fn share_obstacle(&self, device: &Device, sharing: &Sharing) -> Option<String> {
        sharing::method_obstacle(device, sharing)
    }

    fn find_missing(&self, need: &ResourceNeed<'_>) -> Option<MissingRequirement> {
        missing::first_missing(need)
    }

    fn edit_container(&self, request: &EditRequest<'_>) -> Grant {
        edits::container_edits(request)
    }

    fn make_specs(&self, request: &SpecRequest<'_>) -> Result<Specs, String> {
        specs::build_specs(request)
    }

    fn interpret_event(&self, code: &EventCode, settings: &Backends) -> Option<EventMeaning> {
        xid::xid_meaning(code, &settings.nvidia.xids)
    }

    /// Returns one `nvidia-smi` command for all cards: cards with NVLinks between them are reset
    /// together or not at all.
    fn reset_command(&self, devices: &[&Device]) -> Option<Vec<String>> {
        let address = |device: &&Device| match device.pci {
            Some(pci) => Some(pci.to_string()),
            // nvidia-smi accepts PCI address, index or UUID after `-i`. An index shifts when a card
            // is lost, so it is the second choice.
            None => device.index.map(|index| index.to_string()),
        };
        let addresses: Vec<String> = devices.iter().filter_map(address).collect();
        let command = ["nvidia-smi", "--gpu-reset", "-i"].map(str::to_owned);
        Some(command.into_iter().chain([addresses.join(",")]).collect())
    }
}
