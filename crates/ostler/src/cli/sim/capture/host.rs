//! Capture of the machine from the kernel's files.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use sim::{
    BusId,
    profile::ProfileSwitch,
    state::{NumaNode, OtherFunction, VgpuHost},
};

use super::notes::CaptureNotes;

/// Folder of the PCI functions (Linux, Documentation/ABI/testing/sysfs-bus-pci).
const BUS: &str = "sys/bus/pci/devices";
/// PCI root for a function whose position is unknown.
const SOMEWHERE: &str = "pci0000:00";
/// NVIDIA's PCI vendor id.
const NVIDIA: &str = "10de";

/// Reader of the host's files.
#[derive(Debug)]
pub(super) struct HostFiles {
    root: PathBuf,
}

/// PCI functions other than the cards.
#[derive(Debug, Default)]
pub(super) struct PciFunctions {
    pub(super) switches: Vec<ProfileSwitch>,
    pub(super) others: Vec<OtherFunction>,
}

// === impl HostFiles ===

impl HostFiles {
    pub(super) fn new(root: &Path) -> Self {
        let root = root.to_owned();
        Self { root }
    }

    /// Product name of the machine, from the firmware: DMI, or the device tree on ARM boards.
    pub(super) fn product_name(&self) -> Option<String> {
        let files = ["sys/class/dmi/id/product_name", "proc/device-tree/model"];
        files.iter().find_map(|file| self.read_host_file(file))
    }

    /// True on WSL: its device node is there, and the driver's usual one is not.
    pub(super) fn is_wsl(&self) -> bool {
        let has = |node: &str| self.root.join("dev").join(node).exists();
        has("dxg") && !has("nvidiactl")
    }

    /// Reads the NUMA nodes, with their processors and memory.
    pub(super) fn numa_nodes(&self) -> Vec<NumaNode> {
        let folder = "sys/devices/system/node";
        let mut nodes: Vec<NumaNode> = self
            .list_folder(folder)
            .iter()
            .filter_map(|name| name.strip_prefix("node")?.parse().ok())
            .map(|node| NumaNode {
                node,
                cpus: self
                    .read_host_file(&format!("{folder}/node{node}/cpulist"))
                    .unwrap_or_default(),
                memory_gib: self.node_memory_gib(&format!("{folder}/node{node}/meminfo")),
            })
            .collect();
        nodes.sort_by_key(|node| node.node);
        nodes
    }

    /// Reads the NUMA node of a function. The kernel writes -1 for none, which does not parse here.
    pub(super) fn numa_node(&self, pci: BusId) -> Option<u32> {
        self.read_host_file(&format!("{BUS}/{pci}/numa_node"))?
            .parse()
            .ok()
    }

    /// Reads the class of a function, such as `030200`.
    pub(super) fn pci_class(&self, pci: BusId) -> Option<String> {
        self.read_hex(pci, "class")
    }

    /// Reads the path of bridges above a function: its folder's parent in /sys/devices. If the bus
    /// does not show the function, notes that and returns a PCI root.
    pub(super) fn bridge_path(&self, pci: BusId, notes: &mut CaptureNotes) -> String {
        let real = fs_err::canonicalize(self.root.join(BUS).join(pci.to_string())).ok();
        let devices = fs_err::canonicalize(self.root.join("sys/devices")).ok();
        let parent = real
            .as_deref()
            .zip(devices.as_deref())
            .and_then(|(real, devices)| {
                let way = real.strip_prefix(devices).ok()?.parent()?.to_str()?;
                way.starts_with("pci").then(|| way.to_owned())
            });
        parent.unwrap_or_else(|| {
            // WSL shows its cards on no PCI bus.
            if !self.is_wsl() {
                notes.add_note(&format!(
                    "the way to {pci} is left out: the PCI bus does not show it"
                ));
            }
            SOMEWHERE.to_owned()
        })
    }

    /// True if a function is an NVSwitch: NVIDIA's bridge of the class "other" (0680).
    pub(super) fn is_switch(&self, pci: BusId) -> bool {
        self.read_hex(pci, "vendor").as_deref() == Some(NVIDIA)
            && self
                .pci_class(pci)
                .is_some_and(|class| class.starts_with("0680"))
    }

