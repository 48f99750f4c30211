//! CDI specs of a node, made from facts. A spec contains only files and nodes that were found;
//! notes name those that containers will miss.

mod card;
mod flag;
mod held;
mod hook;
mod layout;
mod mount;
mod note;
mod platform;
mod wish;

use cdi::is_device;
use config::{IdStrategy, NvidiaCdi};
use model::{Backend, Device as Card, DriverFile, DriverFiles, FileKind, NodeRole, Snapshot};
use rules::{ContainerEdits, KindEdits, NamedEdits, NodeFacts, SpecRequest, SpecScope, Specs};

use self::{
    flag::CdiFeatureFlags,
    hook::{Hooks, SYMLINKS},
    mount::{file_mount, mount_at},
    platform::compat,
    wish::SpecContents,
};
use crate::{
    NVIDIA,
    companions::{GDRCOPY, GDS, IMEX_CHANNEL, MOFED},
    device_names::device_name,
    kinds::{ALL, GPU, KINDS, VENDOR},
};

/// Variable of NVIDIA's container runtime, with the value that keeps the runtime from adding
/// devices that CDI adds already.
const VOID: (&str, &str) = ("NVIDIA_VISIBLE_DEVICES", "void");
/// Kind of the spec for management containers.
const MANAGEMENT: &str = "management.nvidia.com/gpu";

/// Specs in progress.
struct SpecsInProgress<'a> {
    snapshot: &'a Snapshot,
    backend: &'a Backend,
    files: &'a DriverFiles,
    /// Driver files that containers are given with any device.
    contents: Vec<&'a DriverFile>,
    cdi: &'a NvidiaCdi,
    flags: CdiFeatureFlags,
    wish: &'a SpecContents,
    hooks: Hooks<'a>,
    nodes: NodeFacts<'a>,
    notes: Vec<String>,
}

/// Returns the specs for a scope.
///
/// # Errors
/// The probe has not reported the driver's files yet.
pub(crate) fn build_specs(request: &SpecRequest<'_>) -> Result<Specs, String> {
    let SpecRequest {
        snapshot,
        settings,
        scope,
        previous,
    } = request;
    let cdi = &settings.nvidia.cdi;
    let Some(wish) = SpecContents::in_scope(scope, snapshot) else {
        return Ok(Specs::default());
    };
    if nvidia_backend(snapshot).is_none_or(|backend| backend.extras.files.is_none()) {
        let why = "the probe has not told of the driver's files, so specs are not made";
        return Err(why.to_owned());
    }
    Ok(match scope {
        SpecScope::Asked { .. } | SpecScope::Everything(_) => {
            by_class(snapshot, &wish, cdi, previous)
        }
        SpecScope::Management(_) => management(snapshot, &wish, cdi),
    })
}

/// Returns the specs of a node, one for each class.
///
/// A device that is still in the snapshot, but whose nodes are no longer visible, keeps its edits
/// from `previous`: a container runtime refuses a container with an unknown name.
fn by_class(
    snapshot: &Snapshot,
    wish: &SpecContents,
    cdi: &NvidiaCdi,
    previous: &[KindEdits],
) -> Specs {
    let nothing = DriverFiles::default();
    let Some(mut maker) = SpecsInProgress::new(snapshot, wish, cdi, &nothing) else {
        return Specs::default();
    };
    let mut specs: Vec<KindEdits> = maker.gpu_spec(previous).into_iter().collect();
    specs.extend(maker.channels());
    let companions = &maker.backend.extras.companions;
    let others = [
        (GDRCOPY, wish.gdrcopy, companions.list_class(GDRCOPY)),
        (GDS, wish.gds, companions.list_class(GDS)),
        (MOFED, wish.mofed, companions.list_class(MOFED)),
    ];
    for (class, wanted, nodes) in others {
        if wanted && !nodes.is_empty() {
            specs.push(maker.companion_spec(class, nodes));
        }
    }
    maker.add_spec_notes();
    Specs {
        specs,
        notes: maker.notes,
    }
}

