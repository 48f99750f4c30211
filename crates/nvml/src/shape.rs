//! GPU instance profiles of a card, with the possible and the present placements.

use std::ptr;

use nvml_wrapper_sys::bindings as sys;

use crate::{DeviceHandle, Error, ReturnCode, sensor::struct_version, symbol, text};

/// Highest number of placements that are read. A card has eight memory slices, so fewer exist.
const PLACES: u32 = 64;

/// GPU instance profile with its name and engines, as newer drivers report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceShape {
    /// Name, e.g. `1g.5gb`.
    pub name: String,
    /// Profile id, as in the driver's description of a GPU instance.
    pub id: u32,
    /// Number of compute slices.
    pub slices: u32,
    /// Highest number of such instances on an empty card.
    pub count: u32,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Numbers of copy engines, decoders, JPEG engines and optical flow engines, in this order.
    pub engines: [u32; 4],
    /// Memory of one instance, in MiB.
    pub memory_mib: u64,
}

/// Size of a GPU instance profile, as every driver with MIG reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceProfile {
    /// Profile id, as in the driver's description of a GPU instance.
    pub id: u32,
    /// Number of compute slices.
    pub slices: u32,
    /// Highest number of such instances on an empty card.
    pub count: u32,
    /// Memory of one instance, in MiB.
    pub memory_mib: u64,
}

/// Placement of a GPU instance on its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstancePlacement {
    /// Number of the first memory slice, counted from 0.
    pub start: u32,
    /// Number of memory slices.
    pub size: u32,
}

impl DeviceHandle<'_> {
    /// Number of GPU instance profiles to ask for: the numbers 0 to 23.
    // `NVML_GPU_INSTANCE_PROFILE_COUNT` was 17 in the header behind nvml-wrapper-sys 0.10, and
    // grows with new cards.
    pub const SHAPES: u32 = 24;

    /// Reads the card's GPU instance profile with a number of NVML's list; `NotSupported` if the card has
    /// no profile of this number. MIG mode may be off. The answer stays the same until the mode
    /// changes.
    ///
    /// # Errors
    /// The driver's answer. `NOT_SUPPORTED` and `INVALID_ARGUMENT` give `NotSupported` instead.
    pub fn gpu_instance_profile(&self, number: u32) -> Result<Option<InstanceProfile>, Error> {
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
            Ok(found) => Ok(Some(InstanceProfile {
                id: found.id,
                slices: found.sliceCount,
                count: found.instanceCount,
                memory_mib: found.memorySizeMB,
            })),
            Err(error) if error.is_not_supported() => Ok(None),
            Err(error) if error.return_code() == Some(ReturnCode::INVALID_ARGUMENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the GPU instance profile with a number of NVML's list, with its name and engines.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` or `INVALID_ARGUMENT` if the card lacks the profile.
    pub fn read_instance_shape(&self, number: u32) -> Result<InstanceShape, Error> {
        let empty = sys::nvmlGpuInstanceProfileInfo_v2_t {
            version: struct_version::<sys::nvmlGpuInstanceProfileInfo_v2_t>(2),
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
        Ok(InstanceShape {
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

    /// Lists the possible placements of a GPU instance with this profile id. MIG mode may be off.
    /// Empty if the driver reports more than 64.
    ///
    /// # Errors
    /// The driver's answer; `NO_PERMISSION` if the process is not privileged. For a driver that is older
    /// than the call, [`Error::is_not_supported`] is true.
    pub fn list_placements(&self, shape: u32) -> Result<Vec<InstancePlacement>, Error> {
        let empty = sys::nvmlGpuInstancePlacement_t { start: 0, size: 0 };
        let mut places = [empty; PLACES as usize];
        // The first call, with a null pointer, only counts.
        let mut count = 0;
        self.make_call(&symbol::PLACEMENTS, |get| {
            // SAFETY: the handle is the driver's; NULL asks for the count only.
            unsafe { get(self.raw_handle(), shape, ptr::null_mut(), &raw mut count) }
        })?;
        if count > PLACES {
            return Ok(Vec::new());
        }
        self.make_call(&symbol::PLACEMENTS, |get| {
            // SAFETY: the handle is the driver's, and there is room for as many as it counted.
            unsafe {
                get(
                    self.raw_handle(),
                    shape,
                    places.as_mut_ptr(),
                    &raw mut count,
                )
            }
        })?;
        let count = usize::try_from(count).unwrap_or(0);
        let found = places.iter().take(count);
        let place = |p: &sys::nvmlGpuInstancePlacement_t| InstancePlacement {
            start: p.start,
            size: p.size,
        };
        Ok(found.map(place).collect())
    }

    /// Reads the profile id and the placement of one of the card's GPU instances.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn gpu_instance_place(&self, instance: u32) -> Result<(u32, InstancePlacement), Error> {
        let info = self.gpu_instance_info(instance)?;
        let (start, size) = (info.placement.start, info.placement.size);
        Ok((info.profileId, InstancePlacement { start, size }))
    }
}
