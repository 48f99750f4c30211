//! Finds devices by the names that people use for them.

use model::{DeviceId, Snapshot};

/// Reason that a text does not name one device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// No device has this name.
    #[error("no device is called `{text}`")]
    NoDevice {
        /// The text as it was given, without surrounding space.
        text: String,
    },
    /// The text is the beginning of several ids.
    #[error("`{text}` is the beginning of several devices: {}", devices.join(", "))]
    Ambiguous {
        /// The text as it was given, without surrounding space.
        text: String,
        /// Ids that begin with the text.
        devices: Vec<String>,
    },
}

/// Finds a device by UUID, index, PCI address, or the beginning of a UUID if no other device has
/// it. Ignores surrounding space. A PCI address needs no domain and means the card, not its
/// partitions.
///
/// # Errors
/// If no device matches, or several do.
pub fn find_device<'s>(snapshot: &'s Snapshot, text: &str) -> Result<&'s model::Entry, FindError> {
    let text = text.trim();
    let entries = || snapshot.devices.iter();
    if let Some(entry) = snapshot.find_entry(text) {
        return Ok(entry);
    }
    if let Ok(index) = text.parse()
        && let Some(entry) = entries().find(|entry| entry.device.index == Some(index))
    {
        return Ok(entry);
    }
    // `lspci` leaves out the domain if it is 0000.
    let pci = text.parse().or_else(|_| format!("0000:{text}").parse());
    if let Ok(pci) = pci {
        // A partition has the PCI address of its card.
        let is_card = |entry: &model::Entry| entry.device.card_id() == &entry.device.id;
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
        [] => Err(FindError::NoDevice {
            text: text.to_owned(),
        }),
        several => Err(FindError::Ambiguous {
            text: text.to_owned(),
            devices: several.iter().map(|e| e.device.id.to_string()).collect(),
        }),
    }
}

/// Returns the ids of a device and of the partitions on it.
pub fn family(snapshot: &Snapshot, device: &DeviceId) -> Vec<DeviceId> {
    let belongs =
        |entry: &&model::Entry| entry.device.id == *device || entry.device.card_id() == device;
    let entries = snapshot.devices.iter().filter(belongs);
    entries.map(|entry| entry.device.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use model::{Device, Entry};
    use rstest::rstest;

    use super::*;

    fn snapshot() -> Snapshot {
        let card = |id: &str, index: &str, pci: &str| {
            Entry::from(Device {
                index: index.parse().ok(),
                pci: Some(pci.parse().unwrap()),
                ..Device::card_of("nvidia", id.to_owned(), "A100")
            })
        };
        Snapshot {
            devices: vec![
                card("GPU-1a2b", "1", "0000:3b:00.0"),
                card("GPU-1a3c", "0", "0001:3b:00.0"),
                card("GPU-9d", "12", "0000:af:00.0"),
            ],
            ..Snapshot::empty_at(Timestamp::UNIX_EPOCH)
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
        assert_eq!(
            find_device(&snapshot(), text).unwrap().device.id.as_str(),
            id
        );
    }

    #[rstest]
    #[case("", "several")]
    #[case("GPU-1a", "GPU-1a2b, GPU-1a3c")]
    #[case("7", "no device is called `7`")]
    #[case("0000:00:00.0", "no device")]
    fn what_names_none_or_several_is_told(#[case] text: &str, #[case] said: &str) {
        let error = find_device(&snapshot(), text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
