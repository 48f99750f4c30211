//! Event sets: waiting for events of the driver.

use std::{
    collections::BTreeMap,
    ffi::{c_uint, c_ulonglong},
    io::{self, Read as _, Seek as _, SeekFrom},
    sync::{Arc, Mutex, PoisonError},
};

use nvml_wrapper_sys::bindings::nvmlEventData_t;
use sim_node::{state::NodeEvent, store};

use super::{
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult, TIMEOUT, UNKNOWN},
    nvml,
    session::{self, HandleKey},
    watch::{FolderWatch, WaitDeadline},
    wire::{Handle, Out},
};

/// Event types of data centre cards: single and double bit ECC errors, performance state, XID,
/// clocks.
const SUPPORTED: u64 = 1 | 2 | 4 | 8 | 16;
/// NVML's instance id for "the whole card".
const WHOLE: c_uint = u32::MAX;
/// Bytes of the event file that are read at once.
const CHUNK: u64 = 64 << 10;

/// An event set.
#[derive(Debug, Default)]
pub(super) struct NvmlEventSet {
    cursor: u64,
    wanted: BTreeMap<String, WantedEvents>,
}

/// Events of one card that a set is registered for.
#[derive(Clone, Copy, Debug)]
struct WantedEvents {
    kinds: u64,
    since: u64,
}

/// Event in the form of `nvmlEventSetWait`, the call's first version: without instance ids.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ShortEvent {
    device: Handle,
    kind: c_ulonglong,
    data: c_ulonglong,
}

nvml! {
    system nvmlEventSetCreate: (out: Out<Handle>) |_state| {
        let set = NvmlEventSet { cursor: written(), wanted: BTreeMap::new() };
        out.set(session::with_session(|session| {
            let number = session.next_set;
            session.next_set = number.wrapping_add(1);
            session.sets.insert(number, Arc::new(Mutex::new(set)));
            session.handle_of(HandleKey::Set(number))
        }))
    };
    system nvmlEventSetFree: (set: Handle) |_state| session::with_session(|session| {
        let HandleKey::Set(number) = *session.find_key(set)? else {
            return Err(INVALID_ARGUMENT);
        };
        session.sets.remove(&number).map(|_| ()).ok_or(INVALID_ARGUMENT)
    });
    device nvmlDeviceGetSupportedEventTypes: (kinds: Out<c_ulonglong>) |unit| {
        unit.require_card()?;
        kinds.set(SUPPORTED)
    };
    device nvmlDeviceRegisterEvents: (kinds: c_ulonglong, set: Handle) |unit| {
        let set = find_set(set)?;
        unit.require_card()?;
        if kinds & !SUPPORTED != 0 {
            return Err(NOT_SUPPORTED);
        }
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        let since = written();
        let wanted = set.wanted.entry(unit.gpu.uuid.clone());
        wanted.or_insert(WantedEvents { kinds: 0, since }).kinds |= kinds;
        Ok(())
    };
    system nvmlEventSetWait_v2: (set: Handle, data: Out<nvmlEventData_t>, millis: c_uint) |_state| {
        let event = wait_event(set, millis)?;
        data.set(nvmlEventData_t {
            device: std::ptr::without_provenance_mut(event_card(&event).0),
            eventType: event.kind,
            eventData: event.data,
            gpuInstanceId: event.gi.unwrap_or(WHOLE),
            computeInstanceId: event.ci.unwrap_or(WHOLE),
        })
    };
    system nvmlEventSetWait: (set: Handle, data: Out<ShortEvent>, millis: c_uint) |_state| {
        let event = wait_event(set, millis)?;
        data.set(ShortEvent { device: event_card(&event), kind: event.kind, data: event.data })
    };
}

/// Waits for the next event that the set is registered for.
fn wait_event(set: Handle, millis: c_uint) -> NvmlResult<NodeEvent> {
    let set = find_set(set)?;
    // The watch is made before the file is first read, so that no event is missed in between.
    let watch = FolderWatch::new(session::node_folder());
    let deadline = WaitDeadline::after(Some(u64::from(millis)));
    loop {
        let next = set
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next_event();
        match next {
            Ok(Some(event)) => return Ok(event),
            Ok(None) if deadline.over() => return Err(TIMEOUT),
            Ok(None) => watch.wait_change(deadline),
            Err(_) => return Err(UNKNOWN),
        }
    }
}

fn find_set(set: Handle) -> NvmlResult<Arc<Mutex<NvmlEventSet>>> {
    session::with_session(|session| {
        let HandleKey::Set(number) = session.find_key(set)? else {
            return Err(INVALID_ARGUMENT);
        };
        session.sets.get(number).cloned().ok_or(INVALID_ARGUMENT)
    })
}

fn event_card(event: &NodeEvent) -> Handle {
    session::with_session(|session| session.handle_of(HandleKey::Device(event.gpu.clone())))
}

/// Current length of the event file.
fn written() -> u64 {
    fs_err::metadata(session::node_folder().join(store::EVENTS)).map_or(0, |meta| meta.len())
}

// === impl NvmlEventSet ===

impl NvmlEventSet {
    /// Reads the next event that the set is registered for; `None` if the file has none yet.
    fn next_event(&mut self) -> io::Result<Option<NodeEvent>> {
        let path = session::node_folder().join(store::EVENTS);
        let mut file = match fs_err::File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        // A file that became shorter was truncated: start again.
        if file.metadata()?.len() < self.cursor {
            self.cursor = 0;
        }
        loop {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(self.cursor))?;
            (&mut file).take(CHUNK).read_to_end(&mut bytes)?;
            let full = bytes.len() as u64 == CHUNK;
            match bytes.iter().position(|byte| *byte == b'\n') {
                None if full => self.cursor += CHUNK,
                None => return Ok(None),
                Some(_) => {
                    if let Some(event) = self.scan_lines(&bytes) {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    /// Scans whole lines for the first event that the set is registered for. Lines that are not
    /// events are skipped.
    fn scan_lines(&mut self, bytes: &[u8]) -> Option<NodeEvent> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") {
                break;
            }
            let at = self.cursor;
            self.cursor += line.len() as u64;
            if let Ok(event) = serde_json::from_slice::<NodeEvent>(line)
                && let Some(wanted) = self.wanted.get(&event.gpu)
                && wanted.kinds & event.kind != 0
                && wanted.since <= at
            {
                return Some(event);
            }
        }
        None
    }
}
