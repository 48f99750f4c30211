//! Finding a device of a node.

use super::{Gpu, Mig, State};

/// The place of a device: the card's position, and the MIG device's on it.
pub type Place = (usize, Option<usize>);

/// The card or MIG device of this UUID.
pub fn by_uuid(state: &State, uuid: &str) -> Option<Place> {
    let named = |gpu: &Gpu| gpu.uuid == uuid;
    if let Some(gpu) = state.gpus.iter().position(named) {
        return Some((gpu, None));
    }
    state.gpus.iter().enumerate().find_map(|(index, gpu)| {
        let mig = gpu.migs.iter().position(|mig: &Mig| mig.uuid == uuid)?;
        Some((index, Some(mig)))
    })
}
