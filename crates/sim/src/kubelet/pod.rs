//! Pods with their device requests, and the devices and edits that their containers get.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kubelet_api::deviceplugin::ContainerAllocateResponse;

/// A pod that requests devices.
///
/// ```
/// use sim::kubelet::Pod;
/// let pod = Pod::new("default", "train")
///     .with_init("fetch", [("nvidia.com/gpu", 1)])
///     .with_container("main", [("nvidia.com/gpu", 2)]);
/// assert_eq!(pod.pod_id().to_string(), "default/train");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod, unique in its namespace.
    pub name: String,
    /// Init containers, in the order in which they run.
    pub init_containers: Vec<PodContainer>,
    /// Containers, which start after the init containers.
    pub containers: Vec<PodContainer>,
}

/// A container and its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodContainer {
    /// Name, unique in the pod.
    pub name: String,
    /// Number of devices, by resource.
    pub requests: BTreeMap<String, usize>,
    /// True for a sidecar: an init container that runs as long as the pod (`restartPolicy:
    /// Always`). The kubelet does not hand its devices on.
    pub restartable: bool,
}

/// Name of a pod on the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
}

/// An admitted pod.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmittedPod {
    /// Name of the pod.
    pub pod: PodId,
    /// Generated uid, which the checkpoint uses.
    pub uid: String,
    /// Devices and edits of each container, init containers included.
    pub containers: BTreeMap<String, GrantedDevices>,
}

/// Devices and edits of a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrantedDevices {
    /// Device ids, by resource.
    pub devices: BTreeMap<String, BTreeSet<String>>,
    /// Answers of the plugins, merged as for the container runtime: the first answer wins.
    pub response: ContainerAllocateResponse,
}

// === impl Pod ===

impl Pod {
    /// Creates a pod without containers.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            init_containers: Vec::new(),
            containers: Vec::new(),
        }
    }

    /// Adds a container.
    #[must_use]
    pub fn with_container<'a>(
        mut self,
        name: &str,
        requests: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Self {
        self.containers.push(PodContainer::new(name, requests));
        self
    }

    /// Adds an init container.
    #[must_use]
    pub fn with_init<'a>(
        mut self,
        name: &str,
        requests: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Self {
        self.init_containers.push(PodContainer::new(name, requests));
        self
    }

    /// Adds a restartable init container (a sidecar).
    #[must_use]
    pub fn sidecar<'a>(
        mut self,
        name: &str,
        requests: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Self {
        self.init_containers.push(PodContainer {
            restartable: true,
            ..PodContainer::new(name, requests)
        });
        self
    }

    /// Name of the pod.
    pub fn pod_id(&self) -> PodId {
        PodId {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Init containers, then containers. The bool is true if the container's devices are handed on
    /// to later containers.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&PodContainer, bool)> {
        let init = self.init_containers.iter().map(|c| (c, !c.restartable));
        init.chain(self.containers.iter().map(|c| (c, false)))
    }

    /// Containers that run as long as the pod: sidecars and ordinary containers.
    pub(super) fn lasting_containers(&self) -> impl Iterator<Item = &PodContainer> {
        let sidecars = self.init_containers.iter().filter(|c| c.restartable);
        sidecars.chain(&self.containers)
    }
}

// === impl PodContainer ===

impl PodContainer {
    /// Creates a container that requests `count` devices of each resource.
    pub fn new<'a>(name: &str, requests: impl IntoIterator<Item = (&'a str, usize)>) -> Self {
        Self {
            name: name.to_owned(),
            requests: requests
                .into_iter()
                .map(|(resource, count)| (resource.to_owned(), count))
                .collect(),
            restartable: false,
        }
    }
}

// === impl PodId ===

impl fmt::Display for PodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl GrantedDevices ===

impl GrantedDevices {
    /// Merges the answer for one more resource. On a clash the earlier value stays, as in the
    /// kubelet (`pkg/kubelet/cm/devicemanager/pod_devices.go`, `deviceRunContainerOptions`).
    pub(super) fn merge_answer(
        &mut self,
        resource: &str,
        devices: BTreeSet<String>,
        response: &ContainerAllocateResponse,
    ) {
        self.devices.insert(resource.to_owned(), devices);
        let merged = &mut self.response;
        for (key, value) in &response.envs {
            merged.envs.entry(key.clone()).or_insert(value.clone());
        }
        for (key, value) in &response.annotations {
            let entry = merged.annotations.entry(key.clone());
            entry.or_insert(value.clone());
        }
        for mount in &response.mounts {
            let at = &mount.container_path;
            if !merged.mounts.iter().any(|m| m.container_path == *at) {
                merged.mounts.push(mount.clone());
            }
        }
        for device in &response.devices {
            let at = &device.container_path;
            if !merged.devices.iter().any(|d| d.container_path == *at) {
                merged.devices.push(device.clone());
            }
        }
        // CDI names are a set: several resources of one container may name the same device.
        for device in &response.cdi_devices {
            if !merged.cdi_devices.contains(device) {
                merged.cdi_devices.push(device.clone());
            }
        }
    }
}