    /// Reads the functions of interest other than the cards: NVSwitches, network, storage, other
    /// accelerators. A function without a driver is left out.
    pub(super) fn functions(&self, cards: &[BusId]) -> PciFunctions {
        let mut found = PciFunctions::default();
        let names = self.list_folder(BUS);
        let mut addresses: Vec<BusId> = names.iter().filter_map(|n| n.parse().ok()).collect();
        addresses.sort_unstable();
        for pci in addresses.into_iter().filter(|pci| !cards.contains(pci)) {
            let link = self.root.join(BUS).join(pci.to_string()).join("driver");
            let driver = fs_err::read_link(link).ok();
            let driver = driver
                .as_deref()
                .and_then(Path::file_name)
                .and_then(OsStr::to_str);
            let ids = self
                .read_hex(pci, "vendor")
                .zip(self.read_hex(pci, "device"));
            let (Some(driver), Some((vendor, device)), Some(class)) =
                (driver, ids, self.pci_class(pci))
            else {
                continue;
            };
            let (id, numa) = (format!("{vendor}:{device}"), self.numa_node(pci));
            let under = self.bridge_path(pci, &mut CaptureNotes::default());
            if self.is_switch(pci) {
                found.switches.push(ProfileSwitch {
                    pci,
                    id,
                    under,
                    numa,
                    group: 0,
                    links: None,
                });
            } else if matters(&class) {
                let driver = driver.to_owned();
                found.others.push(OtherFunction {
                    pci,
                    id,
                    class,
                    driver,
                    numa,
                    under,
                });
            }
        }
        found
    }

    /// Reads the host's driver from the PCI configuration space of the first vGPU that has it.
    pub(super) fn vgpu_host(&self, cards: &[BusId]) -> Option<VgpuHost> {
        cards.iter().find_map(|pci| {
            // Without CAP_SYS_ADMIN the kernel gives the first 64 bytes only
            // (drivers/pci/pci-sysfs.c, `pci_read_config`), and no capability is found.
            let config = fs_err::read(self.root.join(BUS).join(pci.to_string()).join("config"));
            host_of(&config.ok()?)
        })
    }

    fn node_memory_gib(&self, file: &str) -> u64 {
        let text = self.read_host_file(file).unwrap_or_default();
        let total = text.lines().find(|line| line.contains("MemTotal:"));
        let kib = total.and_then(|line| line.split_whitespace().nth_back(1)?.parse().ok());
        // `MemTotal` lacks the memory that the kernel reserves at boot: round up to whole GiB.
        kib.unwrap_or(0_u64).div_ceil(1 << 20)
    }

    fn read_hex(&self, pci: BusId, file: &str) -> Option<String> {
        let text = self.read_host_file(&format!("{BUS}/{pci}/{file}"))?;
        Some(text.trim_start_matches("0x").to_owned())
    }

    fn read_host_file(&self, file: &str) -> Option<String> {
        let text = fs_err::read_to_string(self.root.join(file)).ok()?;
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn list_folder(&self, folder: &str) -> Vec<String> {
        let entries = fs_err::read_dir(self.root.join(folder))
            .into_iter()
            .flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.collect()
    }
}

/// True for the PCI classes network (02), NVMe (0108), display (03) and accelerators (12).
fn matters(class: &str) -> bool {
    ["02", "0108", "03", "12"]
        .iter()
        .any(|start| class.starts_with(start))
}

/// Parses the host's driver from a vGPU's configuration space: a vendor-specific capability (id 09)
/// with the letters `VF`, then a record with version and branch. k8s-device-plugin reads the same
/// (internal/vgpu).
fn host_of(config: &[u8]) -> Option<VgpuHost> {
    let byte = |at: usize| config.get(at).copied();
    let mut at = usize::from(byte(0x34)?);
    // 48 capabilities of 4 bytes fill the 192 bytes after the header; more is a loop in the list.
    for _ in 0..48 {
        let own = byte(at)? == 0x09 && config.get(at + 3..at + 5)? == b"VF" && at != 0;
        if own && byte(at + 5)? == 0 {
            let text = |from: usize| {
                let field = config.get(at + from..at + from + 10)?;
                let field: Vec<u8> = field.iter().copied().take_while(|b| *b != 0).collect();
                String::from_utf8(field).ok()
            };
            return Some(VgpuHost {
                driver: text(7)?,
                branch: text(17)?,
            });
        }
        at = usize::from(byte(at + 1)?);
    }
    None
}
