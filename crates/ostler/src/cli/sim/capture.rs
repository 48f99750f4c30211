//! `ostler sim capture`: writes a profile of the node that it runs on.
//!
//! The driver's library is loaded into this process, unlike in the agent: a driver that hangs costs
//! this command only.

mod card;
mod host;
mod links;
mod mig;
mod notes;
mod product;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use nvml::{NvmlLibrary, NvmlSession};
use sim::{
    NodeProfile,
    profile::{ProfileCard, cluster},
    state::{DriverVersions, GpuModel, NodePlatform, NvlinkFabric},
};

use host::HostFiles;
use notes::CaptureNotes;

/// Name by which the loader finds the driver's library.
const LIBRARY: &str = "libnvidia-ml.so.1";
/// `NVML_GPU_VIRTUALIZATION_MODE_VGPU` of nvml.h: a vGPU in a virtual machine.
const VGPU: u32 = 2;
/// Name of the profile if the machine has no product name.
const NAMELESS: &str = "captured";

/// Write a profile of the node this runs on, for `ostler sim create --profile FILE`.
///
/// The profile has the cards, links, NUMA nodes and MIG devices that the driver (through NVML) and
/// the kernel (in /sys) report. UUIDs and serial numbers are left out, so that new ones are made up.
/// Values that cannot be read are left out too, with a note on standard error.
#[derive(Debug, clap::Args)]
pub(super) struct SimCaptureArgs {
    /// The file to write; without it the profile is printed
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The profile's name [default: made from the machine's product name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Keep UUIDs and serial numbers as they are
    #[arg(long)]
    keep_ids: bool,

    /// Folder that has the host's /sys, /proc and /dev
    #[arg(long, value_name = "DIR", default_value = "/")]
    host_root: PathBuf,

    /// The driver library [default: wherever the loader finds libnvidia-ml.so.1]
    #[arg(long, value_name = "FILE")]
    nvml_library: Option<PathBuf>,
}

/// Inputs of a capture, and notes on values that could not be read.
#[derive(Debug)]
struct Capture<'a> {
    session: &'a NvmlSession,
    host: HostFiles,
    notes: CaptureNotes,
    keep_ids: bool,
}

// === impl SimCaptureArgs ===

impl SimCaptureArgs {
    /// Writes the profile. Returns the text to print.
    ///
    /// # Errors
    /// The driver does not start or does not list its cards, or the file cannot be written.
    pub(super) fn capture(self) -> anyhow::Result<String> {
        let library = self.nvml_library.unwrap_or_else(|| LIBRARY.into());
        let session = open_driver(&library)?;
        let mut capture = Capture {
            session: &session,
            host: HostFiles::new(&self.host_root),
            notes: CaptureNotes::default(),
            keep_ids: self.keep_ids,
        };
        let profile = capture.capture_profile(self.name)?;
        let yaml = format!(
            "# Captured from a node with `ostler sim capture`.{}\n{}",
            if self.keep_ids {
                ""
            } else {
                " UUIDs and serial numbers are left out."
            },
            profile.yaml()?
        );
        if let Err(error) = NodeProfile::parse_profile(&yaml) {
            capture
                .notes
                .add_note(&format!("the profile must be mended by hand: {error}"));
        }
        capture.notes.print_notes();
        let Some(file) = self.output else {
            return Ok(yaml);
        };
        fs_err::write(&file, yaml)?;
        let file = super::quoted(&file);
        Ok(format!(
            "{file} describes this node; make one like it with: {} sim create DIR --profile {file}\n",
            super::program_name()
        ))
    }
}

// === impl Capture ===