/// Returns the spec for containers that manage the node: the one device `all`, with every node of
/// the driver and its files.
fn management(snapshot: &Snapshot, wish: &SpecContents, cdi: &NvidiaCdi) -> Specs {
    let nothing = DriverFiles::default();
    let Some(mut maker) = SpecsInProgress::new(snapshot, wish, cdi, &nothing) else {
        return Specs::default();
    };
    let cards = maker.nvidia_devices();
    let own = cards.iter().flat_map(|card| &card.nodes);
    let own = own.map(|node| &node.path).chain(&maker.files.board_nodes);
    let own = own.map(String::as_str);
    let every = maker.files.nodes.keys().map(String::as_str);
    let every = every.filter(|path| path.starts_with("/dev/nvidia"));
    let paths: Vec<&str> = own.chain(every).collect();
    let edits = maker.nodes.make_node_edits(paths);
    let mut specs = Vec::new();
    match edits.is_empty() {
        true => maker
            .notes
            // A CDI device without edits is invalid, so there is no spec.
            .push("there is no device node of the driver".to_owned()),
        false => specs.push(kind_edits(
            MANAGEMENT,
            vec![named_edits(ALL, edits)],
            maker.common_edits(),
        )),
    }
    maker.add_spec_notes();
    Specs {
        specs,
        notes: maker.notes,
    }
}

// === impl SpecsInProgress ===

impl<'a> SpecsInProgress<'a> {
    fn new(
        snapshot: &'a Snapshot,
        wish: &'a SpecContents,
        cdi: &'a NvidiaCdi,
        nothing: &'a DriverFiles,
    ) -> Option<Self> {
        let backend = nvidia_backend(snapshot)?;
        let files = backend.extras.files.as_deref().unwrap_or(nothing);
        let flags = CdiFeatureFlags::from_cdi_section(cdi);
        let contents = files.files.iter().filter(|file| match file.kind {
            FileKind::Gds => false,
            FileKind::Ipc => flags.ipc,
            FileKind::Companion => flags.companions,
            _ => true,
        });
        Some(Self {
            snapshot,
            backend,
            files,
            contents: contents.collect(),
            cdi,
            flags,
            wish,
            hooks: Hooks::new(cdi, files),
            nodes: NodeFacts {
                root: &wish.dev_root,
                at_home: &backend.extras.host_nodes,
                stats: &files.nodes,
                groups: flags.groups,
            },
            notes: Vec::new(),
        })
    }

    /// Returns the spec of cards and MIG devices, with `all` for all of them; `None` without
    /// devices.
    fn gpu_spec(&mut self, previous: &[KindEdits]) -> Option<KindEdits> {
        let before = previous.iter().find(|spec| spec.kind == KINDS[0]);
        let mut devices: Vec<NamedEdits> = Vec::new();
        let mut all = ContainerEdits::default();
        for card in self.nvidia_devices() {
            // Cards in MIG mode are listed too. NVIDIA's device plugin leaves them out, so its
            // strategy `none` hands out names without a CDI device.
            let edits = self.device_edits(card);
            all.append_edits(edits.clone());
            for name in &self.spec_names(card) {
                // A name that is not valid in CDI would make the runtime reject the whole file.
                if !is_device(name) {
                    self.notes.push(format!(
                        "{name} cannot be named in CDI, and has no entry in the spec"
                    ));
                } else if !edits.is_empty() {
                    devices.push(NamedEdits {
                        annotations: self.annotations(card),
                        ..named_edits(name, edits.clone())
                    });
                } else if let Some(kept) = before.and_then(|spec| spec.find_named_edits(name)) {
                    devices.push(kept.clone());
                } else {
                    self.notes.push(format!(
                        "no device node of {name} is visible, so it has no entry in the spec"
                    ));
                }
            }
        }
        if devices.is_empty() {
            return None;
        }
        if !all.is_empty() && !devices.iter().any(|device| device.name == ALL) {
            devices.push(named_edits(ALL, all));
        }
        let kind = format!("{VENDOR}/{GPU}");
        Some(kind_edits(&kind, devices, self.common_edits()))
    }

