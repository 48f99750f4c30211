//! The driver's library: loaded, then initialised; shut down when the session is dropped.

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
use probe::{Calls, Ticket};

use crate::{
    Code, Device, Error,
    symbol::{self, Symbol},
    text,
};

/// The longest text that is read from a pointer the driver gives us.
const WORDS_LIMIT: usize = 256;

/// A loaded driver library that has not been initialised.
pub struct Library {
    handle: ManuallyDrop<libloading::Library>,
    calls: Arc<Calls>,
}

/// An initialised driver library. Dropping it shuts NVML down and unloads the library.
#[derive(Debug)]
pub struct Session {
    library: Library,
    opened: SystemTime,
}

// === impl Library ===

impl Library {
    /// Loads a library by its path, or by its name for the loader to find. `calls` is where every
    /// foreign call is written down.
    ///
    /// # Errors
    /// [`Error::Open`] with the loader's words.
    pub fn open(path: impl AsRef<OsStr>, calls: Arc<Calls>) -> Result<Self, Error> {
        let path = path.as_ref();
        let ticket = calls.begin("dlopen", None, Calls::ALLOWED);
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
    /// What the driver answers, and its own words for it.
    pub fn init(self) -> Result<Session, (Error, String)> {
        let started = self.call(&symbol::INIT, None, |init| {
            // SAFETY: the call takes no arguments.
            unsafe { init() }
        });
        match started {
            Ok(()) => Ok(Session {
                library: self,
                opened: SystemTime::now(),
            }),
            Err(error) => {
                let words = error.code().map_or(String::new(), |code| self.words(code));
                Err((error, words))
            }
        }
    }

    /// The one way out: finds the symbol, writes the call down, makes it, strikes it out.
    pub(crate) fn call<F: Copy>(
        &self,
        symbol: &Symbol<F>,
        device: Option<CardRef>,
        invoke: impl FnOnce(F) -> nvmlReturn_t,
    ) -> Result<(), Error> {
        self.call_within(symbol, device, Calls::ALLOWED, invoke)
    }

    /// [`Library::call`] for a call that may take longer by design.
    pub(crate) fn call_within<F: Copy>(
        &self,
        symbol: &Symbol<F>,
        device: Option<CardRef>,
        allowed: Duration,
        invoke: impl FnOnce(F) -> nvmlReturn_t,
    ) -> Result<(), Error> {
        let (function, call) = self.find(symbol)?;
        let ticket = self.calls.begin(call, device, allowed);
        let code = invoke(function);
        drop::<Ticket<'_>>(ticket);
        Code::check(code).map_err(|code| Error::Failed { call, device, code })
    }

    /// What the driver says of a code; our own words where it says nothing.
    fn words(&self, code: Code) -> String {
        let mut words = String::new();
        let asked = self.call(&symbol::ERROR_STRING, None, |describe| {
            // SAFETY: the call takes a number and returns a static text or null.
            let said = unsafe { describe(code.raw()) };
            words = bounded(said);
            sys::nvmlReturn_enum_NVML_SUCCESS
        });
        if asked.is_err() || words.is_empty() {
            words = code.words().to_owned();
        }
        words
    }

    /// The function under the newest of its names that the library has.
    fn find<F: Copy>(&self, symbol: &Symbol<F>) -> Result<(F, &'static str), Error> {
        for name in symbol.names() {
            // SAFETY: a `Symbol` promises that `F` is the signature of all its names.
            if let Ok(function) = unsafe { self.handle.get::<F>(name.to_bytes_with_nul()) } {
                return Ok((*function, printed(name)));
            }
        }
        Err(Error::NoSymbol {
            call: symbol.names().first().copied().map_or("", printed),
        })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ticket = self.calls.begin("dlclose", None, Calls::ALLOWED);
        // SAFETY: the handle is dropped here and nowhere else, and not used again.
        unsafe { ManuallyDrop::drop(&mut self.handle) }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

// === impl Session ===

impl Session {
    /// Time at which NVML was initialised.
    pub fn opened(&self) -> SystemTime {
        self.opened
    }

    /// The driver's version, e.g. `580.95.05`.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn driver_version(&self) -> Result<String, Error> {
        self.version(&symbol::DRIVER_VERSION)
    }

    /// The library's own version, e.g. `13.580.95.05`.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn nvml_version(&self) -> Result<String, Error> {
        self.version(&symbol::NVML_VERSION)
    }

    fn version(&self, symbol: &Symbol<symbol::Version>) -> Result<String, Error> {
        let mut buffer: [c_char; 96] = [0; 96];
        let room = sys::NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE;
        self.call(symbol, None, |get| {
            // SAFETY: the buffer is longer than the length that is passed.
            unsafe { get(buffer.as_mut_ptr(), room) }
        })?;
        Ok(text::from_buffer(&buffer))
    }

    /// The highest CUDA version that the driver supports, as major and minor.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn cuda_version(&self) -> Result<(i32, i32), Error> {
        let mut version: c_int = 0;
        self.call(&symbol::CUDA_VERSION, None, |get| {
            // SAFETY: the pointer is valid for one int.
            unsafe { get(&raw mut version) }
        })?;
        Ok((version / 1000, version % 1000 / 10))
    }

    /// How many cards the driver counts.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn count(&self) -> Result<u32, Error> {
        let mut count: c_uint = 0;
        self.call(&symbol::COUNT, None, |get| {
            // SAFETY: the pointer is valid for one unsigned int.
            unsafe { get(&raw mut count) }
        })?;
        Ok(count)
    }

    /// The card at a PCI address. Some drivers wake the card up for this.
    ///
    /// # Errors
    /// What the driver answers; `NOT_FOUND` where it does not manage such a card.
    pub fn by_pci(&self, address: PciAddress) -> Result<Device<'_>, Error> {
        let at = CardRef::Pci(address);
        let name = CString::new(address.long()).expect("an address has no NUL");
        let mut raw = ptr::null_mut();
        self.call(&symbol::BY_PCI, Some(at), |get| {
            // SAFETY: a C string, and a pointer that is valid for one handle.
            unsafe { get(name.as_ptr(), &raw mut raw) }
        })?;
        Ok(Device::new(self, raw, at))
    }

    /// The card with an index of the driver's enumeration.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn by_index(&self, index: u32) -> Result<Device<'_>, Error> {
        let at = CardRef::Index(index);
        let mut raw = ptr::null_mut();
        self.call(&symbol::BY_INDEX, Some(at), |get| {
            // SAFETY: the pointer is valid for one handle.
            unsafe { get(index, &raw mut raw) }
        })?;
        Ok(Device::new(self, raw, at))
    }

    pub(crate) fn call<F: Copy>(
        &self,
        symbol: &Symbol<F>,
        device: Option<CardRef>,
        invoke: impl FnOnce(F) -> nvmlReturn_t,
    ) -> Result<(), Error> {
        self.library.call(symbol, device, invoke)
    }

    pub(crate) fn library(&self) -> &Library {
        &self.library
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let ended = self.library.call(&symbol::SHUTDOWN, None, |shutdown| {
            // SAFETY: the call takes no arguments; devices borrow the session, so none is left.
            unsafe { shutdown() }
        });
        if let Err(error) = ended {
            tracing::debug!(%error, "the driver library did not shut down");
        }
    }
}

/// The text at a pointer, no further than [`WORDS_LIMIT`].
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

/// A symbol's name as a text.
fn printed(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or("?")
}
