//! Facts of a board: firmware versions, part number, cores, bus.

use std::ffi::{c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlDeviceAddressingMode_v1_t, nvmlDeviceCapabilities_v1_t, nvmlPdi_v1_t,
};

use super::{
    call::CalledDevice,
    code::{INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlResult},
    nvml,
    topology::peer,
    wire::{Handle, Out, TextOut, mark_of},
};

/// VBIOS version of boards that have none in the state.
const VBIOS: &str = "92.00.45.00.03";
/// Room that NVML's contract requires where the function takes no length.
const FIRMWARE_LENGTH: c_uint = 64;
/// First architecture with a GPU system processor (GSP): Turing.
const SYSTEM_PROCESSOR: u32 = 6;
/// First architecture with an id in each die: Hopper.
const DIE_IDS: u32 = 9;

nvml! {
    device nvmlDeviceGetVbiosVersion: (version: TextOut, length: c_uint) |unit|
        version.set(length, unit.model.board.vbios.as_deref().unwrap_or(VBIOS));
    device nvmlDeviceGetBoardPartNumber: (number: TextOut, length: c_uint) |unit| {
        unit.require_card()?;
        number.set(length, unit.model.board.part_number.as_deref().ok_or(NOT_SUPPORTED)?)
    };
    device nvmlDeviceGetInforomImageVersion: (version: TextOut, length: c_uint) |unit|
        version.set(length, inforom(unit)?);
    device nvmlDeviceGetInforomVersion: (object: c_uint, version: TextOut, length: c_uint) |unit| {
        inforom(unit)?;
        match object {
            0 => version.set(length, "2.0"),
            1 if unit.model.ecc => version.set(length, "6.16"),
            1..=3 => Err(NOT_SUPPORTED),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    device nvmlDeviceGetInforomConfigurationChecksum: (checksum: Out<c_uint>) |unit| {
        let text = inforom(unit)?;
        checksum.set(text.bytes().fold(0, |sum, byte| sum << 1 ^ c_uint::from(byte)))
    };
    device nvmlDeviceValidateInforom: () |unit| inforom(unit).map(|_| ());
    device nvmlDeviceGetBoardId: (board: Out<c_uint>) |unit| board.set(board_id(unit));
    device nvmlDeviceGetMultiGpuBoard: (multiple: Out<c_uint>) |_unit| multiple.set(0);
    device nvmlDeviceOnSameBoard: (other: Handle, same: Out<c_int>) |unit| {
        let peer = peer(unit, other)?;
        same.set(c_int::from(peer.uuid == unit.gpu.uuid))
    };
    device nvmlDeviceGetModuleId: (id: Out<c_uint>) |unit| {
        unit.require_card()?;
        // Only boards on a carrier with NVLink (SXM) have a module number.
        (unit.model.nvlink_version > 0).then_some(()).ok_or(NOT_SUPPORTED)?;
        id.set(unit.gpu.minor.saturating_add(1))
    };
    device nvmlDeviceGetIrqNum: (irq: Out<c_uint>) |unit| {
        unit.require_card()?;
        irq.set(130_u32.saturating_add(unit.gpu.minor))
    };
    device nvmlDeviceGetBusType: (bus: Out<c_uint>) |unit| {
        unit.require_card()?;
        bus.set(2)
    };
    device nvmlDeviceGetMemoryBusWidth: (width: Out<c_uint>) |unit| {
        unit.require_card()?;
        width.set(unit.model.board.bus_width.ok_or(NOT_SUPPORTED)?)
    };
    device nvmlDeviceGetNumGpuCores: (cores: Out<c_uint>) |unit| {
        unit.require_card()?;
        cores.set(unit.model.board.cores.unwrap_or_else(|| cores_of(unit)))
    };
    device nvmlDeviceGetGspFirmwareMode: (enabled: Out<c_uint>, default: Out<c_uint>) |unit| {
        system_processor(unit)?;
        enabled.set(1)?;
        default.set(1)
    };
    device nvmlDeviceGetGspFirmwareVersion: (version: TextOut) |unit| {
        system_processor(unit)?;
        version.set(FIRMWARE_LENGTH, &unit.state.driver.version)
    };
    device nvmlDeviceGetPowerSource: (source: Out<c_uint>) |unit| {
        unit.require_card()?;
        source.set(0)
    };
    device nvmlDeviceGetAddressingMode: (mode: Out<nvmlDeviceAddressingMode_v1_t>) |unit| {
        mode.check_version(1)?;
        unit.require_card()?;
        // 0 is none; 2 is for platforms where processor and card share one address space.
        let value = if unit.gpu.memory_numa.is_some() { 2 } else { 0 };
        mode.set(nvmlDeviceAddressingMode_v1_t { version: mark_of::<nvmlDeviceAddressingMode_v1_t>(1), value })
    };
    device nvmlDeviceGetCapabilities: (capabilities: Out<nvmlDeviceCapabilities_v1_t>) |unit| {
        capabilities.check_version(1)?;
        unit.require_card()?;
        capabilities.set(nvmlDeviceCapabilities_v1_t { version: mark_of::<nvmlDeviceCapabilities_v1_t>(1), capMask: 0 })
    };
    device nvmlDeviceGetPdi: (id: Out<nvmlPdi_v1_t>) |unit| {
        id.check_version(1)?;
        unit.require_card()?;
        (unit.model.architecture >= DIE_IDS).then_some(()).ok_or(NOT_SUPPORTED)?;
        let serial = unit.gpu.serial.parse::<c_ulonglong>().map_err(|_| NOT_FOUND)?;
        id.set(nvmlPdi_v1_t { version: mark_of::<nvmlPdi_v1_t>(1), value: 0x5a00_0000_0000_0000 | serial })
    };
}

/// Id of a board, from its PCI bus. Every board has one card.
fn board_id(unit: &CalledDevice<'_>) -> c_uint {
    let text = unit.gpu.pci.to_string();
    let bus = text.split(':').nth(1).unwrap_or_default();
    c_uint::from_str_radix(bus, 16).unwrap_or(0) << 8
}

fn inforom<'a>(unit: &CalledDevice<'a>) -> NvmlResult<&'a str> {
    unit.require_card()?;
    unit.model.board.inforom.as_deref().ok_or(NOT_SUPPORTED)
}

fn system_processor(unit: &CalledDevice<'_>) -> NvmlResult {
    unit.require_card()?;
    let able = unit.model.architecture >= SYSTEM_PROCESSOR;
    able.then_some(()).ok_or(NOT_SUPPORTED)
}

/// CUDA cores: multiprocessors times the cores per multiprocessor of the compute capability.
fn cores_of(unit: &CalledDevice<'_>) -> c_uint {
    let each = match unit.model.compute_capability {
        (..=6, _) | (8, 6..) | (9.., _) => 128,
        _ => 64,
    };
    unit.model.multiprocessors.saturating_mul(each)
}
