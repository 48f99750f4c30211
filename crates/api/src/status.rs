//! Page [`STATUS`](crate::STATUS).

use std::path::PathBuf;

use jiff::Timestamp;
use model::{DeviceId, ResourceName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CdiStatus;

/// State of the agent itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Version of the program.
    pub version: String,
    /// Process id of the agent.
    pub pid: u32,
    /// Time the agent started.
    pub started: Timestamp,
    /// Config in force.
    pub config: ConfigStatus,
    /// One row for each resource, sorted by name.
    pub resources: Vec<Resource>,
    /// Devices that are in no offer, each with its reason.
    pub aside: Vec<NotOffered>,
    /// Notes on the pools.
    pub notes: Vec<PoolNote>,
    /// Sentences on devices or files that containers are not given, or are given in another way
    /// than the config asks for.
    pub handover: Vec<HandoverNote>,
    /// State of the CDI specs.
    pub cdi: CdiStatus,
    /// Path and problem of the state file.
    pub state: StateFile,
}

/// Config in force, and the problem of a newer one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigStatus {
    /// Path of the config file; `None` if there is none.
    pub file: Option<PathBuf>,
    /// Time at which the config in force was read.
    pub loaded: Timestamp,
    /// Reason that the newest file is not in force; `None` if it is.
    pub problem: Option<String>,
}

/// A resource, and the state of its registration with the kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// Name of the resource.
    pub resource: ResourceName,
    /// Phase of the registration.
    pub phase: Phase,
    /// Description of the phase, for people, with the reason.
    pub message: String,
    /// Path of the socket that serves the kubelet, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Time at which the phase began.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// Number of registrations of this process that the kubelet accepted.
    pub registrations: u64,
    /// Number of units in the list for the kubelet.
    pub units: usize,
    /// Number of units that are listed as Healthy.
    pub healthy: usize,
    /// Reason that the newest list is withheld from the kubelet; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// Phase of the registration of a resource.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Phase {
    /// The kubelet's socket does not exist.
    #[default]
    WaitingForKubelet,
    /// A registration is in progress.
    Registering,
    /// The kubelet accepted the registration and holds the stream of `ListAndWatch` open.
    Registered,
    /// The kubelet refused the registration.
    Refused,
    /// The registration failed without an answer of the kubelet.
    Failed,
}

/// A device that is in no offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotOffered {
    /// Id of the device.
    pub device: DeviceId,
    /// Pool that would take the device, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Reason, for programs, such as `no-pool`. New reasons may be added.
    pub kind: String,
    /// Reason, for people.
    pub reason: String,
}

/// A note on a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolNote {
    /// Name of the pool.
    pub pool: String,
    /// Name of the resource, if the note is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// Subject of the note, for programs, such as `waiting`. New subjects may be added.
    pub kind: String,
    /// Text of the note, for people.
    pub text: String,
}

/// A note on the devices and files that containers of a resource are given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoverNote {
    /// Name of the resource.
    pub resource: ResourceName,
    /// Text of the note, for people.
    pub text: String,
    /// True if containers do not get something that the config asks for.
    pub problem: bool,
}

/// The file in which verdicts and orders survive a restart of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFile {
    /// Path of the file; `None` if state is not saved.
    pub file: Option<PathBuf>,
    /// Reason that the file cannot be read or written; `None` if it can.
    pub problem: Option<String>,
}

// === impl Resource ===

impl Resource {
    /// Returns the row of a resource that is not registered yet.
    pub fn new(resource: ResourceName) -> Self {
        Self {
            resource,
            phase: Phase::default(),
            message: String::new(),
            socket: None,
            since: Timestamp::now(),
            registrations: 0,
            units: 0,
            healthy: 0,
            withheld: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> AgentStatus {
        let resource: ResourceName = "nvidia.com/gpu".parse().unwrap();
        let mut row = Resource::new(resource.clone());
        row.since = Timestamp::UNIX_EPOCH;
        AgentStatus {
            version: "0.1.0".to_owned(),
            pid: 42,
            started: Timestamp::UNIX_EPOCH,
            config: ConfigStatus {
                file: Some("/etc/ostler.yaml".into()),
                loaded: Timestamp::UNIX_EPOCH,
                problem: None,
            },
            resources: vec![row],
            aside: vec![NotOffered {
                device: "GPU-1".to_owned().into(),
                pool: None,
                kind: "no-pool".to_owned(),
                reason: "no pool takes it".to_owned(),
            }],
            notes: Vec::new(),
            handover: vec![HandoverNote {
                resource,
                text: "no GDRCopy".to_owned(),
                problem: true,
            }],
            cdi: CdiStatus::default(),
            state: StateFile::default(),
        }
    }

    /// Other programs read the page: it must not change by accident.
    #[test]
    fn the_page_reads_as_it_did() {
        insta::assert_json_snapshot!(status());
    }

    #[test]
    fn what_is_written_can_be_read_again_with_fields_of_a_newer_agent() {
        let mut page = serde_json::to_value(status()).unwrap();
        page["newer"] = true.into();
        page["aside"][0]["newer"] = 1.into();
        let read: AgentStatus = serde_json::from_value(page).unwrap();
        assert_eq!(read, status());
    }
}
