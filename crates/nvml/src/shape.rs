//! The shapes that a card can be cut into, and where the instances that it has lie.

use std::ptr;

use nvml_wrapper_sys::bindings as sys;

use crate::{Code, Device, Error, sensor::version, symbol, text};

/// The most places that are asked for; a card has eight slices of memory.
const PLACES: u32 = 64;

/// A shape of a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its name, e.g. `1g.5gb`.
    pub name: String,
    /// The id that GPU instances of the card refer to it by.
    pub id: u32,
    /// Compute slices.
    pub slices: u32,
    /// How many fit on the card.
    pub count: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Copy engines, decoders, JPEG engines and optical flow engines.
    pub engines: [u32; 4],
    /// Its memory in MiB.
    pub memory_mib: u64,
}

/// The size of a GPU instance profile, as every driver with MIG tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The id that GPU instances of the card refer to it by.
    pub id: u32,
    /// Compute slices.
    pub slices: u32,
    /// The number of such instances that fit on an empty card.
    pub count: u32,
    /// Memory of one instance in MiB.
    pub memory_mib: u64,
}

/// Where a GPU instance lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Its first slice of memory.
    pub start: u32,
    /// How many slices of memory it has.
    pub size: u32,
}

impl Device<'_> {
    /// One more than the highest number of NVML's list of GPU instance profiles that is worth
    /// asking for.
    pub const SHAPES: u32 = 24;

    /// Reads the card's GPU instance profile with a number of NVML's list, 0 to 17 and counting; `None`
    /// where the card has none of this number. MIG mode may be off. The answer is the same as long as the
    /// mode is.
    ///
    /// # Errors
    /// The driver's answer. `NOT_SUPPORTED` and `INVALID_ARGUMENT` are no errors here.
    pub fn gpu_instance_profile(&self, number: u32) -> Result<Option<Profile>, Error> {
        let empty = sys::nvmlGpuInstanceProfileInfo_t {
            id: 0,
            isP2pSupported: 0,
            sliceCount: 0,
            instanceCount: 0,
            multiprocessorCount: 0,
            copyEngineCount: 0,
            decoderCount: 0,
            encoderCount: 0,
            jpegCount: 0,
            ofaCount: 0,
            memorySizeMB: 0,
        };
        match self.get_at(&symbol::GPU_INSTANCE_PROFILE, number, empty) {
            Ok(found) => Ok(Some(Profile {
                id: found.id,
                slices: found.sliceCount,
                count: found.instanceCount,
                memory_mib: found.memorySizeMB,
            })),
            Err(error) if error.is_not_supported() => Ok(None),
            Err(error) if error.code() == Some(Code::INVALID_ARGUMENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The shape with a number of NVML's list of GPU instance profiles.
    ///
    /// # Errors
    /// What the driver answers; `NOT_SUPPORTED` or `INVALID_ARGUMENT` where the card has none.
    pub fn shape(&self, number: u32) -> Result<Shape, Error> {
        let empty = sys::nvmlGpuInstanceProfileInfo_v2_t {
            version: version::<sys::nvmlGpuInstanceProfileInfo_v2_t>(2),
            id: 0,
            isP2pSupported: 0,
            sliceCount: 0,
            instanceCount: 0,
            multiprocessorCount: 0,
            copyEngineCount: 0,
            decoderCount: 0,
            encoderCount: 0,
            jpegCount: 0,
            ofaCount: 0,
            memorySizeMB: 0,
            name: [0; 96],
        };
        let found = self.get_at(&symbol::GPU_INSTANCE_PROFILE_V2, number, empty)?;
        let name = text::from_buffer(&found.name);
        Ok(Shape {
            name: name.trim_start_matches("MIG ").to_owned(),
            id: found.id,
            slices: found.sliceCount,
            count: found.instanceCount,
            multiprocessors: found.multiprocessorCount,
            engines: [
                found.copyEngineCount,
                found.decoderCount,
                found.jpegCount,
                found.ofaCount,
            ],
            memory_mib: found.memorySizeMB,
        })
    }

    /// Lists the places where a GPU instance of a shape, named by its id, may lie. MIG mode may be off.
    ///
    /// # Errors
    /// The driver's answer; `NO_PERMISSION` where the process is not privileged, and an error for which
    /// [`Error::is_not_supported`] holds where the driver is older than the call.
    pub fn places(&self, shape: u32) -> Result<Vec<Placement>, Error> {
        let empty = sys::nvmlGpuInstancePlacement_t { start: 0, size: 0 };
        let mut places = [empty; PLACES as usize];
        // The driver is asked how many there are before it is given room for them.
        let mut count = 0;
        self.call(&symbol::PLACEMENTS, |get| {
            // SAFETY: the handle is the driver's; NULL asks for the count only.
            unsafe { get(self.raw(), shape, ptr::null_mut(), &raw mut count) }
        })?;
        if count > PLACES {
            return Ok(Vec::new());
        }
        self.call(&symbol::PLACEMENTS, |get| {
            // SAFETY: the handle is the driver's, and there is room for as many as it counted.
            unsafe { get(self.raw(), shape, places.as_mut_ptr(), &raw mut count) }
        })?;
        let count = usize::try_from(count).unwrap_or(0);
        let found = places.iter().take(count);
        let place = |p: &sys::nvmlGpuInstancePlacement_t| Placement {
            start: p.start,
            size: p.size,
        };
        Ok(found.map(place).collect())
    }

    /// Where one of the card's GPU instances lies, and the id of its shape.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn gpu_instance_place(&self, instance: u32) -> Result<(u32, Placement), Error> {
        let info = self.gpu_instance_info(instance)?;
        let (start, size) = (info.placement.start, info.placement.size);
        Ok((info.profileId, Placement { start, size }))
    }
}
