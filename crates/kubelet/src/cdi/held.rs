//! CDI names that containers were started with. The kubelet uses them again at every restart of a
//! container, also after its own restart and the node's. They are in its checkpoint, a file beside
//! its sockets (`pkg/kubelet/cm/devicemanager/manager.go`, `writeCheckpoint`).

use std::{collections::BTreeSet, io, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use host::small;
use kubelet_api::deviceplugin::ContainerAllocateResponse;
use prost::Message as _;
use serde::Deserialize;

use super::TEXT_LIMIT;

/// File name of the kubelet's checkpoint of allocated devices. We read it and never write it.
const RECORD: &str = "kubelet_internal_checkpoint";

/// CDI names in the kubelet's checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldNames {
    /// Qualified names, `vendor/class=device`.
    pub(super) names: BTreeSet<String>,
    /// Number of containers with at least one of the names.
    pub(super) containers: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AllocationCheckpoint {
    data: AllocationData,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AllocationData {
    // Go writes a nil slice as `null`, not as `[]`.
    /// One entry for each container and resource; null if there are none.
    pod_device_entries: Option<Vec<AllocationEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AllocationEntry {
    #[serde(rename = "PodUID")]
    pod: String,
    container_name: String,
    alloc_resp: Option<String>,
}

/// Reads the CDI names of these kinds from the kubelet's checkpoint in the folder `dir`; `None` if
/// there is no checkpoint yet. The call blocks.
///
/// # Errors
/// The checkpoint cannot be read or is not in the known form; the text is for an operator.
pub(super) fn read_held_names(dir: &Path, kinds: &[&str]) -> Result<Option<HeldNames>, String> {
    let path = dir.join(RECORD);
    let text = match small::read_text(&path, TEXT_LIMIT) {
        Ok(text) => text,
        Err(small::Error::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
    };
    let held = parse_checkpoint(&text, kinds);
    held.map(Some)
        .map_err(|why| format!("{} is not understood: {why}", path.display()))
}

fn parse_checkpoint(text: &str, kinds: &[&str]) -> Result<HeldNames, String> {
    let record: AllocationCheckpoint =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut held = HeldNames::default();
    let mut containers = BTreeSet::new();
    for entry in record.data.pod_device_entries.into_iter().flatten() {
        let names = entry.decode_names(kinds)?;
        if !names.is_empty() {
            containers.insert((entry.pod, entry.container_name));
        }
        held.names.extend(names);
    }
    held.containers = containers.len();
    Ok(held)
}

/// True if a qualified name is of one of the kinds.
pub(super) fn is_of(name: &str, kinds: &[&str]) -> bool {
    let kind = name.split_once('=').map(|(kind, _)| kind);
    kind.is_some_and(|kind| kinds.contains(&kind))
}

// === impl AllocationEntry ===

impl AllocationEntry {
    /// Names of these kinds in the entry: those for the CRI and those in annotations.
    fn decode_names(&self, kinds: &[&str]) -> Result<Vec<String>, String> {
        // `AllocResp` is the protobuf message that the plugin answered to `Allocate`, in base64
        // (pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go, `PodDevicesEntry`).
        let text = self.alloc_resp.as_deref().unwrap_or_default();
        let bytes = BASE64_STANDARD.decode(text).map_err(|e| e.to_string())?;
        let told = ContainerAllocateResponse::decode(&*bytes).map_err(|e| e.to_string())?;
        let cri = told.cdi_devices.iter().map(|device| device.name.as_str());
        // The value of a `cdi.k8s.io/` annotation is a list of names with commas between them. The
        // key does not matter here: `is_of` drops every text that is not a name of ours.
        let annotations = told.annotations.values().flat_map(|list| list.split(','));
        let names = cri.chain(annotations);
        Ok(names
            .filter(|name| is_of(name, kinds))
            .map(str::to_owned)
            .collect())
    }
}

#[cfg(test)]
mod tests;
