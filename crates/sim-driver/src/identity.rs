//! Device handles and identity.

use std::ffi::{c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings::{nvmlPciInfo_t, nvmlPciInfoExt_v1_t, nvmlUUID_v1_t};
use sim_node::{
    BusId,
    state::{DevicePlace, GpuModel, NodeState, by_uuid},
};

use super::{
    call::{self, CalledDevice},
    code::{INVALID_ARGUMENT, NOT_FOUND, NvmlResult},
    nvml, session,
    wire::{Arg as _, GivenText, Handle, Out, TextOut, chars, mark_of},
};

/// Leading part of a PCI info, which is the structure of older versions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ShortPci {
    bus_id: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
}

/// UUID structure with a text.
#[derive(Clone, Copy)]
#[repr(C)]
struct UuidText {
    _head: [c_uint; 2],
    text: [c_char; 41],
}

/// UUID structure with bytes.
#[derive(Clone, Copy)]
#[repr(C)]
struct UuidBytes {
    _head: [c_uint; 2],
    bytes: [u8; 16],
}

nvml! {
    plain nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetHandleByIndex: (index: c_uint, device: Out<Handle>) |name|
        open_device(name, &device, |state| {
            let place = usize::try_from(index).map_err(|_| INVALID_ARGUMENT)?;
            (place < state.gpus.len()).then_some((place, None)).ok_or(INVALID_ARGUMENT)
        });
    plain nvmlDeviceGetHandleByPciBusId_v2, nvmlDeviceGetHandleByPciBusId: (address: GivenText, device: Out<Handle>) |name|
        open_device(name, &device, |state| {
            let pci: BusId = address.read_text()?.parse().map_err(|_| INVALID_ARGUMENT)?;
            find_card(state, |gpu| gpu.pci == pci)
        });
    plain nvmlDeviceGetHandleByUUID: (uuid: GivenText, device: Out<Handle>) |name|
        open_device(name, &device, |state| by_uuid(state, uuid.read_text()?).ok_or(NOT_FOUND));
    plain nvmlDeviceGetHandleByUUIDV: (uuid: Out<nvmlUUID_v1_t>, device: Out<Handle>) |name|
        open_device(name, &device, |state| by_uuid(state, &uuid_of(&uuid)?).ok_or(NOT_FOUND));
    plain nvmlDeviceGetHandleBySerial: (serial: GivenText, device: Out<Handle>) |name|
        open_device(name, &device, |state| {
            let serial = serial.read_text()?;
            find_card(state, |gpu| gpu.serial == serial)
        });
    device nvmlDeviceGetName: (name: TextOut, length: c_uint) |unit| match unit.mig {
        None => name.set(length, &unit.model.name),
        Some((_, mig, shape)) => {
            name.set(length, &format!("{} MIG {}", unit.model.name, mig.mig_name(shape)))
        }
    };
    device nvmlDeviceGetUUID: (uuid: TextOut, length: c_uint) |unit|
        uuid.set(length, unit.mig.map_or(&unit.gpu.uuid, |(_, mig, _)| &mig.uuid));
    device nvmlDeviceGetIndex: (index: Out<c_uint>) |unit| {
        let position = unit.mig.map_or(unit.index, |(position, _, _)| position);
        index.set(c_uint::try_from(position).map_err(|_| NOT_FOUND)?)
    };
    device nvmlDeviceGetMinorNumber: (minor: Out<c_uint>) |unit| {
        unit.require_card()?;
        minor.set(unit.gpu.minor)
    };
    device nvmlDeviceGetSerial: (serial: TextOut, length: c_uint) |unit|
        serial.set(length, &unit.gpu.serial);
    device nvmlDeviceGetBrand: (brand: Out<c_uint>) |unit| brand.set(unit.model.brand);
    device nvmlDeviceGetArchitecture: (architecture: Out<c_uint>) |unit|
        architecture.set(unit.model.architecture);
    device nvmlDeviceGetCudaComputeCapability: (major: Out<c_int>, minor: Out<c_int>) |unit| {
        major.set(unit.model.compute_capability.0)?;
        minor.set(unit.model.compute_capability.1)
    };
    device nvmlDeviceGetPciInfo_v3: (info: Out<nvmlPciInfo_t>) |unit| {
        unit.require_card()?;
        info.set(pci_info(unit.gpu.pci, unit.model))
    };
    device nvmlDeviceGetPciInfo_v2, nvmlDeviceGetPciInfo: (info: Out<ShortPci>) |unit| {
        unit.require_card()?;
        info.set(short_pci_info(&pci_info(unit.gpu.pci, unit.model)))
    };
    device nvmlDeviceGetPciInfoExt: (info: Out<nvmlPciInfoExt_v1_t>) |unit| {
        info.check_version(1)?;
        unit.require_card()?;
        info.set(extended(&pci_info(unit.gpu.pci, unit.model), &unit.model.class))
    };
}

