//! What a command asks of the agent over the control socket, and what it is told. The words are
//! part of the product: other programs send them too.

use jiff::Timestamp;
use model::{DeviceId, PciAddress, Snapshot, Tier, Transition, Verdict};
use serde::{Deserialize, Serialize};

/// The page with verdicts and their history.
pub(crate) const HEALTH: &str = "/v1/health";
/// Takes a device out.
pub(crate) const CORDON: &str = "/v1/cordon";
/// Takes it back.
pub(crate) const UNCORDON: &str = "/v1/uncordon";
/// Gives devices up for a while.
pub(crate) const RELEASE: &str = "/v1/release";
/// Takes them back before that.
pub(crate) const RESUME: &str = "/v1/resume";

/// The body of [`CORDON`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cordon {
    /// A UUID or its beginning, an index, or a PCI address.
    pub(crate) device: String,
    #[serde(default)]
    pub(crate) reason: String,
}

/// The body of [`UNCORDON`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Uncordon {
    pub(crate) device: String,
}

/// The body of [`RELEASE`] and [`RESUME`]: one device or all.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Release {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<String>,
    #[serde(default)]
    pub(crate) all: bool,
    /// For how long; ten minutes if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<u64>,
}

/// What came of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// Every device that it concerns.
    pub(crate) devices: Vec<DeviceId>,
    /// What was done, for a person.
    pub(crate) message: String,
    /// Why it does not outlive the agent, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_kept: Option<String>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
}

/// The page [`HEALTH`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Health {
    /// Every device, sorted by id.
    pub(crate) devices: Vec<Judged>,
    /// The last changes of verdicts, the oldest first.
    pub(crate) history: Vec<Transition>,
}

/// A device and what is held of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) device: DeviceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pci: Option<PciAddress>,
    pub(crate) verdict: Verdict,
    /// Checks that it does not support: nobody makes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unsupported: Vec<Unsupported>,
}

/// Checks of one tier that a device does not support.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unsupported {
    pub(crate) tier: Tier,
    pub(crate) checks: Vec<String>,
}

/// Why a text names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unnamed {
    /// Nothing is called that.
    #[error("no device is called `{text}`")]
    Nothing { text: String },
    /// Several are.
    #[error("`{text}` is the beginning of several devices: {}", devices.join(", "))]
    Several { text: String, devices: Vec<String> },
}

// === impl Done ===

impl Done {
    /// What was done, to these devices.
    pub(crate) fn new(devices: Vec<DeviceId>, message: String) -> Self {
        Self {
            devices,
            message,
            not_kept: None,
            until: None,
        }
    }

    /// Says so if it does not outlive the agent.
    pub(crate) fn kept(mut self, not_kept: Option<String>) -> Self {
        if let Some(why) = &not_kept {
            let more = format!("; a restart of the agent forgets it: {why}");
            self.message.push_str(&more);
        }
        self.not_kept = not_kept;
        self
    }
}

/// The device that a person means: by UUID, index, PCI address, or the beginning of a UUID that no
/// other has.
pub(crate) fn find<'s>(snapshot: &'s Snapshot, text: &str) -> Result<&'s model::Entry, Unnamed> {
    let text = text.trim();
    let entries = || snapshot.devices.iter();
    if let Some(entry) = snapshot.find(text) {
        return Ok(entry);
    }
    let at_index = |entry: &&model::Entry| entry.device.index.as_deref() == Some(text);
    if let Some(entry) = entries().find(at_index) {
        return Ok(entry);
    }
    let pci = text.parse().or_else(|_| format!("0000:{text}").parse());
    if let Ok(pci) = pci {
        let is_card = |entry: &model::Entry| entry.device.card() == &entry.device.id;
        let mut there = entries().filter(|entry| entry.device.pci == Some(pci));
        if let Some(entry) = there.find(|entry| is_card(entry)) {
            return Ok(entry);
        }
    }
    let begins = |entry: &&model::Entry| {
        let id = entry.device.id.as_str();
        id.get(..text.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(text))
    };
    let found: Vec<&model::Entry> = entries().filter(begins).collect();
    match found.as_slice() {
        [entry] if !text.is_empty() => Ok(entry),
        [] => Err(Unnamed::Nothing {
            text: text.to_owned(),
        }),
        several => Err(Unnamed::Several {
            text: text.to_owned(),
            devices: several.iter().map(|e| e.device.id.to_string()).collect(),
        }),
    }
}

/// A device with its partitions.
pub(crate) fn family(snapshot: &Snapshot, device: &DeviceId) -> Vec<DeviceId> {
    let belongs =
        |entry: &&model::Entry| entry.device.id == *device || entry.device.card() == device;
    let entries = snapshot.devices.iter().filter(belongs);
    entries.map(|entry| entry.device.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use model::{Device, Entry};
    use rstest::rstest;

    use super::*;

    fn snapshot() -> Snapshot {
        let card = |id: &str, index: &str, pci: &str| Entry {
            device: Device {
                index: Some(index.to_owned()),
                pci: Some(pci.parse().unwrap()),
                ..Device::card_of("nvidia", id.to_owned(), "A100")
            },
            verdict: Verdict::default(),
            telemetry: None,
        };
        Snapshot {
            devices: vec![
                card("GPU-1a2b", "1", "0000:3b:00.0"),
                card("GPU-1a3c", "0", "0001:3b:00.0"),
                card("GPU-9d", "12", "0000:af:00.0"),
            ],
            ..Snapshot::empty(Timestamp::UNIX_EPOCH)
        }
    }

    #[rstest]
    #[case("GPU-1a3c", "GPU-1a3c")]
    #[case(" 1 ", "GPU-1a2b")]
    #[case("12", "GPU-9d")]
    #[case("0000:3b:00.0", "GPU-1a2b")]
    #[case("0001:3B:00.0", "GPU-1a3c")]
    #[case("af:00.0", "GPU-9d")]
    #[case("gpu-1A2", "GPU-1a2b")]
    fn a_device_is_found_by_what_people_write(#[case] text: &str, #[case] id: &str) {
        assert_eq!(find(&snapshot(), text).unwrap().device.id.as_str(), id);
    }

    #[rstest]
    #[case("", "several")]
    #[case("GPU-1a", "GPU-1a2b, GPU-1a3c")]
    #[case("7", "no device is called `7`")]
    #[case("0000:00:00.0", "no device")]
    fn what_names_none_or_several_is_told(#[case] text: &str, #[case] said: &str) {
        let error = find(&snapshot(), text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
