//! Edits of a container that is given devices. Steps and contents are those of Allocate in NVIDIA's
//! device plugin, so that NVIDIA's container runtime finds what it expects. Device nodes are handed
//! over too. Nodes that only a runtime's hook adds are absent from the container's device cgroup,
//! and `systemctl daemon-reload` takes them away (NVIDIA/nvidia-container-toolkit issue 48).

use std::path::Path;

use cdi::Annotation;
use config::{IdStrategy, ListStrategy, Method};
use model::{Device, names};
use rules::{ContainerNode, EditRequest, Grant, GrantNote, join_root};

use crate::{
    companions::{GDRCOPY, GDS, IMEX_CHANNEL, MOFED},
    device_names::device_names,
    kinds::{ALL, GPU, PLUGIN, qualified},
};

/// Variable by which NVIDIA's container runtime and CUDA images find their devices.
const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";
/// Folder whose entries name devices under the strategy `volume-mounts`.
const DEVICES_FOLDER: &str = "/var/run/nvidia-container-devices";
/// Folder on the host with the MPS daemon's files, if the config names no other. It is the default
/// of NVIDIA's Helm chart (`mps.root`).
const MPS_ROOT: &str = "/run/nvidia/mps";

/// Companion that a pool hands over beside the devices.
struct RequestedCompanion<'a> {
    /// Class of the companion; also its CDI class.
    class: &'static str,
    /// Variable that requests the companion from NVIDIA's runtime.
    variable: &'static str,
    /// Device nodes of the companion on the host.
    nodes: &'a [String],
}

/// Edits of one container in progress.
struct EditsInProgress<'a> {
    request: &'a EditRequest<'a>,
    names: Vec<String>,
    /// IMEX channels of the pool that the host has, sorted.
    channels: Vec<u32>,
    /// IMEX channels of the pool that the host does not have, sorted.
    missing: Vec<u32>,
    extras: Vec<RequestedCompanion<'a>>,
    grant: Grant,
}

/// Returns the edits for a container that is given these devices. Device nodes are handed to the
/// kubelet unless a CDI device carries them (ARCHITECTURE.md, rule 8).
pub(crate) fn container_edits(request: &EditRequest<'_>) -> Grant {
    let mut maker = EditsInProgress::new(request);
    maker.cdi();
    maker.mps();
    for extra in &maker.extras {
        maker.grant.edits.set_variable(extra.variable, "enabled");
    }
    if let Some(capabilities) = &request.handover.nvidia.capabilities {
        maker
            .grant
            .edits
            .set_variable("NVIDIA_DRIVER_CAPABILITIES", capabilities);
    }
    maker.envvar();
    maker.volume_mounts();
    if !request.lists.only_cdi() {
        maker.add_device_nodes();
    }
    maker.add_grant_notes();
    maker.grant
}

// === impl EditsInProgress ===

impl<'a> EditsInProgress<'a> {
    fn new(request: &'a EditRequest<'a>) -> Self {
        let wanted = &request.handover.nvidia;
        let companions = &request.extras.companions;
        let there: Vec<u32> = companions.list_numbers(IMEX_CHANNEL).collect();
        let mut asked = wanted.imex.clone();
        asked.sort_unstable();
        asked.dedup();
        let (channels, missing) = asked
            .into_iter()
            .partition(|channel| there.contains(channel));
        // In the order of the CDI names, which is that of NVIDIA's device plugin.
        let extras = [
            (wanted.gdrcopy, GDRCOPY, "NVIDIA_GDRCOPY"),
            (wanted.gds, GDS, "NVIDIA_GDS"),
            (wanted.mofed, MOFED, "NVIDIA_MOFED"),
        ];
        let extras = extras.into_iter().filter(|(enabled, ..)| *enabled);
        Self {
            request,
            names: device_names(request.devices, request.handover.ids),
            channels,
            missing,
            extras: extras
                .map(|(_, class, variable)| RequestedCompanion {
                    class,
                    variable,
                    nodes: companions.list_class(class),
                })
                .collect(),
            grant: Grant::default(),
        }
    }

    /// Adds the CDI names, as annotation or as CRI field.
    fn cdi(&mut self) {
        let names = self.cdi_names();
        let lists = self.request.lists;
        if lists.has_strategy(ListStrategy::CdiAnnotations) {
            let annotation = Annotation {
                prefix: &self.request.handover.nvidia.annotation_prefix,
                plugin: PLUGIN,
                resource: self.request.resource.as_str(),
            };
            let (key, value) = annotation.key_and_value(&names);
            self.grant.annotations.insert(key, value);
        }
        if lists.has_strategy(ListStrategy::CdiCri) {
            self.grant.cdi_devices = names;
        }
    }

