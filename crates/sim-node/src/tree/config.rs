//! PCI configuration of a function, as the kernel shows it: the file `config` in bytes, the other
//! files as text.

use super::HostTree;
use crate::{
    bus::BusId,
    state::{Gpu, GpuModel, OtherFunction, VgpuHost},
};

/// Size of the standard configuration space.
const SIZE: usize = 256;
/// Offsets of the capabilities. The first is a list head, each points to the next.
const POWER: u8 = 0x60;
const INTERRUPTS: u8 = 0x68;
const EXPRESS: u8 = 0x78;
const VENDOR: u8 = 0xb4;
/// Flags of the kernel for a memory range (`include/linux/ioport.h`): 32 bit, and 64 bit
/// prefetchable.
const NARROW: u64 = 0x0004_0200;
const WIDE: u64 = 0x0014_220c;

/// A PCI function.
#[derive(Debug)]
pub(super) struct PciFunction {
    /// PCI address.
    pub(super) pci: BusId,
    /// Position among all functions of the machine.
    pub(super) position: usize,
    pub(super) vendor: u16,
    pub(super) device: u16,
    subsystem: (u16, u16),
    class: u32,
    revision: u8,
    irq: u32,
    /// Memory ranges (BARs): number, first address, size, and the kernel's flags.
    ranges: Vec<(usize, u64, u64, u64)>,
    /// Vendor-specific capability without its header.
    own: Option<Vec<u8>>,
}

/// Function of a graphics card.
pub(super) fn card_function(
    position: usize,
    gpu: &Gpu,
    model: &GpuModel,
    host: Option<&VgpuHost>,
) -> PciFunction {
    let (vendor, device) = split_ids(&model.subsystem);
    let nth = u64::try_from(position).unwrap_or(0);
    let bar1 = model.bar1_bytes();
    // Each card has a window of its own, aligned to its size and above the processor's memory.
    let wide = (bar1.max(1 << 30)).saturating_mul(2);
    let first = (1_u64 << 45).saturating_add(wide.saturating_mul(nth));
    let registers = (nth << 24).wrapping_add(0x8000_0000) & 0xffff_ffff;
    PciFunction {
        pci: gpu.pci,
        position,
        vendor: 0x10de,
        device: parse_id(&model.device_id),
        subsystem: (vendor, device),
        class: u32::from_str_radix(&model.class, 16).unwrap_or(0x0003_0200),
        revision: 0xa1,
        irq: 130_u32.saturating_add(gpu.minor),
        ranges: vec![
            (0, registers, 16 << 20, NARROW),
            (1, first, bar1, WIDE),
            (3, first.saturating_add(bar1), 32 << 20, WIDE),
        ],
        own: Some(host.map_or_else(|| vec![0; 16], vgpu_capability)),
    }
}

/// Function that is not a card.
pub(super) fn other(position: usize, other: &OtherFunction) -> PciFunction {
    let (vendor, device) = split_ids(&other.id);
    let nth = u64::try_from(position).unwrap_or(0);
    PciFunction {
        pci: other.pci,
        position,
        vendor,
        device,
        subsystem: (vendor, 0),
        class: u32::from_str_radix(&other.class, 16).unwrap_or(0),
        revision: 0,
        irq: u32::try_from(position).unwrap_or(0).saturating_add(200),
        ranges: vec![(0, (nth << 25) + (1 << 44), 32 << 20, WIDE)],
        own: None,
    }
}

/// Port of a PCIe switch or of the root complex.
pub(super) fn bridge(pci: BusId) -> PciFunction {
    PciFunction {
        pci,
        position: 0,
        vendor: 0x10b5,
        device: 0x9797,
        subsystem: (0x10b5, 0x9797),
        class: 0x0006_0400,
        revision: 0xaa,
        irq: 24,
        ranges: Vec::new(),
        own: None,
    }
}

/// Vendor-specific capability of a vGPU: `VF`, then a record with version and branch of the host's
/// driver.
fn vgpu_capability(host: &VgpuHost) -> Vec<u8> {
    let mut bytes = b"VF\0\x16".to_vec();
    for text in [&host.driver, &host.branch] {
        let mut field = [0; 10];
        for (to, from) in field.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        bytes.extend(field);
    }
    bytes
}

