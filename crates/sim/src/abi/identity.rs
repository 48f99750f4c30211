//! Finding a device, and what it is.

use std::ffi::{c_int, c_uint, c_ulong};

use model::PciAddress;
use nvml_wrapper_sys::bindings::{nvmlPciInfo_t, nvmlPciInfoExt_v1_t};

use super::{
    call::{self, Unit},
    code::{Answer, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED},
    nvml, session,
    wire::{Given, Handle, Out, Text, chars, mark_of},
};
use crate::{
    state::{Model, State},
    target::{Place, by_uuid},
};

/// The part of a PCI info that callers of the older versions have room for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ShortPci {
    bus_id: [std::ffi::c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
}

nvml! {
    plain nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetHandleByIndex: (index: c_uint, device: Out<Handle>) |name|
        open(name, &device, |state| {
            let place = usize::try_from(index).map_err(|_| INVALID_ARGUMENT)?;
            (place < state.gpus.len()).then_some((place, None)).ok_or(INVALID_ARGUMENT)
        });
    plain nvmlDeviceGetHandleByPciBusId_v2, nvmlDeviceGetHandleByPciBusId: (address: Given, device: Out<Handle>) |name| {
        let pci: PciAddress = address.read()?.parse().map_err(|_| INVALID_ARGUMENT)?;
        open(name, &device, |state| at(state, |gpu| gpu.pci == pci))
    };
    plain nvmlDeviceGetHandleByUUID: (uuid: Given, device: Out<Handle>) |name| {
        let uuid = uuid.read()?;
        open(name, &device, |state| by_uuid(state, uuid).ok_or(NOT_FOUND))
    };
    plain nvmlDeviceGetHandleBySerial: (serial: Given, device: Out<Handle>) |name| {
        let serial = serial.read()?;
        open(name, &device, |state| at(state, |gpu| gpu.serial == serial))
    };
    device nvmlDeviceGetName: (name: Text, length: c_uint) |unit| match unit.mig {
        None => name.set(length, &unit.model.name),
        Some((_, mig, shape)) => {
            name.set(length, &format!("{} MIG {}", unit.model.name, mig.name(shape)))
        }
    };
    device nvmlDeviceGetUUID: (uuid: Text, length: c_uint) |unit|
        uuid.set(length, unit.mig.map_or(&unit.gpu.uuid, |(_, mig, _)| &mig.uuid));
    device nvmlDeviceGetIndex: (index: Out<c_uint>) |unit| {
        let position = unit.mig.map_or(unit.index, |(position, _, _)| position);
        index.set(c_uint::try_from(position).map_err(|_| NOT_FOUND)?)
    };
    device nvmlDeviceGetMinorNumber: (minor: Out<c_uint>) |unit| {
        unit.whole()?;
        minor.set(unit.gpu.minor)
    };
    device nvmlDeviceGetSerial: (serial: Text, length: c_uint) |unit|
        serial.set(length, &unit.gpu.serial);
    device nvmlDeviceGetBrand: (brand: Out<c_uint>) |unit| brand.set(unit.model.brand);
    device nvmlDeviceGetArchitecture: (architecture: Out<c_uint>) |unit|
        architecture.set(unit.model.architecture);
    device nvmlDeviceGetVbiosVersion: (version: Text, length: c_uint) |_unit|
        version.set(length, "92.00.45.00.03");
    device nvmlDeviceGetBoardId: (board: Out<c_uint>) |unit| board.set(unit.gpu.minor);
    device nvmlDeviceGetMultiGpuBoard: (multiple: Out<c_uint>) |_unit| multiple.set(0);
    device nvmlDeviceGetComputeMode: (mode: Out<c_uint>) |_unit| mode.set(0);
    device nvmlDeviceGetVirtualizationMode: (mode: Out<c_uint>) |_unit| mode.set(0);
    device nvmlDeviceGetCudaComputeCapability: (major: Out<c_int>, minor: Out<c_int>) |unit| {
        major.set(unit.model.compute_capability.0)?;
        minor.set(unit.model.compute_capability.1)
    };
    device nvmlDeviceGetPciInfo_v3: (info: Out<nvmlPciInfo_t>) |unit| {
        unit.whole()?;
        info.set(pci(unit.gpu.pci, unit.model))
    };
    device nvmlDeviceGetPciInfo_v2, nvmlDeviceGetPciInfo: (info: Out<ShortPci>) |unit| {
        unit.whole()?;
        info.set(short(&pci(unit.gpu.pci, unit.model)))
    };
    device nvmlDeviceGetPciInfoExt: (info: Out<nvmlPciInfoExt_v1_t>) |unit| {
        info.check(1)?;
        unit.whole()?;
        info.set(extended(&pci(unit.gpu.pci, unit.model)))
    };
    // The node that a card's own memory forms; only coherent platforms have such, none of ours.
    device nvmlDeviceGetNumaNodeId: (_node: Out<c_uint>) |_unit| Err(NOT_SUPPORTED);
    device nvmlDeviceGetMemoryAffinity: (words: c_uint, set: Out<c_ulong>, _scope: c_uint) |unit| {
        let node = unit.gpu.numa.ok_or(NOT_SUPPORTED)?;
        fill(words, &set, std::iter::once(node))
    };
    device nvmlDeviceGetCpuAffinity: (words: c_uint, set: Out<c_ulong>) |unit|
        fill(words, &set, cpus(unit));
    device nvmlDeviceGetCpuAffinityWithinScope: (words: c_uint, set: Out<c_ulong>, _scope: c_uint) |unit| fill(words, &set, cpus(unit));
}

