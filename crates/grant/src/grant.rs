//! Ids → edits. The steps and what each gives are NVIDIA's, so that its container runtime finds
//! what it expects; device nodes are handed over as well, because a runtime's hooks lose them.

use std::{collections::BTreeSet, path::Path};

use config::{Handover, ListStrategy, Method};
use model::{Device, Extras, classes};
use pool::Offer;

use crate::{
    Edits, Error, Lists, Runtime,
    cdi::{annotation, qualified},
    check::check,
    edits::{DeviceEdit, under},
    names::names,
    resolve_lists,
};

/// The vendor whose devices the runtime is told of.
pub(crate) const VENDOR: &str = "nvidia";

/// The variable by which NVIDIA's container runtime and CUDA images learn what is theirs.
const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

/// The folder whose entries name devices, for the strategy `volume-mounts`.
const DEVICES_FOLDER: &str = "/var/run/nvidia-container-devices";

/// Where the MPS daemon's files are on the host, unless the config says otherwise.
const MPS_ROOT: &str = "/run/nvidia/mps";

/// Something beside the devices that a pool hands over.
pub(crate) struct Extra<'a> {
    /// The CDI class.
    pub(crate) class: &'static str,
    /// The variable that asks NVIDIA's runtime for it.
    variable: &'static str,
    /// The nodes that the host has of it.
    pub(crate) nodes: &'a [String],
}

/// The CDI names that a container is given with one device of the offer.
pub fn cdi_names(offer: &Offer, device: &Device) -> Vec<String> {
    if device.vendor != VENDOR {
        return Vec::new();
    }
    let lists = resolve_lists(&offer.pool.handover, Runtime::default());
    Nvidia::new(offer, &lists, &[device]).cdi_names()
}

/// One container's NVIDIA devices and how they are handed over.
struct Nvidia<'a> {
    offer: &'a Offer,
    lists: &'a Lists,
    names: Vec<String>,
    channels: Vec<u32>,
    extras: Vec<Extra<'a>>,
}

/// What a container gets for `ids` of `offer`. It depends on nothing but the two. Device nodes are
/// given to the kubelet unless the pool says not to, or a CDI device carries them (rule 8).
pub fn grant(offer: &Offer, ids: &[String]) -> Result<Edits, Error> {
    let devices = check(offer, ids)?;
    let handover = &offer.pool.handover;
    // Who writes the specs has decided `auto`; where nobody does, nothing is known.
    let lists = resolve_lists(handover, Runtime::default());
    let (ours, others): (Vec<&Device>, Vec<&Device>) = devices
        .into_iter()
        .partition(|device| device.vendor == VENDOR);
    let mut edits = Edits::default();
    // The dev root is NVIDIA's: other devices are at home.
    let others = own_nodes(&others).map(|path| DeviceEdit::new(Path::new("/"), &path));
    let mut nodes: BTreeSet<DeviceEdit> = others.collect();
    if !ours.is_empty() {
        let nvidia = Nvidia::new(offer, &lists, &ours);
        nvidia.edit(&mut edits);
        if !lists.only_cdi() {
            let paths = own_nodes(&ours).chain(nvidia.other_nodes());
            nodes.extend(paths.map(|path| {
                let root = match found(offer).is_some_and(|it| it.host_nodes.contains(&path)) {
                    true => Path::new("/"),
                    false => &handover.nvidia.dev_root,
                };
                DeviceEdit::new(root, &path)
            }));
        }
    }
    if handover.device_nodes {
        edits.devices = nodes.into_iter().collect();
    }
    Ok(edits)
}

// === impl Nvidia ===