// === impl PciFunction ===

impl PciFunction {
    /// Adds the files of the function.
    pub(super) fn add_function(&self, tree: &mut HostTree, at: &str) {
        let (vendor, device) = self.subsystem;
        let texts = [
            ("vendor", format!("0x{:04x}", self.vendor)),
            ("device", format!("0x{:04x}", self.device)),
            ("subsystem_vendor", format!("0x{vendor:04x}")),
            ("subsystem_device", format!("0x{device:04x}")),
            ("class", format!("0x{:06x}", self.class)),
            ("revision", format!("0x{:02x}", self.revision)),
            ("irq", self.irq.to_string()),
            ("resource", self.resource_text()),
        ];
        for (name, text) in texts {
            tree.add_file(format!("{at}/{name}"), format!("{text}\n"));
        }
        tree.add_file(format!("{at}/config"), self.config_bytes());
    }

    /// Ranges as the kernel lists them in `resource`: six BARs, the expansion ROM, six BARs of
    /// virtual functions.
    fn resource_text(&self) -> String {
        let line = |number| {
            let range = self.ranges.iter().find(|(at, ..)| *at == number);
            let (first, last, marks) = range.map_or((0, 0, 0), |(_, first, size, marks)| {
                (*first, first.saturating_add(size.saturating_sub(1)), *marks)
            });
            format!("{first:#018x} {last:#018x} {marks:#018x}")
        };
        (0..13).map(line).collect::<Vec<_>>().join("\n")
    }

    /// Standard configuration space.
    fn config_bytes(&self) -> Vec<u8> {
        let mut space = ConfigSpace(vec![0; SIZE]);
        space.put_bytes(0x00, &self.vendor.to_le_bytes());
        space.put_bytes(0x02, &self.device.to_le_bytes());
        // Command register: memory and bus master are enabled. Status register: a capability list
        // exists.
        space.put_bytes(0x04, &[0x06, 0x04, 0x10, 0x00]);
        space.put_bytes(0x08, &[self.revision]);
        space.put_bytes(0x09, &self.class.to_le_bytes()[..3]);
        let is_bridge = self.class >> 8 == 0x0604;
        space.put_bytes(0x0e, &[u8::from(is_bridge)]);
        if !is_bridge {
            for (number, first, _, marks) in &self.ranges {
                let kind = if *marks == WIDE { 0x0c } else { 0 };
                space.put_bytes(0x10 + number * 4, &(first | kind).to_le_bytes()[..4]);
                if *marks == WIDE {
                    space.put_bytes(0x14 + number * 4, &first.to_le_bytes()[4..]);
                }
            }
            space.put_bytes(0x2c, &self.subsystem.0.to_le_bytes());
            space.put_bytes(0x2e, &self.subsystem.1.to_le_bytes());
        }
        space.put_bytes(0x34, &[POWER]);
        space.put_bytes(usize::from(POWER), &[0x01, INTERRUPTS, 0x03, 0x00, 0x08]);
        space.put_bytes(usize::from(INTERRUPTS), &[0x05, EXPRESS, 0x80]);
        let after = if self.own.is_some() { VENDOR } else { 0 };
        let port = if is_bridge { 0x62 } else { 0x02 };
        space.put_bytes(usize::from(EXPRESS), &[0x10, after, port, 0x00]);
        if let Some(own) = &self.own {
            let length = u8::try_from(own.len() + 3).unwrap_or(u8::MAX);
            space.put_bytes(usize::from(VENDOR), &[0x09, 0, length]);
            space.put_bytes(usize::from(VENDOR) + 3, own);
        }
        space.0
    }
}

/// Bytes to fill in.
#[derive(Debug)]
struct ConfigSpace(Vec<u8>);

// === impl ConfigSpace ===

impl ConfigSpace {
    fn put_bytes(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.0.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }
}

/// The two numbers of a text such as `10de:20b0`.
fn split_ids(text: &str) -> (u16, u16) {
    let (left, right) = text.split_once(':').unwrap_or(("ffff", "ffff"));
    (parse_id(left), parse_id(right))
}

fn parse_id(text: &str) -> u16 {
    u16::from_str_radix(text, 16).unwrap_or(0)
}
