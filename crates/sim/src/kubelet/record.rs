//! Record of everything that plugins did: registrations, lists, allocations, and breaches of the
//! contract that a real kubelet accepts without a message.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fmt,
    time::Duration,
};

use kubelet_api::{HEALTHY, MESSAGE_LIMIT, UNHEALTHY, deviceplugin};
use tokio::time::Instant;

use super::pod;

/// Number of lists of one resource that are kept.
const LISTS_KEPT: usize = 1000;
/// Least time between two registrations of one process: one second, less the jitter of a timer.
const REGISTRATION_GAP: Duration = Duration::from_millis(900);

/// One call of Register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Time of arrival.
    pub at: Instant,
    /// Resource name in the request.
    pub resource: String,
    /// Socket name in the request.
    pub endpoint: String,
    /// Calling process, if the socket tells it (`SO_PEERCRED`).
    pub pid: Option<i32>,
    /// Answer of the kubelet.
    pub outcome: RegistrationOutcome,
}

/// Answer to a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationOutcome {
    /// Not answered yet, or never, because the kubelet stopped before.
    Pending,
    /// Answered with success.
    Accepted,
    /// Answered with this message.
    Refused(String),
}

/// One message of a ListAndWatch stream.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceList {
    /// Time of arrival.
    pub at: Instant,
    /// Socket name of the registration that opened the stream.
    pub endpoint: String,
    /// The devices as they were sent.
    pub devices: Vec<deviceplugin::Device>,
}

/// One successful call of Allocate.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocation {
    /// Time of the answer.
    pub at: Instant,
    /// Time from request to answer.
    pub took: Duration,
    /// The pod.
    pub pod: pod::PodId,
    /// The container.
    pub container: String,
    /// The resource.
    pub resource: String,
    /// Device ids in the request.
    pub devices: BTreeSet<String>,
    /// The plugin's answer.
    pub response: deviceplugin::ContainerAllocateResponse,
}

/// A breach of the device plugin contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Resource of the plugin.
    pub resource: String,
    /// Kind of breach.
    pub breach: Breach,
}

/// Kinds of breaches that a real kubelet does not report to the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Breach {
    /// One id is twice in one list.
    DuplicateId(String),
    /// A listed device has no id.
    EmptyId,
    /// A health other than `Healthy` and `Unhealthy`; it counts as unhealthy.
    UnknownHealth {
        /// Device id.
        id: String,
        /// Health that was sent.
        health: String,
    },
    /// A NUMA node below zero.
    NegativeNuma {
        /// Device id.
        id: String,
        /// Node that was sent.
        node: i64,
    },
    /// A topology without a node; it must be left out instead.
    EmptyTopology(String),
    /// A message above grpc-go's limit, in bytes; the call or the stream is lost.
    MessageTooLarge(usize),
    /// Time between two registrations of one resource by one process, if it is less than a second.
    RegisteredTooSoon(Duration),
    /// A socket name of an earlier registration.
    SocketReused(String),
    /// An endpoint that is not the name of a file in the device plugin directory.
    NotABasename(String),
    /// A number of container responses other than one.
    ResponseCount {
        /// Name of the call.
        call: &'static str,
        /// Number of responses.
        count: usize,
    },
    /// A preferred allocation of a wrong size, with unavailable or repeated devices, or without a
    /// device that must be included.
    BadPreference {
        /// Description of the error.
        reason: String,
    },
}

/// All records. They outlive restarts of the kubelet.
#[derive(Debug, Default)]
pub(super) struct CallRecord {
    pub(super) registrations: Vec<Registration>,
    pub(super) lists: BTreeMap<String, VecDeque<DeviceList>>,
    pub(super) allocations: Vec<Allocation>,
    pub(super) violations: Vec<Violation>,
    /// Socket names of all registrations so far.
    sockets: HashSet<String>,
    /// Time of the last registration, by process and resource.
    last: HashMap<(Option<i32>, String), Instant>,
}

// === impl CallRecord ===

impl CallRecord {
    /// Records a call of Register and returns its position in `registrations`.
    pub(super) fn record_registration(
        &mut self,
        request: &deviceplugin::RegisterRequest,
        pid: Option<i32>,
    ) -> usize {
        let (resource, endpoint) = (&request.resource_name, &request.endpoint);
        let at = Instant::now();
        if let Some(before) = self.last.insert((pid, resource.clone()), at) {
            let gap = at - before;
            if gap < REGISTRATION_GAP {
                self.record_breach(resource, Breach::RegisteredTooSoon(gap));
            }
        }
        if !self.sockets.insert(endpoint.clone()) {
            self.record_breach(resource, Breach::SocketReused(endpoint.clone()));
        }
        if endpoint.is_empty() || endpoint.contains('/') {
            self.record_breach(resource, Breach::NotABasename(endpoint.clone()));
        }
        self.registrations.push(Registration {
            at,
            resource: resource.clone(),
            endpoint: endpoint.clone(),
            pid,
            outcome: RegistrationOutcome::Pending,
        });
        self.registrations.len() - 1
    }

    pub(super) fn record_list(&mut self, resource: &str, list: DeviceList) {
        for breach in find_breaches(&list.devices) {
            self.record_breach(resource, breach);
        }
        let lists = self.lists.entry(resource.to_owned()).or_default();
        if lists.len() == LISTS_KEPT {
            lists.pop_front();
        }
        lists.push_back(list);
    }

    pub(super) fn record_breach(&mut self, resource: &str, breach: Breach) {
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

fn find_breaches(devices: &[deviceplugin::Device]) -> Vec<Breach> {
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
