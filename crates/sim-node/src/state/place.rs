//! Positions of devices in the state.

use super::{Gpu, MigDevice, NodeState};

/// Position of a device: index of the card, and of the MIG device on it.
pub type DevicePlace = (usize, Option<usize>);

/// Finds the card or MIG device with this UUID.
pub fn by_uuid(state: &NodeState, uuid: &str) -> Option<DevicePlace> {
    let named = |gpu: &Gpu| gpu.uuid == uuid;
    if let Some(gpu) = state.gpus.iter().position(named) {
        return Some((gpu, None));
    }
    state.gpus.iter().enumerate().find_map(|(index, gpu)| {
        let mig = gpu
            .migs
            .iter()
            .position(|mig: &MigDevice| mig.uuid == uuid)?;
        Some((index, Some(mig)))
    })
}
