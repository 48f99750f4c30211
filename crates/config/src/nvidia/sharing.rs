//! Sections `sharing.timeSlicing` and `sharing.mps` of NVIDIA's file, and its resource names. The
//! rules are those of the plugin (api/config/v1/replicas.go).

use std::{fmt, str::FromStr};

use crate::{
    Sharing,
    backends::MPS_CLIENT_LIMIT,
    source::{FileFields, FileItem, Placed, ReadNotes, TextPlace},
};

/// Beginning of every resource name.
const PREFIX: &str = "nvidia.com/";
/// Longest resource name, with its prefix, in bytes.
const LENGTH_LIMIT: usize = 63;

/// Sharing of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedResources {
    /// `renameByDefault`: shared resources have `.shared` at the end of their name.
    pub rename_by_default: bool,
    /// `failRequestsGreaterThanOne`: a container gets at most one unit. The default depends on the
    /// section.
    pub fail_requests_greater_than_one: Option<Placed<bool>>,
    /// Shared resources, at least one.
    pub resources: Vec<ReplicatedResource>,
    pub(crate) place: TextPlace,
}

/// Shared resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedResource {
    /// Name before sharing.
    pub name: Placed<NvidiaResourceName>,
    /// Number of units that a device becomes, at least 2.
    pub replicas: Placed<u32>,
    /// Name after sharing.
    pub rename: Option<Placed<NvidiaResourceName>>,
    /// Devices of the resource that are shared.
    pub devices: Placed<SharedDevices>,
}

/// Devices of a resource that are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedDevices {
    /// All devices.
    All,
    /// The first devices, this number of them, at least 1.
    Count(u32),
    /// Single devices.
    List(Vec<DeviceRef>),
}

/// Reference to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceRef {
    /// Index of a card, `0`.
    Index(String),
    /// Index of a MIG device, `0:1`.
    MigIndex(String),
    /// Id of a card or a MIG device.
    Uuid(String),
}

/// Resource name under `nvidia.com/`, at most 63 characters long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NvidiaResourceName(String);

/// Limit on the number of units that a device becomes, with its reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplicaLimit {
    replicas: u32,
    why: &'static str,
}

// === impl ReplicaLimit ===

impl ReplicaLimit {
    /// Limit of time-slicing.
    pub(super) const SLICES: Self = Self {
        replicas: Sharing::MOST,
        why: "the kubelet takes no longer list",
    };
    /// Limit of MPS.
    pub(super) const CLIENTS: Self = Self {
        replicas: MPS_CLIENT_LIMIT,
        why: "no card serves as many clients of MPS",
    };
}

/// Reads a section. At least one resource must be in it.
pub(super) fn read_replicated(
    item: &FileItem<'_>,
    notes: &mut ReadNotes,
    most: ReplicaLimit,
) -> Option<ReplicatedResources> {
    let mut at = item.read_fields(notes)?;
    let rename = at
        .take_key(notes, "renameByDefault")
        .and_then(|item| item.read_bool(notes));
    let fail = at.take_key(notes, "failRequestsGreaterThanOne");
    let fail = fail.and_then(|item| item.read_bool(notes));
    let list = at.take_key(notes, "resources");
    let (there, list) = (list.is_some(), list.and_then(|item| item.read_list(notes)));
    let empty = list.as_ref().is_some_and(Vec::is_empty);
    if !there || empty {
        let help = "list at least one: `resources: [{name: nvidia.com/gpu, replicas: 4}]`";
        let key = at.full_key("resources");
        notes.note_error(
            at.key_place("resources"),
            &key,
            "no resource is shared",
            help,
        );
    }
    let list = list.unwrap_or_default();
    let resources = list
        .iter()
        .filter_map(|item| read_resource(item, notes, most))
        .collect();
    at.note_unknown_keys(notes);
    Some(ReplicatedResources {
        rename_by_default: rename.is_some_and(|said| said.value),
        fail_requests_greater_than_one: fail,
        resources,
        place: item.value_place(),
    })
}

/// Reads a resource name.
pub(super) fn read_resource_name(
    at: &mut FileFields<'_>,
    notes: &mut ReadNotes,
    key: &'static str,
    required: bool,
) -> Option<Placed<NvidiaResourceName>> {
    let item = at.take_key(notes, key);
    if item.is_none() && required {
        let help = "name the resource, e.g. `nvidia.com/gpu`";
        notes.note_error(
            at.place,
            &at.full_key(key),
            format!("`{key}` is missing"),
            help,
        );
    }
    let help = "write at most 63 lower-case letters, digits, `-` and `.`, e.g. `nvidia.com/gpu`";
    item?.parse_string(notes, help)
}

fn read_resource(
    item: &FileItem<'_>,
    notes: &mut ReadNotes,
    most: ReplicaLimit,
) -> Option<ReplicatedResource> {
    let mut at = item.read_fields(notes)?;
    let resource = read_resource_name(&mut at, notes, "name", true);
    let replicas = replicas(&mut at, notes, most);
    let rename = read_resource_name(&mut at, notes, "rename", false);
    let devices = match at.take_key(notes, "devices") {
        Some(item) => read_devices(&item, notes),
        None => Some(Placed {
            value: SharedDevices::All,
            place: at.place,
        }),
    };
    at.note_unknown_keys(notes);
    Some(ReplicatedResource {
        name: resource?,
        replicas: replicas?,
        rename,
        devices: devices?,
    })
}

