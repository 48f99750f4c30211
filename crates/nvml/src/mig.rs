//! MIG: cards that are cut into devices.

use std::ptr;

use nvml_wrapper_sys::bindings as sys;

use crate::{Device, Error, symbol};

/// The size of a MIG device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Slices of the card that its GPU instance has.
    pub gpu_slices: u32,
    /// Slices of the GPU instance that it has.
    pub compute_slices: u32,
    /// Its memory in MiB.
    pub memory_mib: u64,
}

impl<'s> Device<'s> {
    /// The most MIG devices any card can have; what the driver says is cut down to this.
    pub const MIG_DEVICES: u32 = 64;

    /// Whether the card is cut into MIG devices now; what its next reset brings is not told.
    ///
    /// # Errors
    /// What the driver answers; `NOT_SUPPORTED` where the card cannot be cut.
    pub fn mig_enabled(&self) -> Result<bool, Error> {
        let (current, _pending) = self.get_two(&symbol::MIG_MODE)?;
        Ok(current == sys::NVML_DEVICE_MIG_ENABLE)
    }

    /// How many places for MIG devices the card has; places may be empty.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn mig_places(&self) -> Result<u32, Error> {
        let places = self.get(&symbol::MIG_MAX, 0)?;
        Ok(places.min(Self::MIG_DEVICES))
    }

    /// The MIG device at a place.
    ///
    /// # Errors
    /// What the driver answers; `NOT_FOUND` where the place is empty.
    pub fn mig_device(&self, place: u32) -> Result<Self, Error> {
        let raw = self.get_at(&symbol::MIG_BY_INDEX, place, ptr::null_mut())?;
        Ok(Self::new(self.session(), raw, self.at()))
    }

    /// The number of the GPU instance of a MIG device.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn gpu_instance(&self) -> Result<u32, Error> {
        self.get(&symbol::GPU_INSTANCE_ID, 0)
    }

    /// The number of the compute instance of a MIG device.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn compute_instance(&self) -> Result<u32, Error> {
        self.get(&symbol::COMPUTE_INSTANCE_ID, 0)
    }

    /// The size of a MIG device.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn attributes(&self) -> Result<Attributes, Error> {
        let empty = sys::nvmlDeviceAttributes_t {
            multiprocessorCount: 0,
            sharedCopyEngineCount: 0,
            sharedDecoderCount: 0,
            sharedEncoderCount: 0,
            sharedJpegCount: 0,
            sharedOfaCount: 0,
            gpuInstanceSliceCount: 0,
            computeInstanceSliceCount: 0,
            memorySizeMB: 0,
        };
        let found = self.get(&symbol::ATTRIBUTES, empty)?;
        Ok(Attributes {
            gpu_slices: found.gpuInstanceSliceCount,
            compute_slices: found.computeInstanceSliceCount,
            memory_mib: found.memorySizeMB,
        })
    }

    /// The id of the profile of one of the card's GPU instances.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn gpu_instance_profile_id(&self, instance: u32) -> Result<u32, Error> {
        self.gpu_instance_info(instance).map(|info| info.profileId)
    }

    /// What the driver says of one of the card's GPU instances.
    pub(crate) fn gpu_instance_info(
        &self,
        instance: u32,
    ) -> Result<sys::nvmlGpuInstanceInfo_t, Error> {
        let handle = self.get_at(&symbol::GPU_INSTANCE_BY_ID, instance, ptr::null_mut())?;
        let mut info = sys::nvmlGpuInstanceInfo_t {
            device: ptr::null_mut(),
            id: 0,
            profileId: 0,
            placement: sys::nvmlGpuInstancePlacement_t { start: 0, size: 0 },
        };
        self.call(&symbol::GPU_INSTANCE_INFO, |get| {
            // SAFETY: the handle is the driver's, the pointer is valid for one info.
            unsafe { get(handle, &raw mut info) }
        })?;
        Ok(info)
    }
}