/// Looks up a device, opens its card's device node as the real driver does, and returns the handle.
fn open_device(
    name: &str,
    out: &Out<Handle>,
    find: impl Fn(&NodeState) -> NvmlResult<DevicePlace>,
) -> NvmlResult {
    let find = |state: &NodeState| {
        out.present()?;
        find(state)
    };
    call::call_device(name, &find, |unit| out.set(device_handle(unit)))
}

/// UUID in a structure: as text, or as the bytes of a card's UUID.
fn uuid_of(uuid: &Out<nvmlUUID_v1_t>) -> NvmlResult<String> {
    uuid.check_version(1)?;
    match uuid.get()?.type_ {
        1 => Ok(read_chars(&uuid.cast::<UuidText>().get()?.text)),
        2 => {
            let bytes = uuid.cast::<UuidBytes>().get()?.bytes;
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let parts = [
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..],
            ];
            Ok(format!("GPU-{}", parts.join("-")))
        }
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Text of a C array, up to the first NUL or the end.
fn read_chars(array: &[c_char]) -> String {
    let bytes = array.iter().map(|c| c.to_ne_bytes()[0]);
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Handle of a device.
pub(super) fn device_handle(unit: &CalledDevice<'_>) -> Handle {
    session::with_session(|session| {
        let card = session.open_card(unit.gpu);
        unit.mig.map_or(card, |(_, mig, _)| {
            session.handle_of(session::HandleKey::Device(mig.uuid.clone()))
        })
    })
}

fn find_card(
    state: &NodeState,
    is: impl FnMut(&sim_node::state::Gpu) -> bool,
) -> NvmlResult<DevicePlace> {
    let position = state.gpus.iter().position(is).ok_or(NOT_FOUND)?;
    Ok((position, None))
}

/// PCI info of a card.
fn pci_info(address: BusId, model: &GpuModel) -> nvmlPciInfo_t {
    let hex = |text: &str| c_uint::from_str_radix(text, 16).unwrap_or(0);
    let (vendor, device) = model.subsystem.split_once(':').unwrap_or(("0", "0"));
    let mut info = bare(address);
    info.pciDeviceId = hex(&model.device_id) << 16 | 0x10de;
    info.pciSubSystemId = hex(device) << 16 | hex(vendor) & 0xffff;
    info
}

/// PCI info of a function of which only the address is known.
pub(super) fn bare(address: BusId) -> nvmlPciInfo_t {
    nvmlPciInfo_t {
        busIdLegacy: chars(&address.to_string().to_uppercase()),
        domain: address.domain,
        bus: address.bus.into(),
        device: address.device.into(),
        pciDeviceId: 0,
        pciSubSystemId: 0,
        busId: chars(&address.to_nvml_form()),
    }
}

/// PCI info in the structure of older versions.
pub(super) fn short_pci_info(info: &nvmlPciInfo_t) -> ShortPci {
    ShortPci {
        bus_id: info.busIdLegacy,
        domain: info.domain,
        bus: info.bus,
        device: info.device,
        device_id: info.pciDeviceId,
        subsystem_id: info.pciSubSystemId,
    }
}

fn extended(info: &nvmlPciInfo_t, class: &str) -> nvmlPciInfoExt_v1_t {
    // Base class, subclass and programming interface, eight bits each.
    let class = c_uint::from_str_radix(class, 16).unwrap_or(0x03_02_00);
    nvmlPciInfoExt_v1_t {
        version: mark_of::<nvmlPciInfoExt_v1_t>(1),
        domain: info.domain,
        bus: info.bus,
        device: info.device,
        pciDeviceId: info.pciDeviceId,
        pciSubSystemId: info.pciSubSystemId,
        baseClass: class >> 16 & 0xff,
        subClass: class >> 8 & 0xff,
        busId: info.busId,
    }
}
