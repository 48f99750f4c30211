//! Capture of the MIG profiles and the MIG devices of a card.

use nvml::{DeviceHandle, ReturnCode};
use sim::state::{GpuModel, MigProfile};

use super::Capture;

/// MIG device of a card.
#[derive(Debug)]
pub(super) struct CapturedMig {
    /// GPU instance profile and placement, in the form of profile files: `1c.3g.20gb@4`.
    pub(super) name: String,
    pub(super) uuid: String,
}

impl Capture<'_> {
    /// Reads the MIG profiles of a card with this memory; none if the card does not support MIG.
    pub(super) fn capture_mig_profiles(
        &mut self,
        device: DeviceHandle<'_>,
        memory_mib: u64,
    ) -> Vec<MigProfile> {
        if device.mig_enabled().is_err() {
            return Vec::new();
        }
        let shapes = (0..DeviceHandle::SHAPES).filter_map(|number| {
            let shape = device.read_instance_shape(number).ok()?;
            let [copy, decoders, jpeg, ofa] = shape.engines;
            let places = device.list_placements(shape.id).unwrap_or_default();
            // Without a placement, the memory of the profile in eighths of the card's tells the size.
            let share = (shape.memory_mib * 8).div_ceil(memory_mib.max(1));
            let share = u32::try_from(share).unwrap_or(8);
            Some(MigProfile {
                name: shape.name,
                profile: number,
                id: shape.id,
                slices: shape.slices,
                memory_slices: places.first().map_or(share, |place| place.size),
                memory_mib: shape.memory_mib,
                multiprocessors: shape.multiprocessors,
                count: shape.count,
                copy,
                decoders,
                jpeg,
                ofa,
            })
        });
        shapes.collect()
    }

    /// Reads the MIG devices of a card; `None` if MIG mode is off.
    pub(super) fn capture_migs(
        &mut self,
        device: DeviceHandle<'_>,
        model: &GpuModel,
    ) -> Option<Vec<CapturedMig>> {
        if !device.mig_enabled().unwrap_or(false) {
            return None;
        }
        let mut found = Vec::new();
        for place in 0..device.mig_places().unwrap_or(0) {
            match device.mig_device(place) {
                Ok(part) => match capture_mig(device, part, model) {
                    Ok(mig) => found.push(mig),
                    Err(error) => {
                        let at = device.handle_card();
                        let line = format!("MIG device {place} of card {at} is left out: {error}");
                        self.notes.add_note(&line);
                    }
                },
                // NVML numbers all possible MIG devices of a card; an index may have none.
                Err(error) if error.return_code() == Some(ReturnCode::NOT_FOUND) => {}
                Err(error) => {
                    let at = device.handle_card();
                    self.notes
                        .add_note(&format!("MIG devices of card {at} are left out: {error}"));
                    break;
                }
            }
        }
        found.sort_by_key(|(ids, _)| *ids);
        Some(found.into_iter().map(|(_, mig)| mig).collect())
    }
}

/// Reads a MIG device, with the ids of its GPU instance and its compute instance.
fn capture_mig(
    card: DeviceHandle<'_>,
    part: DeviceHandle<'_>,
    model: &GpuModel,
) -> Result<((u32, u32), CapturedMig), nvml::Error> {
    let (gi, ci) = (part.gpu_instance()?, part.compute_instance()?);
    let size = part.read_mig_attributes()?;
    let (id, place) = card.gpu_instance_place(gi)?;
    let shape = model.mig.iter().find(|shape| shape.id == id);
    let shape = shape.map_or("unknown", |shape| shape.name.as_str());
    let compute = if size.compute_slices == size.gpu_slices {
        String::new()
    } else {
        format!("{}c.", size.compute_slices)
    };
    let name = format!("{compute}{shape}@{}", place.start);
    let uuid = part.read_uuid()?;
    Ok(((gi, ci), CapturedMig { name, uuid }))
}
