//! The shapes that a card can be cut into, and the MIG devices that it has.

use nvml::{Code, Device};
use sim::state::{MigProfile, Model};

use super::Capture;

/// A MIG device.
#[derive(Debug)]
pub(super) struct Mig {
    /// Its profile and its place, as a profile file has them.
    pub(super) name: String,
    pub(super) uuid: String,
}

impl Capture<'_> {
    /// The shapes of a card with so much memory; none where it cannot be cut.
    pub(super) fn shapes(&mut self, device: Device<'_>, memory_mib: u64) -> Vec<MigProfile> {
        if device.mig_enabled().is_err() {
            return Vec::new();
        }
        let shapes = (0..Device::SHAPES).filter_map(|number| {
            let shape = device.shape(number).ok()?;
            let [copy, decoders, jpeg, ofa] = shape.engines;
            let places = device.places(shape.id).unwrap_or_default();
            // Without a place, the share of the memory tells.
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

    /// The MIG devices of a card; `None` where MIG mode is off.
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

/// A MIG device with its instance ids.
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
