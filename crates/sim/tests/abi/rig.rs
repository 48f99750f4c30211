//! Test rig: a node with its library loaded.

use std::ffi::{CStr, CString, c_char, c_uint};

use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t, nvmlReturn_t};
use sim::{DeviceTarget, NodeProfile, ScratchNode};

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const UNINITIALIZED: u32 = 1;
pub(crate) const INVALID_ARGUMENT: u32 = 2;
pub(crate) const NOT_SUPPORTED: u32 = 3;
pub(crate) const NOT_FOUND: u32 = 6;
pub(crate) const INSUFFICIENT_SIZE: u32 = 7;
pub(crate) const DRIVER_NOT_LOADED: u32 = 9;
pub(crate) const TIMEOUT: u32 = 10;
pub(crate) const GPU_IS_LOST: u32 = 15;
pub(crate) const VERSION_MISMATCH: u32 = 25;
pub(crate) const UNKNOWN: u32 = 999;

pub(crate) struct Rig {
    pub(crate) lib: NvmlLib,
    pub(crate) node: ScratchNode,
}

/// A call that must succeed.
macro_rules! ok {
    ($call:expr) => {{
        // SAFETY: the pointers are those of live locals of the types that NVML asks for.
        let code = unsafe { $call };
        assert_eq!(code, $crate::rig::SUCCESS, "{}", stringify!($call));
    }};
}

/// Return code of a call.
macro_rules! code {
    ($call:expr) => {{
        // SAFETY: as above.
        unsafe { $call }
    }};
}
pub(crate) use {code, ok};

impl Rig {
    /// Node whose library is loaded and not initialised. The tests of this program run in parallel
    /// in one process, so each node has a library of its own.
    pub(crate) fn cold(profile: &str) -> Self {
        Self::with(&NodeProfile::find_profile(profile).unwrap())
    }

    /// [`Rig::cold`] for any profile.
    pub(crate) fn with(profile: &NodeProfile) -> Self {
        let node = ScratchNode::from_profile(profile).unwrap();
        // SAFETY: the library's initialisers do nothing.
        let lib = unsafe { NvmlLib::new(node.driver_library()) }.unwrap();
        Self { lib, node }
    }

    /// Node whose library is initialised.
    pub(crate) fn new(profile: &str) -> Self {
        let rig = Self::cold(profile);
        ok!(rig.lib.nvmlInit_v2());
        rig
    }

    pub(crate) fn device(&self, index: c_uint) -> nvmlDevice_t {
        let mut device = std::ptr::null_mut();
        ok!(self
            .lib
            .nvmlDeviceGetHandleByIndex_v2(index, &raw mut device));
        device
    }

    pub(crate) fn mig(&self, gpu: c_uint, index: c_uint) -> nvmlDevice_t {
        let (parent, mut device) = (self.device(gpu), std::ptr::null_mut());
        ok!(self
            .lib
            .nvmlDeviceGetMigDeviceHandleByIndex(parent, index, &raw mut device));
        device
    }

    pub(crate) fn by_uuid(&self, uuid: &str) -> (nvmlReturn_t, nvmlDevice_t) {
        let (uuid, mut device) = (CString::new(uuid).unwrap(), std::ptr::null_mut());
        let code = code!(
            self.lib
                .nvmlDeviceGetHandleByUUID(uuid.as_ptr(), &raw mut device)
        );
        (code, device)
    }

    pub(crate) fn by_pci(&self, pci: &str) -> (nvmlReturn_t, nvmlDevice_t) {
        let (pci, mut device) = (CString::new(pci).unwrap(), std::ptr::null_mut());
        let code = code!(
            self.lib
                .nvmlDeviceGetHandleByPciBusId_v2(pci.as_ptr(), &raw mut device)
        );
        (code, device)
    }

    pub(crate) fn uuid(&self, device: nvmlDevice_t) -> String {
        text(|buffer, length| code!(self.lib.nvmlDeviceGetUUID(device, buffer, length))).unwrap()
    }

    pub(crate) fn temperature(&self, device: nvmlDevice_t) -> Result<c_uint, nvmlReturn_t> {
        number(|out| code!(self.lib.nvmlDeviceGetTemperature(device, 0, out)))
    }
}

/// Result of a call that returns a number.
pub(crate) fn number<T: Default>(
    call: impl FnOnce(*mut T) -> nvmlReturn_t,
) -> Result<T, nvmlReturn_t> {
    let mut value = T::default();
    match call(&raw mut value) {
        SUCCESS => Ok(value),
        code => Err(code),
    }
}

/// Result of a call that returns a text.
pub(crate) fn text(
    call: impl FnOnce(*mut c_char, c_uint) -> nvmlReturn_t,
) -> Result<String, nvmlReturn_t> {
    let mut buffer = [0x55; 96];
    match call(buffer.as_mut_ptr(), 96) {
        // SAFETY: the call succeeded, so the buffer holds a C string.
        SUCCESS => Ok(unsafe { CStr::from_ptr(buffer.as_ptr()) }
            .to_str()
            .unwrap()
            .to_owned()),
        code => Err(code),
    }
}

/// Text of an array in a structure.
pub(crate) fn chars(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array.iter().map(|c| c.to_ne_bytes()[0]).collect();
    CStr::from_bytes_until_nul(&bytes)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

pub(crate) fn target(text: &str) -> DeviceTarget {
    text.parse().unwrap()
}

/// NVML's version mark of a structure.
pub(crate) fn mark<T>(version: u32) -> c_uint {
    u32::try_from(size_of::<T>()).unwrap() | version << 24
}
