//! The PCI bus as sysfs shows it, read without asking a driver.

use model::{CardRef, PciAddress};

use super::Files;

/// The folder in which the bus shows its functions, each in a folder named after its address.
const FOLDER: &str = "/sys/bus/pci/devices";

/// The addresses of all PCI functions, sorted; their files are not read. Empty where the machine
/// shows no PCI bus (WSL, Tegra).
pub fn addresses(files: &Files) -> Vec<PciAddress> {
    let names = files.names(FOLDER);
    let mut found: Vec<PciAddress> = names.iter().filter_map(|name| name.parse().ok()).collect();
    found.sort_unstable();
    found
}

/// The number of the function's vendor.
pub fn vendor(files: &Files, address: PciAddress) -> Option<u32> {
    number(files, address, "vendor")
}

/// The class of a function, without its programming interface: `0x0302` is a 3D controller.
pub fn class(files: &Files, address: PciAddress) -> Option<u32> {
    Some(number(files, address, "class")? >> 8)
}

/// The kernel driver that a function is bound to; `None` where that cannot be seen.
pub fn driver(files: &Files, address: PciAddress) -> Option<String> {
    let path = format!("{FOLDER}/{address}/driver");
    files.target(&path, Some(CardRef::Pci(address)))
}

/// The NUMA node of a function, read for a card: the function itself or one below it.
pub fn numa(files: &Files, function: PciAddress, card: PciAddress) -> Option<u32> {
    let path = format!("{FOLDER}/{function}/numa_node");
    // The kernel writes -1 where there is no node: that is no node and not node -1.
    let node = files.text(&path, Some(CardRef::Pci(card)))?;
    node.parse().ok()
}

/// The bridges above a function, the closest first. They are in the path that its link leads to.
pub fn bridges(files: &Files, address: PciAddress) -> Vec<PciAddress> {
    let link = files.link(&format!("{FOLDER}/{address}"), Some(CardRef::Pci(address)));
    let link = link.unwrap_or_default();
    let parts = link.parent().into_iter().flat_map(|above| above.iter());
    let bridges = parts.filter_map(|part| part.to_str()?.parse().ok());
    bridges.rev().collect()
}

/// Reads a number as sysfs writes it: `0x10de`.
pub fn hex(text: &str) -> Option<u32> {
    let digits = text.trim();
    u32::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
}

fn number(files: &Files, address: PciAddress, file: &str) -> Option<u32> {
    let path = format!("{FOLDER}/{address}/{file}");
    hex(&files.text(&path, Some(CardRef::Pci(address)))?)
}
