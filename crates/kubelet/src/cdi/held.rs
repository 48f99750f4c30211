//! The CDI names that containers were started with, which the kubelet uses again whenever it starts
//! them again, over its own restarts and the node's. It keeps them in a file beside its sockets.

use std::{collections::BTreeSet, io, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use config::{Handover, IdStrategy, ListStrategy};
use grant::cdi::{ALL, GDRCOPY, GDS, GPU, IMEX, MOFED, VENDOR};
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
pub(super) fn held(dir: &Path) -> Result<Option<Held>, String> {
    let path = dir.join(RECORD);
    let text = match small::read_text(&path, TEXT_LIMIT) {
        Ok(text) => text,
        Err(small::Error::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
    };
    let held = parse(&text);
    held.map(Some)
        .map_err(|why| format!("{} is not understood: {why}", path.display()))
}

/// The same as pools would ask for it, so that one way leads to specs.
pub(super) fn handovers(names: &BTreeSet<String>) -> Vec<Handover> {
    let mut wish = Handover {
        lists: vec![ListStrategy::CdiCri],
        ..Handover::default()
    };
    let mut ids = BTreeSet::new();
    for (class, device) in names.iter().filter_map(|name| split(name)) {
        match class {
            // It is there beside any other name.
            GPU if device == ALL => {}
            // UUIDs begin with a letter.
            GPU => drop(ids.insert(device.starts_with(|first: char| first.is_ascii_digit()))),
            IMEX => wish.nvidia.imex.extend(device.parse::<u32>()),
            GDRCOPY => wish.nvidia.gdrcopy = true,
            GDS => wish.nvidia.gds = true,
            MOFED => wish.nvidia.mofed = true,
            _ => {}
        }
    }
    if ids.is_empty() && !names.is_empty() {
        ids.insert(false);
    }
    let wishes = ids.into_iter().map(|index| Handover {
        ids: match index {
            true => IdStrategy::Index,
            false => IdStrategy::Uuid,
        },
        ..wish.clone()
    });
    wishes.collect()
}

fn parse(text: &str) -> Result<Held, String> {
    let record: Record = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut held = Held::default();
    let mut containers = BTreeSet::new();
    for entry in record.data.pod_device_entries.into_iter().flatten() {
        let names = entry.names()?;
        if !names.is_empty() {
            containers.insert((entry.pod, entry.container_name));
        }
        held.names.extend(names);
    }
    held.containers = containers.len();
    Ok(held)
}

/// Class and device of a name of ours.
fn split(name: &str) -> Option<(&str, &str)> {
    let name = name.strip_prefix(VENDOR)?.strip_prefix('/')?;
    name.split_once('=')
}

// === impl Entry ===

impl Entry {
    /// The names of ours in it, by the CRI and by annotations.
    fn names(&self) -> Result<Vec<String>, String> {
        let text = self.alloc_resp.as_deref().unwrap_or_default();
        let bytes = BASE64_STANDARD.decode(text).map_err(|e| e.to_string())?;
        let told = ContainerAllocateResponse::decode(&*bytes).map_err(|e| e.to_string())?;
        let cri = told.cdi_devices.iter().map(|device| device.name.as_str());
        let annotations = told.annotations.values().flat_map(|list| list.split(','));
        let names = cri.chain(annotations);
        Ok(names
            .filter(|name| split(name).is_some())
            .map(str::to_owned)
            .collect())
    }
}

#[cfg(test)]
mod tests;