/// Gives the handle of a device, and holds its card's file open.
fn open(name: &str, out: &Out<Handle>, find: impl Fn(&State) -> Answer<Place>) -> Answer {
    call::on(name, find, |unit| out.set(handle(unit)))
}

/// The handle of a device.
pub(super) fn handle(unit: &Unit<'_>) -> Handle {
    session::with(|session| {
        let card = session.card(unit.gpu);
        unit.mig.map_or(card, |(_, mig, _)| {
            session.handle(session::Key::Device(mig.uuid.clone()))
        })
    })
}

fn at(state: &State, is: impl FnMut(&crate::state::Gpu) -> bool) -> Answer<Place> {
    let position = state.gpus.iter().position(is).ok_or(NOT_FOUND)?;
    Ok((position, None))
}

/// What NVML says about a card's PCI function.
fn pci(address: PciAddress, model: &Model) -> nvmlPciInfo_t {
    let hex = |text: &str| c_uint::from_str_radix(text, 16).unwrap_or(0);
    let (vendor, device) = model.subsystem.split_once(':').unwrap_or(("0", "0"));
    let mut info = bare(address);
    info.pciDeviceId = hex(&model.device_id) << 16 | 0x10de;
    info.pciSubSystemId = hex(device) << 16 | hex(vendor) & 0xffff;
    info
}

/// What NVML says about a PCI function of which it knows the address only.
pub(super) fn bare(address: PciAddress) -> nvmlPciInfo_t {
    let text = address.to_string();
    let mut parts = text.split([':', '.']);
    let mut part = || {
        parts
            .next()
            .and_then(|p| c_uint::from_str_radix(p, 16).ok())
    };
    let (domain, bus, device) = (part(), part(), part());
    nvmlPciInfo_t {
        busIdLegacy: chars(&text.to_uppercase()),
        domain: domain.unwrap_or(0),
        bus: bus.unwrap_or(0),
        device: device.unwrap_or(0),
        pciDeviceId: 0,
        pciSubSystemId: 0,
        busId: chars(&address.long()),
    }
}

/// The part of a PCI info that the older versions have.
pub(super) fn short(info: &nvmlPciInfo_t) -> ShortPci {
    ShortPci {
        bus_id: info.busIdLegacy,
        domain: info.domain,
        bus: info.bus,
        device: info.device,
        device_id: info.pciDeviceId,
        subsystem_id: info.pciSubSystemId,
    }
}

fn extended(info: &nvmlPciInfo_t) -> nvmlPciInfoExt_v1_t {
    nvmlPciInfoExt_v1_t {
        version: mark_of::<nvmlPciInfoExt_v1_t>(1),
        domain: info.domain,
        bus: info.bus,
        device: info.device,
        pciDeviceId: info.pciDeviceId,
        pciSubSystemId: info.pciSubSystemId,
        baseClass: 3,
        subClass: 2,
        busId: info.busId,
    }
}

/// The CPUs near a card.
fn cpus(unit: &Unit<'_>) -> impl Iterator<Item = c_uint> + use<> {
    let list = unit.state.cpus(unit.gpu.numa);
    let ranges: Vec<_> = list.split(',').filter_map(range).collect();
    ranges.into_iter().flatten()
}

fn range(text: &str) -> Option<std::ops::RangeInclusive<c_uint>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (
        first.trim().parse().ok()?,
        last.trim().parse::<c_uint>().ok()?,
    );
    // A hand-written state may name any number; there are no machines with more CPUs than this.
    (last < 1 << 20).then_some(first..=last)
}

/// Sets the bits of a mask as wide as the caller has room for.
fn fill(words: c_uint, set: &Out<c_ulong>, bits: impl Iterator<Item = c_uint>) -> Answer {
    let words = usize::try_from(words)
        .map_err(|_| INVALID_ARGUMENT)?
        .min(1 << 15);
    let mut mask: Vec<c_ulong> = vec![0; words];
    for bit in bits {
        let (word, bit) = ((bit / c_ulong::BITS) as usize, bit % c_ulong::BITS);
        if let Some(word) = mask.get_mut(word) {
            *word |= 1 << bit;
        }
    }
    set.set_all(&mask)
}
