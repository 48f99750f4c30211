//! State of the device manager: resources with their devices and endpoints, pods with their
//! devices. Plain data behind one mutex; nothing here waits.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use kubelet_api::{
    HEALTHY,
    deviceplugin::{
        self, ContainerAllocateResponse, DevicePluginOptions,
        device_plugin_client::DevicePluginClient,
    },
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::{
    pod::{GrantedDevices, Pod, PodId},
    record::CallRecord,
    register::PluginClient,
};

/// NUMA key of devices without topology, as in the kubelet's checkpoint.
const NO_NODE: i64 = -1;

/// Devices of one resource, by id.
pub type PluginDevices = BTreeMap<String, PluginDevice>;

/// A device as the kubelet knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDevice {
    /// True if the device may be allocated.
    pub healthy: bool,
    /// NUMA nodes that the plugin listed the device with.
    pub numa: Vec<i64>,
}

/// Counts of one resource in the node's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Number of listed devices.
    pub capacity: usize,
    /// Number of healthy devices among them, in use or not.
    pub allocatable: usize,
}

/// All data behind the mutex.
#[derive(Debug, Default)]
pub(super) struct KubeletState {
    /// Token that ends this run of the kubelet; `None` while it is stopped.
    pub(super) life: Option<CancellationToken>,
    /// Resources that are registered, or were and are not forgotten yet.
    pub(super) resources: BTreeMap<String, KubeletResource>,
    /// All resources that the node's status has named so far; they stay in it with zeros.
    pub(super) named: BTreeSet<String>,
    /// Connected plugins of each resource, oldest first.
    pub(super) clients: BTreeMap<String, Vec<Arc<PluginClient>>>,
    /// Admitted pods.
    pub(super) pods: BTreeMap<PodId, ActivePod>,
    /// Devices in use, one entry for each container and resource.
    pub(super) entries: Vec<DeviceEntry>,
    /// Faults to simulate.
    pub(super) faults: KubeletFaults,
    /// Calls and breaches so far.
    pub(super) record: CallRecord,
    /// Number of admissions so far; a part of each pod's uid.
    pub(super) admitted: u64,
}

#[derive(Debug, Default)]
pub(super) struct KubeletResource {
    /// Devices of the last list; `None` until the first list.
    pub(super) devices: Option<PluginDevices>,
    pub(super) endpoint: PluginEndpoint,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PluginEndpoint {
    /// Client of the plugin; `None` for a resource that is known from the checkpoint only.
    pub(super) api: Option<DevicePluginClient<Channel>>,
    pub(super) options: DevicePluginOptions,
    /// Time at which the plugin disconnected; `None` while it is connected.
    pub(super) stopped: Option<Instant>,
}

/// A pod on the node.
#[derive(Clone, Debug)]
pub(super) struct ActivePod {
    pub(super) uid: String,
    pub(super) pod: Pod,
}

/// Devices of one resource that a container holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceEntry {
    pub(super) uid: String,
    pub(super) container: String,
    pub(super) resource: String,
    /// Ids by NUMA node, −1 for those without a node. A device with two nodes appears twice.
    pub(super) devices: BTreeMap<i64, Vec<String>>,
    pub(super) response: ContainerAllocateResponse,
}

#[derive(Debug, Default)]
pub(super) struct KubeletFaults {
    /// Messages that refuse the next registrations, one each.
    pub(super) refuse: VecDeque<String>,
    /// Delay of each call of Register.
    pub(super) stall: Duration,
}

// === impl KubeletState ===

impl KubeletState {
    /// Devices of a resource; empty if the resource is unknown.
    pub(super) fn listed_devices(&self, resource: &str) -> PluginDevices {
        let resource = self.resources.get(resource);
        let devices = resource.and_then(|resource| resource.devices.clone());
        devices.unwrap_or_default()
    }

    /// Counts of all resources in the node's status.
    pub(super) fn count_devices(&self) -> BTreeMap<String, DeviceCounts> {
        let count = |name: &String| {
            let resource = self.resources.get(name);
            let devices = resource.and_then(|resource| resource.devices.as_ref());
            devices.map_or_else(DeviceCounts::default, |devices| DeviceCounts {
                capacity: devices.len(),
                allocatable: devices.values().filter(|d| d.healthy).count(),
            })
        };
        self.named
            .iter()
            .map(|name| (name.clone(), count(name)))
            .collect()
    }

