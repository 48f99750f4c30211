//! MIG devices: partitions of a card.

use std::ptr;

use nvml_wrapper_sys::bindings as sys;

use crate::{DeviceHandle, Error, symbol};

/// Size of a MIG device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigAttributes {
    /// Number of the card's compute slices in the GPU instance.
    pub gpu_slices: u32,
    /// Number of the GPU instance's compute slices in the MIG device.
    pub compute_slices: u32,
    /// Memory, in MiB.
    pub memory_mib: u64,
}

impl<'s> DeviceHandle<'s> {
    /// Upper bound of the number of MIG devices of a card. A higher answer of the driver is reduced
    /// to this.
    pub const MIG_DEVICES: u32 = 64;

    /// Returns true if MIG mode is on now. The pending mode of the next reset is ignored.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` if the card does not support MIG.
    pub fn mig_enabled(&self) -> Result<bool, Error> {
        let (current, _pending) = self.get_two(&symbol::MIG_MODE)?;
        Ok(current == sys::NVML_DEVICE_MIG_ENABLE)
    }

    /// Reads the number of MIG device slots of the card. Slots may be empty.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn mig_places(&self) -> Result<u32, Error> {
        let places = self.read_value(&symbol::MIG_MAX, 0)?;
        Ok(places.min(Self::MIG_DEVICES))
    }

    /// Opens the MIG device in a slot.
    ///
    /// # Errors
    /// The driver's answer; `NOT_FOUND` if the slot is empty.
    pub fn mig_device(&self, place: u32) -> Result<Self, Error> {
        // Some drivers return handles of deleted instances here (NVIDIA/libcudacxx issue 224).
        let raw = self.get_at(&symbol::MIG_BY_INDEX, place, ptr::null_mut())?;
        Ok(Self::new(self.nvml_session(), raw, self.handle_card()))
    }

    /// Reads the GPU instance id of a MIG device.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn gpu_instance(&self) -> Result<u32, Error> {
        self.read_value(&symbol::GPU_INSTANCE_ID, 0)
    }

    /// Reads the compute instance id of a MIG device.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn compute_instance(&self) -> Result<u32, Error> {
        self.read_value(&symbol::COMPUTE_INSTANCE_ID, 0)
    }

    /// Reads the size of a MIG device.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_mig_attributes(&self) -> Result<MigAttributes, Error> {
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
        let found = self.read_value(&symbol::ATTRIBUTES, empty)?;
        Ok(MigAttributes {
            gpu_slices: found.gpuInstanceSliceCount,
            compute_slices: found.computeInstanceSliceCount,
            memory_mib: found.memorySizeMB,
        })
    }

    /// Reads the profile id of one of the card's GPU instances.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn gpu_instance_profile_id(&self, instance: u32) -> Result<u32, Error> {
        self.gpu_instance_info(instance).map(|info| info.profileId)
    }

    /// Reads the driver's description of one of the card's GPU instances.
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
        self.make_call(&symbol::GPU_INSTANCE_INFO, |get| {
            // SAFETY: the handle is the driver's, the pointer is valid for one info.
            unsafe { get(handle, &raw mut info) }
        })?;
        Ok(info)
    }
}