fn replicas(
    at: &mut FileFields<'_>,
    notes: &mut ReadNotes,
    most: ReplicaLimit,
) -> Option<Placed<u32>> {
    let help = "say how many units a device becomes, 2 or more";
    let Some(item) = at.take_key(notes, "replicas") else {
        notes.note_error(
            at.place,
            &at.full_key("replicas"),
            "`replicas` is missing",
            help,
        );
        return None;
    };
    let replicas = item.read_number(notes, 2..=i32::MAX.unsigned_abs())?;
    // NVIDIA's plugin takes any number, so more than our limit is not an error here.
    if replicas.value > most.replicas {
        let message = format!(
            "{} are too many, {}: the devices are not offered",
            replicas.value, most.why
        );
        let help = format!("write at most {}", most.replicas);
        notes.note_warning(replicas.place, &at.full_key("replicas"), message, help);
    }
    Some(replicas)
}

/// Reads `all`, a number, or a list of devices.
fn read_devices(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Placed<SharedDevices>> {
    let help = "write `all`, a number of devices, or a list such as [0, \"1:0\", GPU-…]";
    if item.is_list() {
        let list = item.read_list(notes)?;
        if list.is_empty() {
            item.note_item_error(notes, "the list is empty: no device would be shared", help);
            return None;
        }
        let refs: Vec<DeviceRef> = list
            .iter()
            .filter_map(|item| Some(item.parse_string(notes, help)?.value))
            .collect();
        let whole = refs.len() == list.len();
        return whole.then(|| item.with_place(SharedDevices::List(refs)));
    }
    let count = |text: &str| text.parse::<u32>().ok().filter(|count| *count > 0);
    let devices = match item.scalar() {
        Some(("all", _)) => Some(SharedDevices::All),
        Some((text, true)) => count(text).map(SharedDevices::Count),
        _ => None,
    };
    if devices.is_none() {
        let text = item.scalar().map_or("this", |(text, _)| text);
        item.note_item_error(notes, format!("`{text}` does not say which devices"), help);
    }
    devices.map(|devices| item.with_place(devices))
}

// === impl DeviceRef ===

impl DeviceRef {
    /// Returns the reference as it was written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Index(text) | Self::MigIndex(text) | Self::Uuid(text) => text,
        }
    }
}

impl FromStr for DeviceRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if digits(text) {
            return Ok(Self::Index(text.to_owned()));
        }
        if text
            .split_once(':')
            .is_some_and(|(card, part)| digits(card) && digits(part))
        {
            return Ok(Self::MigIndex(text.to_owned()));
        }
        // Drivers before R470 name a MIG device by the card's UUID and its instances:
        // MIG-GPU-<uuid>/<GPU instance>/<compute instance>.
        let legacy = text.strip_prefix("MIG-GPU-");
        let legacy: Option<Vec<&str>> = legacy.map(|rest| rest.splitn(3, '/').collect());
        let valid = match legacy.as_deref() {
            Some([uuid, instance, compute]) => is_uuid(uuid) && digits(instance) && digits(compute),
            Some(_) => false,
            None => {
                let uuid = text.strip_prefix("GPU-").or(text.strip_prefix("MIG-"));
                uuid.is_some_and(is_uuid)
            }
        };
        match valid {
            true => Ok(Self::Uuid(text.to_owned())),
            false => Err(format!("`{text}` is not an index or an id of a device")),
        }
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let hex = |group: &&str| group.bytes().all(|b| b.is_ascii_hexdigit());
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(hex)
}

// === impl NvidiaResourceName ===

impl NvidiaResourceName {
    /// Returns the whole name, with its prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the default name of the resource after sharing. It can be too long.
    pub(super) fn shared_name(&self) -> String {
        format!("{}.shared", self.0)
    }
}

impl FromStr for NvidiaResourceName {
    type Err = String;

    /// Parses a name. Adds the prefix if it is missing.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = match text.starts_with(PREFIX) {
            true => text.to_owned(),
            false => format!("{PREFIX}{text}"),
        };
        if name.len() > LENGTH_LIMIT {
            let length = name.len();
            return Err(format!(
                "`{name}` has {length} characters, {LENGTH_LIMIT} at most are possible"
            ));
        }
        // The part after the prefix is a DNS subdomain (RFC 1123).
        let alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let label = |label: &str| {
            let bytes = label.as_bytes();
            bytes.iter().all(|b| alnum(b) || *b == b'-')
                && bytes.first().is_some_and(alnum)
                && bytes.last().is_some_and(alnum)
        };
        match name[PREFIX.len()..].split('.').all(label) {
            true => Ok(Self(name)),
            false => Err(format!("`{name}` is not a resource name")),
        }
    }
}

impl fmt::Display for NvidiaResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
