//! NVIDIA's cards on the PCI bus, found without a driver call.

use model::PciAddress;
use probe::sysfs::{HostFiles, bus};

/// PCI vendor id of NVIDIA.
const VENDOR: u32 = 0x10de;

/// PCI function that is a graphics card of NVIDIA's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CardFunction {
    /// PCI address.
    pub(super) address: PciAddress,
    /// Kernel driver that the function is bound to; `None` if that cannot be read.
    pub(super) driver: Option<String>,
    /// NUMA node as sysfs tells it, if any; see [`probe::sysfs::NumaNodes`] for its meaning.
    pub(super) numa: Option<u32>,
}

// === impl CardFunction ===

impl CardFunction {
    /// Returns true unless the card is bound to another driver than NVIDIA's, such as `vfio-pci`.
    pub(super) fn may_be_managed(&self) -> bool {
        self.driver
            .as_deref()
            .is_none_or(|driver| driver == "nvidia")
    }
}

/// Reads the function at an address; `None` if it is not a graphics card of NVIDIA's.
pub(super) fn read_card_function(files: &HostFiles, address: PciAddress) -> Option<CardFunction> {
    // PCI classes: VGA controller (0300) and 3D controller (0302). NVSwitches have 0680, the audio
    // function of a card 0403.
    let is_card = bus::read_vendor_id(files, address)? == VENDOR
        && matches!(bus::read_class(files, address)?, 0x0300 | 0x0302);
    is_card.then(|| CardFunction {
        address,
        driver: bus::read_driver_name(files, address),
        numa: bus::read_numa_node(files, address, address),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        os::unix::fs::symlink,
        path::{Path, PathBuf},
    };

    fn scan(root: &Path) -> Vec<CardFunction> {
        let files = HostFiles::new(root, std::sync::Arc::default());
        let addresses = bus::addresses(&files).into_iter();
        addresses
            .filter_map(|at| read_card_function(&files, at))
            .collect()
    }

    fn put(root: &Path, address: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = root.join("sys/bus/pci/devices").join(address);
        fs_err::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs_err::write(folder.join(name), text).unwrap();
        }
        folder
    }

    const GPU: [(&str, &str); 3] = [
        ("vendor", "0x10de\n"),
        ("class", "0x030200\n"),
        ("numa_node", "1\n"),
    ];

    #[test]
    fn finds_cards_and_nothing_else_in_order() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "0000:47:00.0", &GPU);
        put(root.path(), "0000:07:00.0", &GPU);
        put(
            root.path(),
            "0000:07:00.1",
            &[("vendor", "0x10de\n"), ("class", "0x040300\n")],
        );
        put(
            root.path(),
            "0000:01:00.0",
            &[("vendor", "0x8086\n"), ("class", "0x030000\n")],
        );
        put(
            root.path(),
            "0000:02:00.0",
            &[("vendor", "0x10de\n"), ("class", "0x068000\n")],
        );
        put(
            root.path(),
            "0000:03:00.0",
            &[("vendor", "nonsense"), ("class", "")],
        );
        put(root.path(), "not-an-address", &GPU);
        let found: Vec<String> = scan(root.path())
            .iter()
            .map(|f| f.address.to_string())
            .collect();
        assert_eq!(found, ["0000:07:00.0", "0000:47:00.0"]);
    }

    #[test]
    fn a_negative_or_unreadable_numa_node_is_no_node() {
        let root = tempfile::tempdir().unwrap();
        for (address, text, numa) in [
            ("0000:01:00.0", "-1\n", None),
            ("0000:02:00.0", "x", None),
            ("0000:03:00.0", "3\n", Some(3)),
        ] {
            let folder = put(root.path(), address, &GPU);
            fs_err::write(folder.join("numa_node"), text).unwrap();
            let found = scan(root.path());
            let function = found.iter().find(|f| f.address.to_string() == address);
            assert_eq!(function.unwrap().numa, numa, "{text}");
        }
    }

    #[test]
    fn another_driver_takes_a_card_away_from_us() {
        let root = tempfile::tempdir().unwrap();
        for (address, driver) in [("0000:01:00.0", "nvidia"), ("0000:02:00.0", "vfio-pci")] {
            let folder = put(root.path(), address, &GPU);
            symlink(
                format!("../../bus/pci/drivers/{driver}"),
                folder.join("driver"),
            )
            .unwrap();
        }
        put(root.path(), "0000:03:00.0", &GPU);
        let managed: Vec<bool> = scan(root.path())
            .iter()
            .map(CardFunction::may_be_managed)
            .collect();
        assert_eq!(managed, [true, false, true]);
    }

    #[test]
    fn no_bus_is_no_card() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(scan(root.path()), []);
    }
}
