//! State of a process between calls: the initialisation count, the handles it got, the device files
//! it holds open, and the node's state as read last.

use std::{
    collections::BTreeMap,
    ffi::{CStr, OsStr, c_void},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use sim_node::{
    state::{Gpu, NodeState},
    store,
};

use super::{
    code::{DRIVER_NOT_LOADED, INVALID_ARGUMENT, NvmlResult, UNINITIALIZED, UNKNOWN},
    event::NvmlEventSet,
    wire::Handle,
};

/// Environment variable for the node's folder, if the library is not loaded from it.
const VARIABLE: &str = "OSTLER_SIM_NODE";

/// Handles look like addresses, so that a caller cannot mistake them for small numbers.
const FIRST_HANDLE: usize = 0x0517_1e70_0000;
const HANDLE_STEP: usize = 0x100;

/// Target of a handle. A handle stays valid as a value for ever; its target may disappear.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HandleKey {
    /// A card or MIG device: its UUID.
    Device(String),
    /// A GPU instance: the card's UUID and the instance id.
    GpuInstance(String, u32),
    /// A compute instance: the card's UUID and both instance ids.
    ComputeInstance(String, u32, u32),
    /// An event set: its number.
    Set(u64),
}

/// Node's state as read last. The file stays open so that no later version gets the same stamp.
#[derive(Debug)]
struct StateCache {
    stamp: store::StateStamp,
    state: Arc<NodeState>,
    _file: fs_err::File,
}

/// Session of the process.
#[derive(Debug, Default)]
pub(super) struct DriverSession {
    inits: u32,
    keys: Vec<HandleKey>,
    places: BTreeMap<HandleKey, usize>,
    held: BTreeMap<String, fs_err::File>,
    cache: Option<StateCache>,
    /// Event sets, by number.
    pub(super) sets: BTreeMap<u64, Arc<Mutex<NvmlEventSet>>>,
    /// Number of the next event set.
    pub(super) next_set: u64,
}

// The C ABI has no context parameter. There is one session per process, as in the real library.
static SESSION: Mutex<Option<DriverSession>> = Mutex::new(None);
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Runs `work` with the session locked. Keep it short: all calls of the process wait.
pub(super) fn with_session<T>(work: impl FnOnce(&mut DriverSession) -> T) -> T {
    let mut guard: MutexGuard<'_, Option<DriverSession>> =
        SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    work(guard.get_or_insert_with(DriverSession::default))
}

// === impl DriverSession ===

impl DriverSession {
    /// Counts one more initialisation.
    pub(super) fn count_init(&mut self) -> NvmlResult {
        self.reload_state().map_err(|_| DRIVER_NOT_LOADED)?;
        self.inits = self.inits.saturating_add(1);
        self.hold_device_file("nvidiactl".to_owned());
        Ok(())
    }

    /// Counts one initialisation less. The last one closes all device files.
    pub(super) fn shutdown(&mut self) -> NvmlResult {
        self.inits = self.inits.checked_sub(1).ok_or(UNINITIALIZED)?;
        if self.inits == 0 {
            self.held.clear();
            self.sets.clear();
        }
        Ok(())
    }

    /// Current state; fails unless NVML is initialised.
    pub(super) fn current_state(&mut self) -> NvmlResult<Arc<NodeState>> {
        if self.inits == 0 {
            return Err(UNINITIALIZED);
        }
        self.reload_state().map_err(|_| UNKNOWN)
    }

    /// Reads the state again if its file has changed.
    pub(super) fn reload_state(&mut self) -> Result<Arc<NodeState>, store::Error> {
        let stamp = store::StateStamp::of_folder(node_folder())?;
        if let Some(cache) = &self.cache
            && cache.stamp == stamp
        {
            return Ok(Arc::clone(&cache.state));
        }
        self.cache = None;
        let version = store::read_version(node_folder())?;
        let state = Arc::new(version.state);
        self.cache = Some(StateCache {
            stamp: version.stamp,
            state: Arc::clone(&state),
            _file: version.file,
        });
        Ok(state)
    }

    /// Handle of a target, the same each time.
    pub(super) fn handle_of(&mut self, key: HandleKey) -> Handle {
        let keys = &mut self.keys;
        let place = self.places.entry(key.clone());
        let position = *place.or_insert_with(|| {
            keys.push(key);
            keys.len() - 1
        });
        Handle(FIRST_HANDLE + position * HANDLE_STEP)
    }

    /// Target of a handle.
    pub(super) fn find_key(&self, handle: Handle) -> NvmlResult<&HandleKey> {
        let offset = handle.0.checked_sub(FIRST_HANDLE).ok_or(INVALID_ARGUMENT)?;
        if offset % HANDLE_STEP != 0 {
            return Err(INVALID_ARGUMENT);
        }
        self.keys.get(offset / HANDLE_STEP).ok_or(INVALID_ARGUMENT)
    }

    /// Handle of a card. Opens the card's device file, which stays open as with the real driver.
    pub(super) fn open_card(&mut self, gpu: &Gpu) -> Handle {
        self.hold_device_file(format!("nvidia{}", gpu.minor));
        self.handle_of(HandleKey::Device(gpu.uuid.clone()))
    }

    fn hold_device_file(&mut self, node: String) {
        if self.held.contains_key(&node) {
            return;
        }
        let path = node_folder().join(store::ROOT).join("dev").join(&node);
        if let Ok(file) = fs_err::File::open(path) {
            self.held.insert(node, file);
        }
    }
}

/// Folder of the node: from the environment, or the folder of this library.
pub(super) fn node_folder() -> &'static Path {
    FOLDER.get_or_init(|| {
        let own = own_name();
        if let Some(name) = own {
            stay(name);
        }
        match std::env::var_os(VARIABLE) {
            Some(dir) if !dir.is_empty() => PathBuf::from(dir),
            _ => own.map_or_else(|| PathBuf::from("."), folder_of),
        }
    })
}

/// Keeps this library loaded until the process ends. Threads that called it run its thread-local
/// destructors when they end, which may be after the caller's `dlclose`.
fn stay(name: &CStr) {
    let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the name is a C string; nothing is loaded, so no foreign code runs.
    unsafe { libc::dlopen(name.as_ptr(), how) };
}

/// Folder of a library's path. Symlinks of the file itself are not followed.
fn folder_of(name: &CStr) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs_err::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Path that this library was loaded from.
fn own_name() -> Option<&'static CStr> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let inside = own_name as fn() -> Option<&'static CStr> as *const c_void;
    // SAFETY: the address is that of a function of this library, and `info` is ours to fill.
    let found = unsafe { libc::dladdr(inside, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr succeeded, so the name is a C string that lives as long as the library.
    Some(unsafe { CStr::from_ptr(info.dli_fname) })
}