    /// Replaces the devices of a resource by those of a list: each message of ListAndWatch is
    /// complete.
    pub(super) fn replace_devices(&mut self, resource: &str, devices: &[deviceplugin::Device]) {
        let devices = devices.iter().map(|device| {
            let nodes = device.topology.iter().flat_map(|topology| &topology.nodes);
            let device_state = PluginDevice {
                healthy: device.health == HEALTHY,
                numa: nodes.map(|node| node.id).collect(),
            };
            (device.id.clone(), device_state)
        });
        let devices = devices.collect();
        self.named.insert(resource.to_owned());
        let entry = self.resources.entry(resource.to_owned()).or_default();
        entry.devices = Some(devices);
    }

    /// Marks all devices of a resource unhealthy after its last plugin disconnected. The capacity
    /// stays until [`KubeletState::expire_resource`].
    pub(super) fn disconnect(&mut self, resource: &str) {
        let Some(entry) = self.resources.get_mut(resource) else {
            return;
        };
        self.named.insert(resource.to_owned());
        // All devices become unhealthy at once: allocatable is zero, capacity unchanged.
        for device in entry.devices.get_or_insert_default().values_mut() {
            device.healthy = false;
        }
        entry.endpoint.stopped = Some(Instant::now());
    }

    /// Forgets a resource whose endpoint stopped at least `grace` ago. Returns true if it was
    /// forgotten.
    pub(super) fn expire_resource(&mut self, resource: &str, grace: Duration) -> bool {
        let expired = self.resources.get(resource).is_some_and(|entry| {
            // The plugin may have registered again in the meantime, or disconnected once more.
            let stopped = entry.endpoint.stopped;
            stopped.is_some_and(|at| at.elapsed() >= grace)
        });
        if expired {
            self.resources.remove(resource);
        }
        expired
    }

    /// Ids of a resource that containers hold.
    pub(super) fn in_use(&self, resource: &str) -> BTreeSet<String> {
        let held = self.entries.iter().filter(|e| e.resource == resource);
        held.flat_map(DeviceEntry::device_ids).collect()
    }

    /// Devices and plugin answers of a container, merged over its resources.
    pub(super) fn merge_granted(&self, uid: &str, container: &str) -> GrantedDevices {
        let mut granted = GrantedDevices::default();
        for entry in self.held_entries(uid, container) {
            granted.merge_answer(&entry.resource, entry.device_ids(), &entry.response);
        }
        granted
    }

    /// Entries of a container, sorted by resource.
    pub(super) fn held_entries(&self, uid: &str, container: &str) -> Vec<&DeviceEntry> {
        let entries = self.entries.iter();
        let mut held: Vec<_> = entries
            .filter(|e| e.uid == uid && e.container == container)
            .collect();
        held.sort_by(|a, b| a.resource.cmp(&b.resource));
        held
    }

    /// Groups ids by NUMA node, as the checkpoint stores them.
    pub(super) fn by_node(
        &self,
        resource: &str,
        ids: &BTreeSet<String>,
    ) -> BTreeMap<i64, Vec<String>> {
        let devices = self.resources.get(resource);
        let devices = devices.and_then(|resource| resource.devices.as_ref());
        let mut by_node: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for id in ids {
            let nodes = devices.and_then(|devices| devices.get(id));
            let nodes = nodes.map_or(&[][..], |device| &device.numa);
            let nodes = if nodes.is_empty() { &[NO_NODE] } else { nodes };
            for node in nodes {
                by_node.entry(*node).or_default().push(id.clone());
            }
        }
        by_node
    }

    /// Frees the devices of pods that are no longer on the node.
    pub(super) fn free_removed_pods(&mut self) {
        // The kubelet frees devices only when it admits the next pod: it compares its entries with
        // the active pods (manager.go, UpdateAllocatedDevices).
        let pods = &self.pods;
        self.entries
            .retain(|entry| pods.values().any(|pod| pod.uid == entry.uid));
    }
}

// === impl DeviceEntry ===

impl DeviceEntry {
    pub(super) fn device_ids(&self) -> BTreeSet<String> {
        self.devices.values().flatten().cloned().collect()
    }

    /// NUMA nodes of one device of this entry.
    pub(super) fn device_nodes(&self, id: &str) -> Vec<i64> {
        let nodes = self.devices.iter();
        nodes
            .filter(|(node, ids)| **node != NO_NODE && ids.iter().any(|held| held == id))
            .map(|(node, _)| *node)
            .collect()
    }
}
