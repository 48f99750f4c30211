//! The CDI names that containers were started with, which the kubelet uses again whenever it starts
//! them again, over its own restarts and the node's. It keeps them in a file beside its sockets.

use std::{collections::BTreeSet, io, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use host::small;
use kubelet_api::deviceplugin::ContainerAllocateResponse;
use prost::Message as _;
use serde::Deserialize;

use super::TEXT_LIMIT;

/// The kubelet's record of what it was told to give to containers.
const RECORD: &str = "kubelet_internal_checkpoint";

/// What containers hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// The qualified names.
    pub(super) names: BTreeSet<String>,
    /// How many containers there are with any.
    pub(super) containers: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Record {
    data: Data,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    /// Null where there are none.
    pod_device_entries: Option<Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    #[serde(rename = "PodUID")]
    pod: String,
    container_name: String,
    alloc_resp: Option<String>,
}

/// What the kubelet of this folder remembers; `None` where there is no record yet.
///
/// # Errors
/// Why the record is not understood, for a person.
pub(super) fn held(dir: &Path, kinds: &[&str]) -> Result<Option<Held>, String> {
    let path = dir.join(RECORD);
    let text = match small::read_text(&path, TEXT_LIMIT) {
        Ok(text) => text,
        Err(small::Error::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
    };
    let held = parse(&text, kinds);
    held.map(Some)
        .map_err(|why| format!("{} is not understood: {why}", path.display()))
}

fn parse(text: &str, kinds: &[&str]) -> Result<Held, String> {
    let record: Record = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut held = Held::default();
    let mut containers = BTreeSet::new();
    for entry in record.data.pod_device_entries.into_iter().flatten() {
        let names = entry.names(kinds)?;
        if !names.is_empty() {
            containers.insert((entry.pod, entry.container_name));
        }
        held.names.extend(names);
    }
    held.containers = containers.len();
    Ok(held)
}

/// Returns true if a qualified name is of one of the kinds.
pub(super) fn is_of(name: &str, kinds: &[&str]) -> bool {
    let kind = name.split_once('=').map(|(kind, _)| kind);
    kind.is_some_and(|kind| kinds.contains(&kind))
}

// === impl Entry ===

impl Entry {
    /// The names of these kinds in it, by the CRI and by annotations.
    fn names(&self, kinds: &[&str]) -> Result<Vec<String>, String> {
        let text = self.alloc_resp.as_deref().unwrap_or_default();
        let bytes = BASE64_STANDARD.decode(text).map_err(|e| e.to_string())?;
        let told = ContainerAllocateResponse::decode(&*bytes).map_err(|e| e.to_string())?;
        let cri = told.cdi_devices.iter().map(|device| device.name.as_str());
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