impl Capture<'_> {
    fn capture_profile(&mut self, name: Option<String>) -> anyhow::Result<NodeProfile> {
        let (cards, models) = self.capture_cards()?;
        let machine = self.host.product_name();
        let name = name.or_else(|| Some(make_slug(machine.as_deref()?)));
        let name = name.filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| NAMELESS.to_owned());
        let addresses: Vec<_> = cards.iter().map(|card| card.pci).collect();
        let platform = self.detect_platform();
        let vgpu = (platform == NodePlatform::Vgpu).then(|| self.host.vgpu_host(&addresses));
        let shared = (models.len() == 1)
            .then(|| models.keys().next().cloned())
            .flatten();
        let described = describe_machine(machine.as_deref(), &cards, &models);
        let bus = self.host.functions(&addresses);
        Ok(NodeProfile {
            description: described,
            machine,
            platform,
            driver: self.capture_driver(),
            fabric: self.capture_fabric(&name),
            vgpu: vgpu.flatten(),
            tegra: None,
            numa: self.host.numa_nodes(),
            gpus: cards
                .into_iter()
                .map(|card| ProfileCard {
                    model: card.model.filter(|model| Some(model) != shared.as_ref()),
                    ..card
                })
                .collect(),
            model: shared,
            models,
            nvlinks: BTreeMap::new(),
            nvswitches: bus.switches,
            others: bus.others,
            name,
        })
    }

    fn detect_platform(&self) -> NodePlatform {
        if self.host.is_wsl() {
            return NodePlatform::Wsl;
        }
        let count = self.session.count_cards().unwrap_or(0);
        let mode = |index| self.session.by_index(index).ok()?.virtualization().ok();
        match (0..count).filter_map(mode).any(|mode| mode == VGPU) {
            true => NodePlatform::Vgpu,
            false => NodePlatform::BareMetal,
        }
    }

    fn capture_driver(&mut self) -> DriverVersions {
        let version = self.session.driver_version();
        let nvml = self.session.nvml_version();
        let cuda = self.session.cuda_version();
        DriverVersions {
            version: self
                .notes
                .read_or("the driver's version", version, String::new()),
            nvml: self.notes.read_or("NVML's version", nvml, String::new()),
            cuda: {
                let (major, minor) = self.notes.read_or("CUDA's version", cuda, (0, 0));
                major.saturating_mul(1000).saturating_add(minor * 10)
            },
        }
    }

    /// Reads the cards in the driver's order, and their models. Leaves out unreadable ones.
    fn capture_cards(&mut self) -> anyhow::Result<(Vec<ProfileCard>, BTreeMap<String, GpuModel>)> {
        let count = self
            .session
            .count_cards()
            .context("cannot count the cards")?;
        let mut cards = Vec::new();
        let mut models = BTreeMap::new();
        for index in 0..count {
            let read = self.session.by_index(index).map_err(anyhow::Error::from);
            match read.and_then(|device| self.capture_card(device, cards.len(), &mut models)) {
                Ok(card) => cards.push(card),
                Err(error) => self
                    .notes
                    .add_note(&format!("card {index} is left out: {error:#}")),
            }
        }
        self.capture_links(&mut cards);
        Ok((cards, models))
    }

    /// Reads the fabric of the first card that has joined one.
    fn capture_fabric(&mut self, name: &str) -> Option<NvlinkFabric> {
        let count = self.session.count_cards().unwrap_or(0);
        let fabrics = (0..count).filter_map(|index| {
            self.session
                .by_index(index)
                .ok()?
                .read_fabric_membership()
                .ok()
        });
        let found = fabrics
            .into_iter()
            .find(|f| f.joined && f.cluster != [0; 16])?;
        // NVML gives the cluster's UUID as 16 bytes; profiles have the usual text.
        let digits = format!("{:032x}", u128::from_be_bytes(found.cluster));
        let part = |range| digits.get(range).unwrap_or_default();
        let parts = [
            part(0..8),
            part(8..12),
            part(12..16),
            part(16..20),
            part(20..32),
        ];
        Some(NvlinkFabric {
            cluster: if self.keep_ids {
                parts.join("-")
            } else {
                cluster(name)
            },
            clique: found.clique,
        })
    }
}

fn open_driver(library: &Path) -> anyhow::Result<NvmlSession> {
    let remedy = "run this on a node with NVIDIA's driver, or name its library with --nvml-library";
    let opened = NvmlLibrary::open_library(library, Arc::default());
    let opened = opened.with_context(|| format!("there is no driver to ask; {remedy}"))?;
    opened.initialize().map_err(|(error, words)| {
        anyhow::Error::new(error).context(format!("the driver does not start ({words}); {remedy}"))
    })
}

/// Makes a name of lower-case letters, digits and dashes.
fn make_slug(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let dashed: String = text.chars().map(plain).collect();
    let words = dashed.split('-').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

fn describe_machine(
    machine: Option<&str>,
    cards: &[ProfileCard],
    models: &BTreeMap<String, GpuModel>,
) -> String {
    let count = |key: &String| {
        cards
            .iter()
            .filter(|card| card.model.as_ref() == Some(key))
            .count()
    };
    let parts = models
        .iter()
        .map(|(key, model)| format!("{} x {}", count(key), model.name));
    let parts = parts.collect::<Vec<_>>().join(" and ");
    let machine = machine.unwrap_or("machine");
    format!(
        "captured: {machine} with {}",
        if parts.is_empty() { "no GPU" } else { &parts }
    )
}
