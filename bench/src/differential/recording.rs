//! What a device plugin was seen to do: what it registered and listed, and what it answered.
//!
//! A recording is a sorted JSON file, so that one can be committed, read and compared by anybody.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use kubelet_api::deviceplugin;
use serde::{Deserialize, Serialize};
use serde_json::ser::{PrettyFormatter, Serializer};
use tonic::{Code, Status};

/// What one program did in one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recording {
    /// The program and its version.
    pub(crate) program: String,
    /// What became of it.
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// The CDI specs that it wrote, by the names of their files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) cdi: BTreeMap<String, serde_json::Value>,
}

/// What became of a program that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// It registered these resources.
    Serves(BTreeMap<String, Resource>),
    /// It runs and registers nothing.
    Idles,
    /// It ended, and said this last.
    Dies(String),
}

/// One resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resource {
    /// The name of its socket.
    pub(crate) socket: String,
    /// Whether the kubelet is to call PreStartContainer.
    pub(crate) pre_start: bool,
    /// Whether the kubelet is to ask which devices are best.
    pub(crate) preferred: bool,
    /// Its devices by id.
    pub(crate) devices: BTreeMap<String, Device>,
    /// Calls of Allocate.
    pub(crate) allocate: Vec<Allocate>,
    /// Calls of GetPreferredAllocation.
    pub(crate) prefer: Vec<Prefer>,
}

/// One device of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    /// As it was sent.
    pub(crate) health: String,
    /// Its NUMA nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) numa: Vec<i64>,
}

/// One call of Allocate for one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Allocate {
    /// What was asked, for a person.
    pub(crate) name: String,
    /// The ids that were asked for, in this order.
    pub(crate) ids: Vec<String>,
    /// What came back.
    pub(crate) answer: Answer<Grant>,
}

/// One call of GetPreferredAllocation for one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prefer {
    /// What was asked, for a person.
    pub(crate) name: String,
    /// The ids to choose from.
    pub(crate) available: Vec<String>,
    /// Those that must be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) required: Vec<String>,
    /// How many to choose.
    pub(crate) size: usize,
    /// What came back.
    pub(crate) answer: Answer<Vec<String>>,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer<T> {
    /// What was asked for.
    Given(T),
    /// A gRPC error.
    Refused(Refusal),
}

/// A gRPC error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The name of the code.
    pub(crate) code: String,
    /// The message.
    pub(crate) message: String,
}

/// What a container is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// Environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    /// Mounts, as `host:container:ro`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) mounts: Vec<String>,
    /// Device nodes, as `host:container:permissions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
    /// CDI devices in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cdi: Vec<String>,
}

// === impl Recording ===

impl Recording {
    /// Where the recording of a case lies in a folder of recordings.
    pub(crate) fn file(folder: &Path, case: &str) -> PathBuf {
        folder.join(format!("{case}.json"))
    }

    /// Reads the recording of a case.
    pub(crate) fn read(folder: &Path, case: &str) -> anyhow::Result<Self> {
        let path = Self::file(folder, case);
        let text = fs_err::read_to_string(&path).with_context(|| {
            format!("there is no recording of {case}; make one with `--record`, as root")
        })?;
        serde_json::from_str(&text).with_context(|| format!("{} is no recording", path.display()))
    }

    /// Writes the recording of a case.
    pub(crate) fn write(&self, folder: &Path, case: &str) -> anyhow::Result<()> {
        let path = Self::file(folder, case);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let mut text = Vec::new();
        let narrow = PrettyFormatter::with_indent(b" ");
        self.serialize(&mut Serializer::with_formatter(&mut text, narrow))?;
        text.push(b'\n');
        Ok(fs_err::write(path, text)?)
    }
}

// === impl Answer ===

impl<T> Answer<T> {
    /// The answer to a call, with what `read` takes from it.
    pub(crate) fn new<R>(
        result: Result<tonic::Response<R>, Status>,
        read: impl FnOnce(R) -> T,
    ) -> Self {
        match result {
            Ok(response) => Self::Given(read(response.into_inner())),
            Err(status) => Self::Refused(Refusal::from(&status)),
        }
    }
}

// === impl Refusal ===

impl From<&Status> for Refusal {
    fn from(status: &Status) -> Self {
        let code = match status.code() {
            Code::Cancelled => "Canceled".to_owned(),
            code => format!("{code:?}"),
        };
        Self {
            code,
            message: status.message().to_owned(),
        }
    }
}

// === impl Grant ===

impl From<deviceplugin::ContainerAllocateResponse> for Grant {
    fn from(response: deviceplugin::ContainerAllocateResponse) -> Self {
        let mount = |mount: deviceplugin::Mount| {
            let access = if mount.read_only { "ro" } else { "rw" };
            format!("{}:{}:{access}", mount.host_path, mount.container_path)
        };
        let node = |node: deviceplugin::DeviceSpec| {
            let permissions = &node.permissions;
            format!("{}:{}:{permissions}", node.host_path, node.container_path)
        };
        let mut nodes: Vec<_> = response.devices.into_iter().map(node).collect();
        let mut mounts: Vec<_> = response.mounts.into_iter().map(mount).collect();
        // Neither order means anything to a runtime, and upstream's is random.
        nodes.sort();
        mounts.sort();
        Self {
            env: response.envs.into_iter().collect(),
            mounts,
            nodes,
            annotations: response.annotations.into_iter().collect(),
            cdi: response.cdi_devices.into_iter().map(|d| d.name).collect(),
        }
    }
}

// === impl Device ===

impl From<&deviceplugin::Device> for Device {
    fn from(device: &deviceplugin::Device) -> Self {
        let nodes = device.topology.iter().flat_map(|topology| &topology.nodes);
        Self {
            health: device.health.clone(),
            numa: nodes.map(|node| node.id).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::case::Case;

    const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings");

    #[test]
    fn the_committed_recordings_are_of_cases_and_can_be_read() {
        let cases = Case::all().unwrap();
        let mut count = 0;
        for folder in fs_err::read_dir(RECORDINGS).unwrap() {
            let folder = folder.unwrap().path();
            for file in fs_err::read_dir(&folder).unwrap() {
                let name = file.unwrap().path();
                let name = name.strip_prefix(RECORDINGS).unwrap().with_extension("");
                let name = name.display().to_string();
                assert!(cases.iter().any(|case| case.name == name), "no case {name}");
                let recording = Recording::read(Path::new(RECORDINGS), &name).unwrap();
                assert_eq!(recording.program, "nvidia-device-plugin v0.19.3");
                count += 1;
            }
        }
        assert!(count > 0, "there are no recordings");
    }

    #[test]
    fn what_is_written_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording {
            program: "a program".to_owned(),
            outcome: Outcome::Dies("no driver".to_owned()),
            cdi: BTreeMap::from([("a.json".to_owned(), serde_json::json!({"kind": "a/b"}))]),
        };
        recording.write(folder.path(), "t4/default").unwrap();
        let read = Recording::read(folder.path(), "t4/default").unwrap();
        assert_eq!(read, recording);
        let error = Recording::read(folder.path(), "t4/other").unwrap_err();
        assert!(error.to_string().contains("--record"), "{error}");
    }
}
