//! PCI functions in sysfs. No driver is asked.

use model::{CardRef, PciAddress};

use super::HostFiles;

/// Folder of the bus: one folder for each function, named by its address.
const FOLDER: &str = "/sys/bus/pci/devices";

/// Lists the addresses of all PCI functions, sorted. Opens none of their files. Empty on a machine
/// without a visible PCI bus (WSL, Tegra).
pub fn addresses(files: &HostFiles) -> Vec<PciAddress> {
    let names = files.list_names(FOLDER);
    let mut found: Vec<PciAddress> = names.iter().filter_map(|name| name.parse().ok()).collect();
    found.sort_unstable();
    found
}

/// Reads the vendor id of a function.
pub fn read_vendor_id(files: &HostFiles, address: PciAddress) -> Option<u32> {
    read_hex_file(files, address, "vendor")
}

/// Reads the class of a function, without the programming interface: `0x0302` is a 3D controller.
pub fn read_class(files: &HostFiles, address: PciAddress) -> Option<u32> {
    Some(read_hex_file(files, address, "class")? >> 8)
}

/// Reads the name of the kernel driver that a function is bound to; `None` if it is bound to none
/// or the link is unreadable.
pub fn read_driver_name(files: &HostFiles, address: PciAddress) -> Option<String> {
    let path = format!("{FOLDER}/{address}/driver");
    files.link_target_name(&path, Some(CardRef::Pci(address)))
}

/// Reads the NUMA node of a function. The read is recorded for `card`: the function itself, or a
/// card below it.
pub fn read_numa_node(files: &HostFiles, function: PciAddress, card: PciAddress) -> Option<u32> {
    let path = format!("{FOLDER}/{function}/numa_node");
    // The kernel writes -1 if the firmware names no node (NUMA_NO_NODE). The parse as an unsigned
    // number fails then, and the node is left out: it must not reach the kubelet.
    let node = files.read_trimmed(&path, Some(CardRef::Pci(card)))?;
    node.parse().ok()
}

/// Lists the bridges above a function, the closest first. The target of the function's link has
/// their addresses in its path.
pub fn bridges(files: &HostFiles, address: PciAddress) -> Vec<PciAddress> {
    let link = files.link_target(&format!("{FOLDER}/{address}"), Some(CardRef::Pci(address)));
    let link = link.unwrap_or_default();
    let parts = link.parent().into_iter().flat_map(|above| above.iter());
    let bridges = parts.filter_map(|part| part.to_str()?.parse().ok());
    bridges.rev().collect()
}

/// Parses a hexadecimal number as sysfs writes it: `0x10de`. The prefix may be missing.
pub fn parse_hex(text: &str) -> Option<u32> {
    let digits = text.trim();
    u32::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
}

fn read_hex_file(files: &HostFiles, address: PciAddress, file: &str) -> Option<u32> {
    let path = format!("{FOLDER}/{address}/{file}");
    parse_hex(&files.read_trimmed(&path, Some(CardRef::Pci(address)))?)
}
