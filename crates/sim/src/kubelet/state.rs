//! What the device manager knows: resources with their devices and endpoints, pods with what they
//! hold. Plain data behind one mutex; nothing here waits.

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
    pod::{Granted, Id, Pod},
    record::Record,
    register::Client,
};

/// NUMA key of devices that have no topology.
const NO_NODE: i64 = -1;

/// The devices of one resource, by id.
pub type Devices = BTreeMap<String, Device>;

/// A device as the kubelet sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Whether it may be allocated.
    pub healthy: bool,
    /// The NUMA nodes it was listed with.
    pub numa: Vec<i64>,
}

/// What the node's status says of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// All listed devices.
    pub capacity: usize,
    /// Those of them that are healthy, in use or not.
    pub allocatable: usize,
}

/// Everything behind the mutex.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Ends this life of the kubelet; absent while it is stopped.
    pub(super) life: Option<CancellationToken>,
    /// What is registered, or was and is still remembered.
    pub(super) resources: BTreeMap<String, Resource>,
    /// Every resource that the node's status has ever named: it stays there with zeros.
    pub(super) named: BTreeSet<String>,
    /// The connected plugins of a resource, oldest first.
    pub(super) clients: BTreeMap<String, Vec<Arc<Client>>>,
    /// The pods that were admitted.
    pub(super) pods: BTreeMap<Id, Active>,
    /// Who holds what.
    pub(super) entries: Vec<Entry>,
    /// The faults to be played.
    pub(super) faults: Faults,
    /// What happened.
    pub(super) record: Record,
    /// For uids.
    pub(super) admitted: u64,
}

#[derive(Debug, Default)]
pub(super) struct Resource {
    /// Absent until the first list.
    pub(super) devices: Option<Devices>,
    pub(super) endpoint: Endpoint,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Endpoint {
    /// Absent for a resource that is known from the checkpoint only.
    pub(super) api: Option<DevicePluginClient<Channel>>,
    pub(super) options: DevicePluginOptions,
    pub(super) stopped: Option<Instant>,
}

/// A pod on the node.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub(super) uid: String,
    pub(super) pod: Pod,
}

/// What a container holds of a resource.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) uid: String,
    pub(super) container: String,
    pub(super) resource: String,
    /// Ids by NUMA node, −1 for those without; one with two nodes appears twice.
    pub(super) devices: BTreeMap<i64, Vec<String>>,
    pub(super) response: ContainerAllocateResponse,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Messages for the next registrations.
    pub(super) refuse: VecDeque<String>,
    /// How long each Register waits before it is looked at.
    pub(super) stall: Duration,
}

// === impl State ===

impl State {
    /// The devices of a resource; none when it is unknown.
    pub(super) fn devices(&self, resource: &str) -> Devices {
        let resource = self.resources.get(resource);
        let devices = resource.and_then(|resource| resource.devices.clone());
        devices.unwrap_or_default()
    }

    /// What the node's status says.
    pub(super) fn node(&self) -> BTreeMap<String, Capacity> {
        let count = |name: &String| {
            let resource = self.resources.get(name);
            let devices = resource.and_then(|resource| resource.devices.as_ref());
            devices.map_or_else(Capacity::default, |devices| Capacity {
                capacity: devices.len(),
                allocatable: devices.values().filter(|d| d.healthy).count(),
            })
        };
        self.named
            .iter()
            .map(|name| (name.clone(), count(name)))
            .collect()
    }

    /// Replaces the devices of a resource by a list.
    pub(super) fn list(&mut self, resource: &str, devices: &[deviceplugin::Device]) {
        let devices = devices.iter().map(|device| {
            let nodes = device.topology.iter().flat_map(|topology| &topology.nodes);
            let device_state = Device {
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

    /// The last plugin of a resource is gone: everything it listed is unhealthy.
    pub(super) fn disconnect(&mut self, resource: &str) {
        let Some(entry) = self.resources.get_mut(resource) else {
            return;
        };
        self.named.insert(resource.to_owned());
        for device in entry.devices.get_or_insert_default().values_mut() {
            device.healthy = false;
        }
        entry.endpoint.stopped = Some(Instant::now());
    }

    /// Forgets a resource whose endpoint has been stopped for that long. Returns whether it did.
    pub(super) fn expire(&mut self, resource: &str, grace: Duration) -> bool {
        let expired = self.resources.get(resource).is_some_and(|entry| {
            let stopped = entry.endpoint.stopped;
            stopped.is_some_and(|at| at.elapsed() >= grace)
        });
        if expired {
            self.resources.remove(resource);
        }
        expired
    }

    /// The ids of a resource that some container holds.
    pub(super) fn in_use(&self, resource: &str) -> BTreeSet<String> {
        let held = self.entries.iter().filter(|e| e.resource == resource);
        held.flat_map(Entry::ids).collect()
    }

    /// What a container holds, merged.
    pub(super) fn granted(&self, uid: &str, container: &str) -> Granted {
        let mut granted = Granted::default();
        for entry in self.held(uid, container) {
            granted.add(&entry.resource, entry.ids(), &entry.response);
        }
        granted
    }

    /// The entries of a container, sorted by resource.
    pub(super) fn held(&self, uid: &str, container: &str) -> Vec<&Entry> {
        let entries = self.entries.iter();
        let mut held: Vec<_> = entries
            .filter(|e| e.uid == uid && e.container == container)
            .collect();
        held.sort_by(|a, b| a.resource.cmp(&b.resource));
        held
    }

    /// Ids by NUMA node, as the checkpoint keeps them.
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

    /// Frees what pods hold that are not on the node any more.
    pub(super) fn prune(&mut self) {
        let pods = &self.pods;
        self.entries
            .retain(|entry| pods.values().any(|pod| pod.uid == entry.uid));
    }
}

// === impl Entry ===

impl Entry {
    pub(super) fn ids(&self) -> BTreeSet<String> {
        self.devices.values().flatten().cloned().collect()
    }

    /// The NUMA nodes of one of the ids.
    pub(super) fn nodes(&self, id: &str) -> Vec<i64> {
        let nodes = self.devices.iter();
        nodes
            .filter(|(node, ids)| **node != NO_NODE && ids.iter().any(|held| held == id))
            .map(|(node, _)| *node)
            .collect()
    }
}
