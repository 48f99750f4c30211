//! The page [`STATUS`](crate::STATUS).

use std::path::PathBuf;

use jiff::Timestamp;
use model::{DeviceId, ResourceName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CdiStatus;

/// The agent's own state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// Process id of the agent.
    pub pid: u32,
    /// Time the agent started.
    pub started: Timestamp,
    /// The config at work.
    pub config: ConfigStatus,
    /// One row for each resource, sorted by name.
    pub resources: Vec<Resource>,
    /// Devices that are not offered, each with its reason.
    pub aside: Vec<NotOffered>,
    /// Notes on the pools.
    pub notes: Vec<PoolNote>,
    /// Sentences on what containers are not given, or are given in another way than asked for.
    pub handover: Vec<HandoverNote>,
    /// State of the CDI specs.
    pub cdi: CdiStatus,
    /// State of the state file.
    pub state: StateFile,
}

/// The config at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigStatus {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// Time the config at work was read.
    pub loaded: Timestamp,
    /// The reason the newest file is not at work, if it is not.
    pub problem: Option<String>,
}

/// One resource and what the kubelet knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// Its name.
    pub resource: ResourceName,
    /// Where the registration stands.
    pub phase: Phase,
    /// The same for a person, with the reason.
    pub message: String,
    /// The socket on which the kubelet is served, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// When the phase began.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// How often the kubelet accepted a registration of this process.
    pub registrations: u64,
    /// How many units are on offer.
    pub units: usize,
    /// How many of them may be handed out.
    pub healthy: usize,
    /// Why the newest list is kept from the kubelet, when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
}

/// Where a registration stands.
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
    /// There is no kubelet to register with.
    #[default]
    WaitingForKubelet,
    /// The kubelet is being asked.
    Registering,
    /// The kubelet holds our stream open.
    Registered,
    /// The kubelet said no.
    Refused,
    /// It did not come to an answer.
    Failed,
}

/// A device that is in no offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotOffered {
    /// The device.
    pub device: DeviceId,
    /// The pool that would have it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The reason, for programs, e.g. `no-pool`. New reasons may come.
    pub kind: String,
    /// The reason, for a person.
    pub reason: String,
}

/// A note on a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolNote {
    /// The pool.
    pub pool: String,
    /// The resource, where the note is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// The subject, for programs, e.g. `waiting`. New subjects may come.
    pub kind: String,
    /// The note, for a person.
    pub text: String,
}

/// A sentence on what the containers of a resource are given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoverNote {
    /// The resource.
    pub resource: ResourceName,
    /// The sentence.
    pub text: String,
    /// True if the containers miss something that the config asks for.
    pub problem: bool,
}

/// The file in which verdicts and orders outlive the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFile {
    /// The file; none if nothing is kept.
    pub file: Option<PathBuf>,
    /// The reason it cannot be read or written, if it cannot.
    pub problem: Option<String>,
}

// === impl Resource ===

impl Resource {
    /// A resource of which the kubelet has not heard yet.
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

    fn status() -> Status {
        let resource: ResourceName = "nvidia.com/gpu".parse().unwrap();
        let mut row = Resource::new(resource.clone());
        row.since = Timestamp::UNIX_EPOCH;
        Status {
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

    /// The page is a product: what other programs read does not change by accident.
    #[test]
    fn the_page_reads_as_it_did() {
        insta::assert_json_snapshot!(status());
    }

    #[test]
    fn what_is_written_can_be_read_again_with_fields_of_a_newer_agent() {
        let mut page = serde_json::to_value(status()).unwrap();
        page["newer"] = true.into();
        page["aside"][0]["newer"] = 1.into();
        let read: Status = serde_json::from_value(page).unwrap();
        assert_eq!(read, status());
    }
}