impl<'a> Nvidia<'a> {
    fn new(offer: &'a Offer, lists: &'a Lists, devices: &[&'a Device]) -> Self {
        Self {
            offer,
            lists,
            names: names(devices, offer.pool.handover.ids),
            channels: channels(offer).0,
            extras: extras(offer),
        }
    }

    fn edit(&self, edits: &mut Edits) {
        self.cdi(edits);
        self.mps(edits);
        for extra in &self.extras {
            edits.set(extra.variable, "enabled");
        }
        if let Some(capabilities) = &self.handover().nvidia.capabilities {
            edits.set("NVIDIA_DRIVER_CAPABILITIES", capabilities);
        }
        self.envvar(edits);
        self.volume_mounts(edits);
    }

    fn cdi(&self, edits: &mut Edits) {
        let names = self.cdi_names();
        if self.lists.has(ListStrategy::CdiAnnotations) {
            let prefix = &self.handover().nvidia.annotation_prefix;
            let (key, value) = annotation(prefix, self.offer.resource.as_str(), &names);
            edits.annotations.insert(key, value);
        }
        if self.lists.has(ListStrategy::CdiCri) {
            edits.cdi_devices = names;
        }
    }

    /// Devices, then channels, then what there is beside them.
    fn cdi_names(&self) -> Vec<String> {
        let devices = self.names.iter().map(|name| qualified("gpu", name));
        let channels = self.channels.iter();
        let channels = channels.map(|channel| qualified("imex-channel", channel));
        // A class without nodes has no spec, and a name without a spec stops the container.
        let extras = self.extras.iter().filter(|extra| !extra.nodes.is_empty());
        let extras = extras.map(|extra| qualified(extra.class, "all"));
        devices.chain(channels).chain(extras).collect()
    }

    fn mps(&self, edits: &mut Edits) {
        if self.offer.pool.sharing.method != Method::Mps {
            return;
        }
        let root = self.handover().nvidia.mps_root.as_deref();
        let root = root.unwrap_or(MPS_ROOT.as_ref());
        let pipe = format!("/{}/pipe", self.offer.resource);
        let inside = format!("/mps{pipe}");
        edits.set("CUDA_MPS_PIPE_DIRECTORY", &inside);
        edits.mount(under(root, &pipe), inside);
        edits.mount(under(root, "/shm"), "/dev/shm".to_owned());
    }

    fn envvar(&self, edits: &mut Edits) {
        if !self.lists.has(ListStrategy::Envvar) {
            return;
        }
        edits.set(VISIBLE_DEVICES, self.names.join(","));
        if !self.channels.is_empty() {
            let channels: Vec<String> = self.channels.iter().map(u32::to_string).collect();
            edits.set("NVIDIA_IMEX_CHANNELS", channels.join(","));
        }
    }

    /// The folder stands in the variable even where `envvar` is in force too, as with NVIDIA.
    fn volume_mounts(&self, edits: &mut Edits) {
        if !self.lists.has(ListStrategy::VolumeMounts) {
            return;
        }
        edits.set(VISIBLE_DEVICES, DEVICES_FOLDER);
        for name in &self.names {
            edits.mount("/dev/null", format!("{DEVICES_FOLDER}/{name}"));
        }
        for channel in &self.channels {
            edits.mount("/dev/null", format!("{DEVICES_FOLDER}/imex/{channel}"));
        }
    }

    /// The nodes of channels and of what there is beside the devices.
    fn other_nodes(&self) -> impl Iterator<Item = String> {
        let channel = |n: &u32| format!("/dev/nvidia-caps-imex-channels/channel{n}");
        let extras = self.extras.iter().flat_map(|extra| extra.nodes.to_vec());
        self.channels.iter().map(channel).chain(extras)
    }

    fn handover(&self) -> &Handover {
        &self.offer.pool.handover
    }
}

fn own_nodes(devices: &[&Device]) -> impl Iterator<Item = String> {
    let nodes = devices.iter().flat_map(|device| &device.nodes);
    nodes.map(|node| node.path.clone())
}

/// The IMEX channels of the pool: those that the host has, and those that it has not. Sorted.
pub(crate) fn channels(offer: &Offer) -> (Vec<u32>, Vec<u32>) {
    let there = found(offer).map(|extras| extras.companions.numbers(classes::IMEX_CHANNEL));
    let there: BTreeSet<u32> = there.into_iter().flatten().collect();
    let asked: BTreeSet<u32> = offer.pool.handover.nvidia.imex.iter().copied().collect();
    asked
        .into_iter()
        .partition(|channel| there.contains(channel))
}

/// What the pool hands over beside devices and channels, in the order of the CDI names.
pub(crate) fn extras(offer: &Offer) -> Vec<Extra<'_>> {
    let handover = &offer.pool.handover;
    let found = found(offer);
    let all = [
        (handover.nvidia.gdrcopy, classes::GDRCOPY, "NVIDIA_GDRCOPY"),
        (handover.nvidia.gds, classes::GDS, "NVIDIA_GDS"),
        (handover.nvidia.mofed, classes::MOFED, "NVIDIA_MOFED"),
    ];
    all.into_iter()
        .filter(|(enabled, ..)| *enabled)
        .map(|(_, class, variable)| Extra {
            class,
            variable,
            nodes: found.map_or(&[], |extras| extras.companions.of(class)),
        })
        .collect()
}

/// What the probe found beside the devices.
fn found(offer: &Offer) -> Option<&Extras> {
    let mut backends = offer.snapshot.backends.iter();
    let backend = backends.find(|backend| backend.name == VENDOR)?;
    Some(&backend.extras)
}

#[cfg(test)]
mod tests;
