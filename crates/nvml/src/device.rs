//! Handle of a card or MIG device, and the facts that identify it.

use std::{
    ffi::{c_char, c_int, c_uint},
    fmt,
};

use model::{CardRef, PciAddress};
use nvml_wrapper_sys::bindings::{self as sys, nvmlDevice_t, nvmlReturn_t};

use crate::{
    Error, NvmlSession,
    sensor::struct_version,
    symbol::{self, GetAt, GetText, GetTwo, GetValue, Symbol},
    text,
};

/// Handle of a card or MIG device. Handles become invalid when the card is reset or its MIG devices
/// change: open a new one for each survey.
#[derive(Clone, Copy)]
pub struct DeviceHandle<'s> {
    session: &'s NvmlSession,
    raw: nvmlDevice_t,
    at: CardRef,
}

// === impl DeviceHandle ===

impl<'s> DeviceHandle<'s> {
    pub(crate) fn new(session: &'s NvmlSession, raw: nvmlDevice_t, at: CardRef) -> Self {
        Self { session, raw, at }
    }

    /// Returns the card by which the handle was opened; for a MIG device the card that it is a part
    /// of.
    pub fn handle_card(&self) -> CardRef {
        self.at
    }

    /// Reads the UUID: `GPU-…` or `MIG-…`.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_uuid(&self) -> Result<String, Error> {
        self.read_device_text(&symbol::UUID)
    }

    /// Reads the product name.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_name(&self) -> Result<String, Error> {
        self.read_device_text(&symbol::NAME)
    }

    /// Reads the driver's index of the card.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn index(&self) -> Result<u32, Error> {
        self.read_value(&symbol::INDEX, 0)
    }

    /// Reads the minor number of the device node.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_minor(&self) -> Result<u32, Error> {
        self.read_value(&symbol::MINOR, 0)
    }

    /// Returns true if a display is attached.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn has_display(&self) -> Result<bool, Error> {
        self.read_value(&symbol::DISPLAY_MODE, 0)
            .map(|mode| mode != 0)
    }

    /// Returns true if card and processor share one address space in hardware (ATS), as on Grace.
    /// Returns false if the driver does not support the call: such a driver supports no card with
    /// ATS.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn is_coherent(&self) -> Result<bool, Error> {
        let empty = sys::nvmlDeviceAddressingMode_t {
            version: struct_version::<sys::nvmlDeviceAddressingMode_t>(1),
            value: 0,
        };
        let ats = sys::nvmlDeviceAddressingModeType_t_NVML_DEVICE_ADDRESSING_MODE_ATS;
        match self.read_value(&symbol::ADDRESSING_MODE, empty) {
            Ok(mode) => Ok(mode.value == ats),
            Err(error) if error.is_not_supported() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the PCI address; `NotSupported` if the driver's numbers are not a valid address.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn read_pci_address(&self) -> Result<Option<PciAddress>, Error> {
        self.read_value(&symbol::PCI_INFO, EMPTY_PCI).map(address)
    }

    /// Reads the CUDA compute capability, as major and minor.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn compute_capability(&self) -> Result<(i32, i32), Error> {
        self.get_two::<c_int>(&symbol::COMPUTE_CAPABILITY)
    }

    /// Reads one value. `value` is the empty structure that the driver fills.
    pub(crate) fn read_value<T>(
        &self,
        symbol: &Symbol<GetValue<T>>,
        mut value: T,
    ) -> Result<T, Error> {
        self.make_call(symbol, |get| {
            // SAFETY: the handle is the driver's, the pointer is valid for one `T`.
            unsafe { get(self.raw, &raw mut value) }
        })?;
        Ok(value)
    }

    /// Reads one value of the part number `at`. `value` is the empty structure that the driver
    /// fills.
    pub(crate) fn get_at<T>(
        &self,
        symbol: &Symbol<GetAt<T>>,
        at: c_uint,
        mut value: T,
    ) -> Result<T, Error> {
        self.make_call(symbol, |get| {
            // SAFETY: the handle is the driver's, the pointer is valid for one `T`.
            unsafe { get(self.raw, at, &raw mut value) }
        })?;
        Ok(value)
    }

    /// Reads two values.
    pub(crate) fn get_two<T: Default>(&self, symbol: &Symbol<GetTwo<T>>) -> Result<(T, T), Error> {
        let (mut first, mut second) = (T::default(), T::default());
        self.make_call(symbol, |get| {
            // SAFETY: the handle is the driver's, both pointers are valid for one `T`.
            unsafe { get(self.raw, &raw mut first, &raw mut second) }
        })?;
        Ok((first, second))
    }

    /// Makes a foreign call that is recorded for this card.
    pub(crate) fn make_call<F: Copy>(
        &self,
        symbol: &Symbol<F>,
        invoke: impl FnOnce(F) -> nvmlReturn_t,
    ) -> Result<(), Error> {
        self.session.make_call(symbol, Some(self.at), invoke)
    }

    pub(crate) fn nvml_session(&self) -> &'s NvmlSession {
        self.session
    }

    pub(crate) fn raw_handle(&self) -> nvmlDevice_t {
        self.raw
    }

    pub(crate) fn read_device_text(&self, symbol: &Symbol<GetText>) -> Result<String, Error> {
        // UUIDs and names have at most 96 bytes (NVML_DEVICE_UUID_V2_BUFFER_SIZE). The last byte of
        // the buffer is never written, so the text always ends with NUL.
        let mut buffer: [c_char; 97] = [0; 97];
        self.make_call(symbol, |get| {
            // SAFETY: the handle is the driver's, the buffer is longer than the length passed.
            unsafe { get(self.raw, buffer.as_mut_ptr(), 96) }
        })?;
        Ok(text::from_buffer(&buffer))
    }
}

impl fmt::Debug for DeviceHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.at).finish()
    }
}

/// Empty structure for an answer about a PCI address.
pub(crate) const EMPTY_PCI: sys::nvmlPciInfo_t = sys::nvmlPciInfo_t {
    busIdLegacy: [0; 16],
    domain: 0,
    bus: 0,
    device: 0,
    pciDeviceId: 0,
    pciSubSystemId: 0,
    busId: [0; 32],
};

/// Converts the driver's answer into a PCI address; `NotSupported` if a number is out of range.
// The numbers are read and not the text `busId`: only the numbers are at the same offset in every
// version of the structure. It has no function number: a card is always function 0.
pub(crate) fn address(info: sys::nvmlPciInfo_t) -> Option<PciAddress> {
    let bus = u8::try_from(info.bus).ok()?;
    let device = u8::try_from(info.device).ok()?;
    PciAddress::new(info.domain, bus, device, 0)
}
