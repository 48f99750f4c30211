//! PCIe link of a card.

use std::ffi::c_uint;

use super::{
    call::CalledDevice,
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult},
    memory::to_counter,
    nvml,
    wire::Out,
};

nvml! {
    device nvmlDeviceGetCurrPcieLinkGeneration: (value: Out<c_uint>) |unit| {
        linked(unit)?;
        value.set(to_counter(unit.gpu.sensors.pcie_generation))
    };
    device nvmlDeviceGetCurrPcieLinkWidth: (value: Out<c_uint>) |unit| {
        linked(unit)?;
        value.set(to_counter(unit.gpu.sensors.pcie_width))
    };
    device nvmlDeviceGetMaxPcieLinkGeneration, nvmlDeviceGetGpuMaxPcieLinkGeneration: (value: Out<c_uint>) |unit| {
        linked(unit)?;
        value.set(unit.model.pcie_generation)
    };
    device nvmlDeviceGetMaxPcieLinkWidth: (value: Out<c_uint>) |unit| {
        linked(unit)?;
        value.set(unit.model.board.pcie_width.unwrap_or(16))
    };
    device nvmlDeviceGetPcieLinkMaxSpeed: (value: Out<c_uint>) |unit| {
        linked(unit)?;
        // NVML's numbers for PCIe speeds are those of the generations.
        value.set(unit.model.pcie_generation.min(6))
    };
    device nvmlDeviceGetPcieSpeed: (value: Out<c_uint>) |unit| {
        linked(unit)?;
        value.set(match unit.gpu.sensors.pcie_generation {
            0 => 0,
            1 => 2_500,
            2 => 5_000,
            3 => 8_000,
            4 => 16_000,
            5 => 32_000,
            _ => 64_000,
        })
    };
    device nvmlDeviceGetPcieThroughput: (counter: c_uint, value: Out<c_uint>) |unit| {
        linked(unit)?;
        if counter > 1 {
            return Err(INVALID_ARGUMENT);
        }
        value.set(0)
    };
    device nvmlDeviceGetPcieReplayCounter: (value: Out<c_uint>) |unit| {
        linked(unit)?;
        value.set(to_counter(unit.gpu.sensors.pcie_replays))
    };
}

/// Fails if the card has no PCIe link.
fn linked(unit: &CalledDevice<'_>) -> NvmlResult {
    unit.require_card()?;
    let bus = unit.state.machine.platform.has_bus();
    bus.then_some(()).ok_or(NOT_SUPPORTED)
}
