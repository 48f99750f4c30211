//! The driver's library: loaded, then initialised, and shut down when the session is dropped.

use std::{
    ffi::{CStr, CString, OsStr, c_char, c_int, c_uint},
    fmt,
    mem::ManuallyDrop,
    ptr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use model::{CardRef, PciAddress};
use nvml_wrapper_sys::bindings::{self as sys, nvmlReturn_t};
use probe::{CallGuard, CallTable};

use crate::{
    DeviceHandle, Error, ReturnCode,
    symbol::{self, Symbol},
    text,
};

/// Longest text, in bytes, that is read from a pointer of the driver.
const WORDS_LIMIT: usize = 256;

/// Driver library that is loaded but not initialised.
pub struct NvmlLibrary {
    handle: ManuallyDrop<libloading::Library>,
    calls: Arc<CallTable>,
}

/// Initialised driver library. Dropping the session shuts NVML down and unloads the library.
#[derive(Debug)]
pub struct NvmlSession {
    library: NvmlLibrary,
    opened: SystemTime,
}

// === impl NvmlLibrary ===

impl NvmlLibrary {
    /// Loads a library by its path, or by a name for the loader to find. Every foreign call is
    /// recorded in `calls`.
    ///
    /// # Errors
    /// [`Error::Open`] with the loader's message.
    pub fn open_library(path: impl AsRef<OsStr>, calls: Arc<CallTable>) -> Result<Self, Error> {
        let path = path.as_ref();
        let ticket = calls.begin_call("dlopen", None, CallTable::ALLOWED);
        // SAFETY: loading runs the library's initialisers; the operator named it as the driver's.
        let opened = unsafe { libloading::Library::new(path) };
        drop(ticket);
        let handle = opened.map_err(|error| Error::Open {
            path: path.to_string_lossy().into_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            handle: ManuallyDrop::new(handle),
            calls,
        })
    }

    /// Initialises the driver library.
    ///
    /// # Errors
    /// The driver's answer, with the driver's text for its code.
    pub fn initialize(self) -> Result<NvmlSession, (Error, String)> {
        let started = self.make_call(&symbol::INIT, None, |init| {
            // SAFETY: the call takes no arguments.
            unsafe { init() }
        });
        match started {
            Ok(()) => Ok(NvmlSession {
                library: self,
                opened: SystemTime::now(),
            }),
            Err(error) => {
                let words = error
                    .return_code()
                    .map_or(String::new(), |code| self.describe_code(code));
                Err((error, words))
            }
        }
    }

    /// Makes a foreign call: finds the symbol, records the call, makes it and removes the record.
    /// All foreign calls but `dlopen` and `dlclose` go through here.
    pub(crate) fn make_call<F: Copy>(
        &self,
        symbol: &Symbol<F>,
        device: Option<CardRef>,
        invoke: impl FnOnce(F) -> nvmlReturn_t,
    ) -> Result<(), Error> {
        self.call_within(symbol, device, CallTable::ALLOWED, invoke)
    }

    /// Makes a foreign call that may take longer than usual, up to `allowed`, before it is overdue.
    pub(crate) fn call_within<F: Copy>(
        &self,
        symbol: &Symbol<F>,
        device: Option<CardRef>,
        allowed: Duration,
        invoke: impl FnOnce(F) -> nvmlReturn_t,
    ) -> Result<(), Error> {
        let (function, call) = self.find_symbol(symbol)?;
        let ticket = self.calls.begin_call(call, device, allowed);
        let code = invoke(function);
        drop::<CallGuard<'_>>(ticket);
        ReturnCode::check_return(code).map_err(|code| Error::Failed { call, device, code })
    }

    /// Returns the driver's text for a code; our own description if the driver gives none.
    fn describe_code(&self, code: ReturnCode) -> String {
        let mut words = String::new();
        let asked = self.make_call(&symbol::ERROR_STRING, None, |describe| {
            // SAFETY: the call takes a number and returns a static text or null.
            let said = unsafe { describe(code.raw_code()) };
            words = bounded(said);
            sys::nvmlReturn_enum_NVML_SUCCESS
        });
        if asked.is_err() || words.is_empty() {
            words = code.words().to_owned();
        }
        words
    }

    /// Finds a function under the newest of its names that the library has.
    fn find_symbol<F: Copy>(&self, symbol: &Symbol<F>) -> Result<(F, &'static str), Error> {
        for name in symbol.symbol_names() {
            // SAFETY: a `Symbol` promises that `F` is the signature of all its names.
            if let Ok(function) = unsafe { self.handle.get::<F>(name.to_bytes_with_nul()) } {
                return Ok((*function, printed(name)));
            }
        }
        Err(Error::NoSymbol {
            call: symbol.symbol_names().first().copied().map_or("", printed),
        })
    }
}

// After a driver upgrade the loaded library no longer fits the kernel module, and all calls fail
// (LIB_RM_VERSION_MISMATCH) until it is unloaded; see NVIDIA/k8s-device-plugin issue 1431.
impl Drop for NvmlLibrary {
    fn drop(&mut self) {
        let _ticket = self.calls.begin_call("dlclose", None, CallTable::ALLOWED);
        // SAFETY: the handle is dropped here and nowhere else, and not used again.
        unsafe { ManuallyDrop::drop(&mut self.handle) }
    }
}

impl fmt::Debug for NvmlLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

// === impl NvmlSession ===

impl NvmlSession {
    /// Returns the time at which NVML was initialised.
    pub fn opened_at(&self) -> SystemTime {
        self.opened
    }

    /// Reads the driver's version, e.g. `580.95.05`.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn driver_version(&self) -> Result<String, Error> {
        self.read_version(&symbol::DRIVER_VERSION)
    }

    /// Reads the library's own version, e.g. `13.580.95.05`.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn nvml_version(&self) -> Result<String, Error> {
        self.read_version(&symbol::NVML_VERSION)
    }

    fn read_version(&self, symbol: &Symbol<symbol::GetVersionText>) -> Result<String, Error> {
        let mut buffer: [c_char; 96] = [0; 96];
        let room = sys::NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE;
        self.make_call(symbol, None, |get| {
            // SAFETY: the buffer is longer than the length that is passed.
            unsafe { get(buffer.as_mut_ptr(), room) }
        })?;
        Ok(text::from_buffer(&buffer))
    }

    /// Reads the highest CUDA version that the driver supports, as major and minor.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn cuda_version(&self) -> Result<(i32, i32), Error> {
        let mut version: c_int = 0;
        self.make_call(&symbol::CUDA_VERSION, None, |get| {
            // SAFETY: the pointer is valid for one int.
            unsafe { get(&raw mut version) }
        })?;
        // CUDA encodes 12.8 as 12080: 1000 * major + 10 * minor (cuda.h).
        Ok((version / 1000, version % 1000 / 10))
    }

    /// Reads the number of cards that the driver counts.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn count_cards(&self) -> Result<u32, Error> {
        let mut count: c_uint = 0;
        self.make_call(&symbol::COUNT, None, |get| {
            // SAFETY: the pointer is valid for one unsigned int.
            unsafe { get(&raw mut count) }
        })?;
        Ok(count)
    }

    /// Opens the card at a PCI address. The driver initialises a card that no process uses, which
    /// may take seconds.
    ///
    /// # Errors
    /// The driver's answer; `NOT_FOUND` if the driver manages no card at this address.
    pub fn by_pci(&self, address: PciAddress) -> Result<DeviceHandle<'_>, Error> {
        let at = CardRef::Pci(address);
        let name = CString::new(address.to_long_form()).expect("an address has no NUL");
        let mut raw = ptr::null_mut();
        // Starting from NVML 5, nvmlDeviceGetHandleByPciBusId initialises the card (nvml.h).
        self.make_call(&symbol::BY_PCI, Some(at), |get| {
            // SAFETY: a C string, and a pointer that is valid for one handle.
            unsafe { get(name.as_ptr(), &raw mut raw) }
        })?;
        Ok(DeviceHandle::new(self, raw, at))
    }

    /// Opens the card with an index of the driver's enumeration. The index may change when a card
    /// is lost; use the PCI address where there is one. The driver initialises a card that no
    /// process uses.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn by_index(&self, index: u32) -> Result<DeviceHandle<'_>, Error> {
        let at = CardRef::Index(index);
        let mut raw = ptr::null_mut();
        self.make_call(&symbol::BY_INDEX, Some(at), |get| {
            // SAFETY: the pointer is valid for one handle.
            unsafe { get(index, &raw mut raw) }
        })?;
        Ok(DeviceHandle::new(self, raw, at))
    }

    pub(crate) fn make_call<F: Copy>(
        &self,
        symbol: &Symbol<F>,
        device: Option<CardRef>,
        invoke: impl FnOnce(F) -> nvmlReturn_t,
    ) -> Result<(), Error> {
        self.library.make_call(symbol, device, invoke)
    }

    pub(crate) fn library(&self) -> &NvmlLibrary {
        &self.library
    }
}

impl Drop for NvmlSession {
    fn drop(&mut self) {
        let ended = self.library.make_call(&symbol::SHUTDOWN, None, |shutdown| {
            // SAFETY: the call takes no arguments; devices borrow the session, so none is left.
            unsafe { shutdown() }
        });
        if let Err(error) = ended {
            tracing::debug!(%error, "the driver library did not shut down");
        }
    }
}

/// Reads the text at a pointer, up to the limit of its length.
fn bounded(said: *const c_char) -> String {
    let mut buffer = [0; WORDS_LIMIT];
    if said.is_null() {
        return String::new();
    }
    for (at, place) in buffer.iter_mut().enumerate() {
        // SAFETY: the driver returns a text that ends with NUL; nothing behind the NUL is read.
        *place = unsafe { *said.add(at) };
        if *place == 0 {
            break;
        }
    }
    text::from_buffer(&buffer)
}

/// Returns the name of a symbol as a text.
fn printed(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or("?")
}