    /// Returns the spec of the IMEX channels that are wanted and on the node.
    fn channels(&self) -> Option<KindEdits> {
        let there = self.backend.extras.companions.list_numbers(IMEX_CHANNEL);
        let there: Vec<u32> = there.collect();
        let channels = self.wish.imex.iter().filter(|n| there.contains(n));
        let devices: Vec<NamedEdits> = channels
            .map(|n| {
                let path = format!("/dev/nvidia-caps-imex-channels/channel{n}");
                named_edits(&n.to_string(), self.nodes.make_node_edits([path]))
            })
            .collect();
        let kind = format!("{VENDOR}/{IMEX_CHANNEL}");
        (!devices.is_empty()).then(|| kind_edits(&kind, devices, void()))
    }

    /// Returns the spec of a companion class, with the one device `all`.
    fn companion_spec(&self, class: &str, nodes: &[String]) -> KindEdits {
        let mut edits = self.nodes.make_node_edits(nodes);
        if class == GDS {
            let files = self.files.files.iter();
            let files = files.filter(|file| file.kind == FileKind::Gds);
            edits
                .mounts
                .extend(files.map(|file| file_mount(&self.cdi.driver_root, file)));
        }
        let kind = format!("{VENDOR}/{class}");
        kind_edits(&kind, vec![named_edits(ALL, edits)], void())
    }

    /// Returns the edits that every container with a device gets.
    fn common_edits(&self) -> ContainerEdits {
        let shared = self
            .nvidia_devices()
            .into_iter()
            .flat_map(|card| &card.nodes);
        let shared = shared.filter(|node| node.role == NodeRole::Control);
        let mut edits = self.nodes.make_node_edits(shared.map(|node| &node.path));
        // Without this value NVIDIA's runtime adds all devices of a CUDA image's variable a second
        // time.
        edits.append_edits(void());
        let folders: Vec<&str> = layout::cuda_folders(&self.contents).into_iter().collect();
        if !folders.is_empty() && self.files.platform.is_usual() {
            let folders = folders.join(":");
            edits.set_variable("NVIDIA_CTK_LIBCUDA_DIR", folders);
        }
        let root = &self.cdi.driver_root;
        let files = self.contents.iter();
        edits
            .mounts
            .extend(files.map(|file| file_mount(root, file)));
        if !self.hooks.makes_hook(SYMLINKS) {
            // No hook makes the links, so the files are mounted under the links' names.
            let links = layout::container_links(&self.contents);
            let links = links
                .iter()
                .map(|(path, link)| mount_at(root, link.file, path));
            edits.mounts.extend(links);
        }
        let driver = self.backend.driver.as_ref();
        let platform = self.files.platform;
        let compat = compat(platform, driver, &self.nvidia_devices());
        edits.hooks = self.hooks.common(&self.contents, platform, compat);
        edits
    }

    /// Returns NVIDIA's devices in the snapshot.
    fn nvidia_devices(&self) -> Vec<&'a Card> {
        let entries = self.snapshot.devices.iter();
        let cards = entries.map(|entry| &*entry.device);
        cards.filter(|card| card.vendor == NVIDIA.name).collect()
    }

    /// Returns the CDI names of a device, each once.
    fn spec_names(&self, card: &Card) -> Vec<String> {
        let ids: &[IdStrategy] = match &self.wish.ids[..] {
            [] => &[IdStrategy::Uuid],
            ids => ids,
        };
        let mut names: Vec<String> = ids.iter().map(|ids| device_name(card, *ids)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Returns the backend of NVIDIA's probe.
fn nvidia_backend(snapshot: &Snapshot) -> Option<&Backend> {
    snapshot.find_backend(NVIDIA.name)
}

fn named_edits(name: &str, edits: ContainerEdits) -> NamedEdits {
    NamedEdits {
        name: name.to_owned(),
        container_edits: edits,
        ..NamedEdits::default()
    }
}

fn kind_edits(kind: &str, devices: Vec<NamedEdits>, common: ContainerEdits) -> KindEdits {
    KindEdits {
        kind: kind.to_owned(),
        devices,
        container_edits: common,
    }
}

/// Returns the edits that only set the variable to `void`.
fn void() -> ContainerEdits {
    let mut edits = ContainerEdits::default();
    edits.set_variable(VOID.0, VOID.1);
    edits
}

#[cfg(test)]
mod tests;
