//! What the kubelet saw: registrations, lists, allocations, and every breach of the contract that
//! the real one would bear in silence.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fmt,
    time::Duration,
};

use kubelet_api::{HEALTHY, MESSAGE_LIMIT, UNHEALTHY, deviceplugin};
use tokio::time::Instant;

use super::pod;

/// How many lists of one resource are remembered.
const LISTS_KEPT: usize = 1000;
/// "At most one registration per second", with room for a timer's jitter.
const REGISTRATION_GAP: Duration = Duration::from_millis(900);

/// One call of Register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// When it arrived.
    pub at: Instant,
    /// The resource it named.
    pub resource: String,
    /// The socket name it gave.
    pub endpoint: String,
    /// The process that called, where the system tells.
    pub pid: Option<i32>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not answered yet, or never: the kubelet died before.
    Pending,
    /// Answered with success.
    Accepted,
    /// Answered with this message.
    Refused(String),
}

/// One message of a ListAndWatch stream.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// When it arrived.
    pub at: Instant,
    /// The socket name of the registration that it belongs to.
    pub endpoint: String,
    /// The devices as they were sent.
    pub devices: Vec<deviceplugin::Device>,
}

/// One successful call of Allocate.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// When it was answered.
    pub at: Instant,
    /// How long the plugin took.
    pub took: Duration,
    /// The pod.
    pub pod: pod::Id,
    /// The container.
    pub container: String,
    /// The resource.
    pub resource: String,
    /// The devices that were asked for.
    pub devices: BTreeSet<String>,
    /// The plugin's answer.
    pub response: deviceplugin::ContainerAllocateResponse,
}

/// A breach of the device plugin contract, with the resource it happened under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The resource.
    pub resource: String,
    /// What was wrong.
    pub breach: Breach,
}

/// What a plugin can do wrong without being told so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// One id twice in one list.
    DuplicateId(String),
    /// A device without an id.
    EmptyId,
    /// A health that is neither `Healthy` nor `Unhealthy`; it counts as unhealthy.
    UnknownHealth {
        /// The device.
        id: String,
        /// What was sent.
        health: String,
    },
    /// A NUMA node below zero.
    NegativeNuma {
        /// The device.
        id: String,
        /// The node.
        node: i64,
    },
    /// Topology that names no node: it should have been left out.
    EmptyTopology(String),
    /// A message above the limit; the call or the stream is lost.
    MessageTooLarge(usize),
    /// Two registrations of one resource by one process within a second.
    RegisteredTooSoon(Duration),
    /// A socket name that an earlier registration used.
    SocketReused(String),
    /// An endpoint that is not the name of a file in the directory.
    NotABasename(String),
    /// Not exactly one container response.
    ResponseCount {
        /// The call.
        call: &'static str,
        /// How many there were.
        count: usize,
    },
    /// A preferred allocation of another size, with unavailable or repeated devices, or without a
    /// device that must be included.
    BadPreference {
        /// What was wrong.
        reason: String,
    },
}

/// Everything remembered. It outlives the restarts of the kubelet.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) registrations: Vec<Registration>,
    pub(super) lists: BTreeMap<String, VecDeque<List>>,
    pub(super) allocations: Vec<Allocation>,
    pub(super) violations: Vec<Violation>,
    sockets: HashSet<String>,
    last: HashMap<(Option<i32>, String), Instant>,
}

// === impl Record ===

impl Record {
    /// Takes note of a call of Register and returns its number.
    pub(super) fn register(
        &mut self,
        request: &deviceplugin::RegisterRequest,
        pid: Option<i32>,
    ) -> usize {
        let (resource, endpoint) = (&request.resource_name, &request.endpoint);
        let at = Instant::now();
        if let Some(before) = self.last.insert((pid, resource.clone()), at) {
            let gap = at - before;
            if gap < REGISTRATION_GAP {
                self.breach(resource, Breach::RegisteredTooSoon(gap));
            }
        }
        if !self.sockets.insert(endpoint.clone()) {
            self.breach(resource, Breach::SocketReused(endpoint.clone()));
        }
        if endpoint.is_empty() || endpoint.contains('/') {
            self.breach(resource, Breach::NotABasename(endpoint.clone()));
        }
        self.registrations.push(Registration {
            at,
            resource: resource.clone(),
            endpoint: endpoint.clone(),
            pid,
            outcome: Outcome::Pending,
        });
        self.registrations.len() - 1
    }

    pub(super) fn list(&mut self, resource: &str, list: List) {
        for breach in faults(&list.devices) {
            self.breach(resource, breach);
        }
        let lists = self.lists.entry(resource.to_owned()).or_default();
        if lists.len() == LISTS_KEPT {
            lists.pop_front();
        }
        lists.push_back(list);
    }

    pub(super) fn breach(&mut self, resource: &str, breach: Breach) {
        tracing::warn!(resource, %breach, "the device plugin broke its contract");
        self.violations.push(Violation {
            resource: resource.to_owned(),
            breach,
        });
    }
}

// === impl Violation ===

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.resource, self.breach)
    }
}

// === impl Breach ===

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateId(id) => write!(f, "device {id} is listed twice"),
            Self::EmptyId => f.write_str("a device without an id is listed"),
            Self::UnknownHealth { id, health } => write!(f, "device {id} has health {health:?}"),
            Self::NegativeNuma { id, node } => write!(f, "device {id} is on NUMA node {node}"),
            Self::EmptyTopology(id) => write!(f, "device {id} has a topology without a node"),
            Self::MessageTooLarge(size) => {
                write!(f, "a message of {size} bytes is over {MESSAGE_LIMIT}")
            }
            Self::RegisteredTooSoon(gap) => write!(f, "registered again after {gap:?}"),
            Self::SocketReused(name) => write!(f, "socket name {name} was used before"),
            Self::NotABasename(name) => write!(f, "endpoint {name:?} is not a file name"),
            Self::ResponseCount { call, count } => {
                write!(f, "{call} answered with {count} container responses, not 1")
            }
            Self::BadPreference { reason } => write!(f, "GetPreferredAllocation: {reason}"),
        }
    }
}

fn faults(devices: &[deviceplugin::Device]) -> Vec<Breach> {
    let mut seen = HashSet::new();
    let mut faults = Vec::new();
    for device in devices {
        let id = || device.id.clone();
        if device.id.is_empty() {
            faults.push(Breach::EmptyId);
        }
        if !seen.insert(&device.id) {
            faults.push(Breach::DuplicateId(id()));
        }
        if device.health != HEALTHY && device.health != UNHEALTHY {
            let health = device.health.clone();
            faults.push(Breach::UnknownHealth { id: id(), health });
        }
        let Some(topology) = &device.topology else {
            continue;
        };
        if topology.nodes.is_empty() {
            faults.push(Breach::EmptyTopology(id()));
        }
        let below = topology.nodes.iter().filter(|node| node.id < 0);
        faults.extend(below.map(|node| Breach::NegativeNuma {
            id: id(),
            node: node.id,
        }));
    }
    faults
}
