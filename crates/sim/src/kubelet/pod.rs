//! Pods as far as devices are concerned, and what their containers get.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kubelet_api::deviceplugin::ContainerAllocateResponse;

/// A pod that wants devices.
///
/// ```
/// use sim::kubelet::Pod;
/// let pod = Pod::new("default", "train")
///     .init("fetch", [("nvidia.com/gpu", 1)])
///     .container("main", [("nvidia.com/gpu", 2)]);
/// assert_eq!(pod.id().to_string(), "default/train");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Run before the containers, in order.
    pub init_containers: Vec<Container>,
    /// The containers.
    pub containers: Vec<Container>,
}

/// A container and what it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The name, unique in the pod.
    pub name: String,
    /// How many devices of which resource.
    pub requests: BTreeMap<String, usize>,
    /// Of an init container: it keeps running beside the containers (a sidecar), so it keeps its
    /// devices to itself.
    pub restartable: bool,
}

/// How a pod is called on the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A pod that was let in.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The pod.
    pub pod: Id,
    /// The uid it was given, which the checkpoint names.
    pub uid: String,
    /// What each container got, init containers included.
    pub containers: BTreeMap<String, Granted>,
}

/// What a container got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Granted {
    /// The device ids, by resource.
    pub devices: BTreeMap<String, BTreeSet<String>>,
    /// The plugins' answers as the container runtime is told them: merged, the first one wins.
    pub response: ContainerAllocateResponse,
}

// === impl Pod ===

impl Pod {
    /// A pod without containers.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            init_containers: Vec::new(),
            containers: Vec::new(),
        }
    }

    /// With one more container.
    #[must_use]
    pub fn container<'a>(
        mut self,
        name: &str,
        requests: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Self {
        self.containers.push(Container::new(name, requests));
        self
    }

    /// With one more init container.
    #[must_use]
    pub fn init<'a>(
        mut self,
        name: &str,
        requests: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Self {
        self.init_containers.push(Container::new(name, requests));
        self
    }

    /// With one more restartable init container.
    #[must_use]
    pub fn sidecar<'a>(
        mut self,
        name: &str,
        requests: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Self {
        self.init_containers.push(Container {
            restartable: true,
            ..Container::new(name, requests)
        });
        self
    }

    /// How it is called.
    pub fn id(&self) -> Id {
        Id {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Init containers, then containers, each with whether its devices are handed on.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&Container, bool)> {
        let init = self.init_containers.iter().map(|c| (c, !c.restartable));
        init.chain(self.containers.iter().map(|c| (c, false)))
    }

    /// The containers that run for as long as the pod does.
    pub(super) fn lasting(&self) -> impl Iterator<Item = &Container> {
        let sidecars = self.init_containers.iter().filter(|c| c.restartable);
        sidecars.chain(&self.containers)
    }
}

// === impl Container ===

impl Container {
    /// A container that asks for so many devices.
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

// === impl Id ===

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

// === impl Granted ===

impl Granted {
    /// Adds the answer for one more resource.
    pub(super) fn add(
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
        for device in &response.cdi_devices {
            if !merged.cdi_devices.contains(device) {
                merged.cdi_devices.push(device.clone());
            }
        }
    }
}