    /// Returns the CDI names: devices, then channels, then companions.
    fn cdi_names(&self) -> Vec<String> {
        let devices = self.names.iter().map(|name| qualified(GPU, name));
        let channels = self.channels.iter();
        let channels = channels.map(|channel| qualified(IMEX_CHANNEL, channel));
        // A class without nodes has no spec, and a container runtime refuses a container with an
        // unknown name.
        let extras = self.extras.iter().filter(|extra| !extra.nodes.is_empty());
        let extras = extras.map(|extra| qualified(extra.class, ALL));
        devices.chain(channels).chain(extras).collect()
    }

    /// Adds variable and mounts of an MPS client. The paths in the container are those of NVIDIA's
    /// device plugin.
    fn mps(&mut self) {
        if self.request.sharing.method != Method::Mps {
            return;
        }
        let root = self.request.handover.nvidia.mps_root.as_deref();
        let root = root.unwrap_or(MPS_ROOT.as_ref());
        let pipe = format!("/{}/pipe", self.request.resource);
        let inside = format!("/mps{pipe}");
        self.grant
            .edits
            .set_variable("CUDA_MPS_PIPE_DIRECTORY", &inside);
        self.grant
            .edits
            .mount_writable(join_root(root, &pipe), inside);
        self.grant
            .edits
            .mount_writable(join_root(root, "/shm"), "/dev/shm".to_owned());
    }

    /// Adds the variables of the strategy `envvar`.
    fn envvar(&mut self) {
        if !self.request.lists.has_strategy(ListStrategy::Envvar) {
            return;
        }
        self.grant
            .edits
            .set_variable(VISIBLE_DEVICES, self.names.join(","));
        if !self.channels.is_empty() {
            let channels: Vec<String> = self.channels.iter().map(u32::to_string).collect();
            self.grant
                .edits
                .set_variable("NVIDIA_IMEX_CHANNELS", channels.join(","));
        }
    }

    /// Adds variable and mounts of the strategy `volume-mounts`. The variable has the folder even
    /// if `envvar` is active too, as in NVIDIA's device plugin.
    fn volume_mounts(&mut self) {
        if !self.request.lists.has_strategy(ListStrategy::VolumeMounts) {
            return;
        }
        self.grant
            .edits
            .set_variable(VISIBLE_DEVICES, DEVICES_FOLDER);
        for name in &self.names {
            let path = format!("{DEVICES_FOLDER}/{name}");
            self.grant.edits.mount_writable("/dev/null", path);
        }
        for channel in &self.channels {
            let path = format!("{DEVICES_FOLDER}/imex/{channel}");
            self.grant.edits.mount_writable("/dev/null", path);
        }
    }

    /// Adds the nodes of devices, channels and companions.
    fn add_device_nodes(&mut self) {
        let channel = |n: &u32| format!("/dev/nvidia-caps-imex-channels/channel{n}");
        let extras = self.extras.iter().flat_map(|extra| extra.nodes.to_vec());
        let others = self.channels.iter().map(channel).chain(extras);
        for path in self.request.node_paths().chain(others) {
            // A driver container's device root lacks nodes of other drivers, such as RDMA's.
            let is_at_home = self.request.extras.host_nodes.contains(&path);
            let root = if is_at_home {
                Path::new("/")
            } else {
                &self.request.handover.nvidia.dev_root
            };
            let node = ContainerNode::new(root, &path);
            self.grant.edits.device_nodes.push(node);
        }
    }

    /// Notes things that the container does not get, and devices that are named otherwise than
    /// requested.
    fn add_grant_notes(&mut self) {
        let channels = self.missing.iter().map(|channel| {
            GrantNote::new_problem(format!(
                "IMEX channel {channel} is not handed over: \
                 /dev/nvidia-caps-imex-channels/channel{channel} is not visible to the agent"
            ))
        });
        let without = self.extras.iter().filter(|extra| extra.nodes.is_empty());
        let extras = without.map(|extra| {
            let class = extra.class;
            GrantNote::new_problem(format!(
                "{class} is on, but no device node of it is visible to the agent"
            ))
        });
        // The one device that stands for all cards has no index, and that is not a fault.
        let by_index = self.request.handover.ids == IdStrategy::Index;
        let is_nameless = |device: &&&Device| {
            let is_combined = device.bool_attribute(&names::COMBINED) == Some(true);
            by_index && device.index.is_none() && !is_combined
        };
        let indices = self.request.devices.iter().filter(is_nameless);
        let indices = indices.map(|device| {
            let id = &device.id;
            GrantNote::new_info(format!("{id} has no index and is named by its UUID"))
        });
        let notes = channels.chain(extras).chain(indices).collect();
        self.grant.notes = notes;
    }
}
