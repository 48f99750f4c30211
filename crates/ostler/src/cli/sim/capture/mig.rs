//! Capture of the MIG profiles and the MIG devices of a card.

use nvml::{Code, Device};
use sim::state::{MigProfile, Model};

use super::Capture;

/// MIG device of a card.
#[derive(Debug)]
pub(super) struct Mig {
    /// GPU instance profile and placement, in the form of profile files: `1c.3g.20gb@4`.
    pub(super) name: String,
    pub(super) uuid: String,
}

impl Capture<'_> {
    /// Reads the MIG profiles of a card with this memory; none if the card does not support MIG.
    pub(super) fn shapes(&mut self, device: Device<'_>, memory_mib: u64) -> Vec<MigProfile> {
        if device.mig_enabled().is_err() {
            return Vec::new();
        }
        let shapes = (0..Device::SHAPES).filter_map(|number| {
            let shape = device.shape(number).ok()?;
            let [copy, decoders, jpeg, ofa] = shape.engines;
            let places = device.places(shape.id).unwrap_or_default();
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
    pub(super) fn migs(&mut self, device: Device<'_>, model: &Model) -> Option<Vec<Mig>> {
        if !device.mig_enabled().unwrap_or(false) {
            return None;
        }
        let mut found = Vec::new();
        for place in 0..device.mig_places().unwrap_or(0) {
            match device.mig_device(place) {
                Ok(part) => match mig(device, part, model) {
                    Ok(mig) => found.push(mig),
                    Err(error) => {
                        let at = device.at();
                        let line = format!("MIG device {place} of card {at} is left out: {error}");
                        self.notes.add(&line);
                    }
                },
                // NVML numbers all possible MIG devices of a card; an index may have none.
                Err(error) if error.code() == Some(Code::NOT_FOUND) => {}
                Err(error) => {
                    let at = device.at();
                    self.notes
                        .add(&format!("MIG devices of card {at} are left out: {error}"));
                    break;
                }
            }
        }
        found.sort_by_key(|(ids, _)| *ids);
        Some(found.into_iter().map(|(_, mig)| mig).collect())
    }
}

/// Reads a MIG device, with the ids of its GPU instance and its compute instance.
fn mig(
    card: Device<'_>,
    part: Device<'_>,
    model: &Model,
) -> Result<((u32, u32), Mig), nvml::Error> {
    let (gi, ci) = (part.gpu_instance()?, part.compute_instance()?);
    let size = part.attributes()?;
    let (id, place) = card.gpu_instance_place(gi)?;
    let shape = model.mig.iter().find(|shape| shape.id == id);
    let shape = shape.map_or("unknown", |shape| shape.name.as_str());
    let compute = if size.compute_slices == size.gpu_slices {
        String::new()
    } else {
        format!("{}c.", size.compute_slices)
    };
    let name = format!("{compute}{shape}@{}", place.start);
    let uuid = part.uuid()?;
    Ok(((gi, ci), Mig { name, uuid }))
}
