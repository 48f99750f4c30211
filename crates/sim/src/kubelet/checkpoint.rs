//! Checkpoint `kubelet_internal_checkpoint`: the part of the state that survives a restart of the
//! kubelet, in the kubelet's JSON format. Only the checksum differs: FNV over the JSON of `CheckpointData`,
//! where the kubelet hashes a Go printout.

use std::{collections::BTreeMap, io, path::Path};

use kubelet_api::deviceplugin::ContainerAllocateResponse;
use prost::Message as _;
use serde::{Deserialize, Serialize};

use super::state::{DeviceEntry, KubeletState};

/// File name in the device plugin directory.
pub const FILE: &str = "kubelet_internal_checkpoint";

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Reason why a checkpoint could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot read the checkpoint")]
    Read(#[source] io::Error),
    #[error("the checkpoint is not the JSON it should be")]
    Parse(#[source] serde_json::Error),
    #[error("the checkpoint is corrupted: checksum {found}, expected {expected}")]
    Checksum { found: u64, expected: u64 },
    #[error("the checkpoint's answer for container {container} is not a ContainerAllocateResponse")]
    Response { container: String },
}

/// Contents of a checkpoint that was read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LoadedCheckpoint {
    pub(super) entries: Vec<DeviceEntry>,
    /// Names of the resources that were registered.
    pub(super) resources: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CheckpointFile {
    data: CheckpointData,
    checksum: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CheckpointData {
    /// `null` if there are no entries, as Go writes a nil slice.
    pod_device_entries: Option<Vec<CheckpointEntry>>,
    registered_devices: Option<BTreeMap<String, Option<Vec<String>>>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CheckpointEntry {
    #[serde(rename = "PodUID")]
    pod_uid: String,
    container_name: String,
    resource_name: String,
    #[serde(rename = "DeviceIDs")]
    device_ids: BTreeMap<i64, Vec<String>>,
    alloc_resp: Option<String>,
}

/// Encodes a state as the contents of the file.
pub(super) fn encode(state: &KubeletState) -> String {
    let rows: Vec<_> = state.entries.iter().map(CheckpointEntry::from).collect();
    let healthy = state.resources.iter().filter_map(|(name, resource)| {
        let devices = resource.devices.as_ref()?.iter();
        let ids = devices.filter(|(_, device)| device.healthy);
        Some((name.clone(), Some(ids.map(|(id, _)| id.clone()).collect())))
    });
    let data = CheckpointData {
        pod_device_entries: (!rows.is_empty()).then_some(rows),
        registered_devices: Some(healthy.collect()),
    };
    let checksum = data.checksum();
    let file = CheckpointFile { data, checksum };
    serde_json::to_string(&file).expect("maps with text and number keys become JSON")
}

/// Replaces the file atomically: a reader sees either the old file or the new one.
pub(super) fn write_checkpoint(dir: &Path, contents: &str) -> io::Result<()> {
    let scratch = dir.join(format!(".{FILE}"));
    // A fixed name for the temporary file is enough: `saving` admits one writer.
    fs_err::write(&scratch, contents)?;
    fs_err::rename(scratch, dir.join(FILE))
}

/// Reads the file. A missing file counts as empty.
pub(super) fn read_checkpoint(dir: &Path) -> Result<LoadedCheckpoint, Error> {
    match fs_err::read(dir.join(FILE)) {
        Ok(bytes) => decode(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LoadedCheckpoint::default()),
        Err(error) => Err(Error::Read(error)),
    }
}

fn decode(bytes: &[u8]) -> Result<LoadedCheckpoint, Error> {
    let file: CheckpointFile = serde_json::from_slice(bytes).map_err(Error::Parse)?;
    let expected = file.data.checksum();
    if file.checksum != expected {
        let found = file.checksum;
        return Err(Error::Checksum { found, expected });
    }
    let rows = file.data.pod_device_entries.unwrap_or_default();
    let resources = file.data.registered_devices.unwrap_or_default();
    Ok(LoadedCheckpoint {
        entries: rows
            .into_iter()
            .map(DeviceEntry::try_from)
            .collect::<Result<_, _>>()?,
        resources: resources.into_keys().collect(),
    })
}

// === impl CheckpointData ===

impl CheckpointData {
    /// FNV-1a checksum, 32 bit, over the compact JSON of the data.
    fn checksum(&self) -> u64 {
        let json = serde_json::to_vec(self).expect("maps with text and number keys become JSON");
        let hash = json.iter().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        u64::from(hash)
    }
}

// === impl CheckpointEntry ===

impl From<&DeviceEntry> for CheckpointEntry {
    fn from(entry: &DeviceEntry) -> Self {
        Self {
            pod_uid: entry.uid.clone(),
            container_name: entry.container.clone(),
            resource_name: entry.resource.clone(),
            device_ids: entry.devices.clone(),
            alloc_resp: Some(to_base64(&entry.response.encode_to_vec())),
        }
    }
}

impl TryFrom<CheckpointEntry> for DeviceEntry {
    type Error = Error;

    fn try_from(row: CheckpointEntry) -> Result<Self, Error> {
        let bytes = from_base64(&row.alloc_resp.unwrap_or_default());
        let response = bytes.and_then(|bytes| ContainerAllocateResponse::decode(&bytes[..]).ok());
        let response = response.ok_or_else(|| Error::Response {
            container: row.container_name.clone(),
        })?;
        Ok(Self {
            uid: row.pod_uid,
            container: row.container_name,
            resource: row.resource_name,
            devices: row.device_ids,
            response,
        })
    }
}

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = (group >> (18 - 6 * at) & 63) as usize;
            let filled = at <= chunk.len();
            text.push(if filled { ALPHABET[digit].into() } else { '=' });
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=').as_bytes();
    if text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len());
    for chunk in digits.chunks(4) {
        let mut group = 0;
        for at in 0..4 {
            let digit = chunk.get(at).map_or(Some(0), |digit| {
                ALPHABET.iter().position(|letter| letter == digit)
            })?;
            group = group << 6 | u32::try_from(digit).ok()?;
        }
        let filled = chunk.len().checked_sub(1)?;
        bytes.extend_from_slice(&group.to_be_bytes()[1..=filled]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
