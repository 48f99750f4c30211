//! Events that the driver reports by itself: XIDs and memory errors.

use std::{ffi::c_ulonglong, fmt, ptr, sync::Arc, time::Duration};

use model::CardRef;
use nvml_wrapper_sys::bindings::{self as sys, nvmlDevice_t, nvmlEventSet_t};

use crate::{
    DeviceHandle, Error, NvmlSession, ReturnCode,
    device::{EMPTY_PCI, address},
    symbol,
};

/// Time that a wait may take beyond its timeout before the call counts as overdue.
const WAIT_GRACE: Duration = Duration::from_secs(1);

/// Event types that are registered for.
const WANTED: c_ulonglong = (sys::nvmlEventTypeXidCriticalError
    | sys::nvmlEventTypeDoubleBitEccError
    | sys::nvmlEventTypeSingleBitEccError) as c_ulonglong;

/// Value of an instance id in an event that concerns no instance.
// `NVML_GPU_INSTANCE_ID_ANY` and `NVML_COMPUTE_INSTANCE_ID_ANY` in newer headers.
const NO_INSTANCE: u32 = u32::MAX;

/// Set of cards whose events are waited for.
pub struct EventSet {
    session: Arc<NvmlSession>,
    raw: nvmlEventSet_t,
    members: Vec<(usize, CardRef)>,
}

/// Event as the driver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverEvent {
    /// Card of the event; `NotSupported` if the card is not in the set.
    pub card: Option<CardRef>,
    /// GPU instance, if the event concerns one.
    pub gpu_instance: Option<u32>,
    /// Compute instance in the GPU instance, if the event concerns one.
    pub compute_instance: Option<u32>,
    /// Kind of the event.
    pub kind: EventKind,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// XID error with its number.
    Xid(u64),
    /// Corrected memory error.
    SingleBitEcc,
    /// Uncorrectable memory error.
    DoubleBitEcc,
    /// Event of a type that was not registered for, with the driver's number of the type.
    Other(u64),
}

// === impl EventSet ===

impl EventSet {
    /// Creates an empty set.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn create_set(session: Arc<NvmlSession>) -> Result<Self, Error> {
        let mut raw = ptr::null_mut();
        session.make_call(&symbol::EVENT_SET_CREATE, None, |create| {
            // SAFETY: the pointer is valid for one handle.
            unsafe { create(&raw mut raw) }
        })?;
        Ok(Self {
            session,
            raw,
            members: Vec::new(),
        })
    }

    /// Registers for the events of a card: XIDs and memory errors, as far as the card supports
    /// them.
    ///
    /// # Errors
    /// The driver's answer; `NOT_SUPPORTED` if the card reports no events.
    pub fn add_card(&mut self, card: &DeviceHandle<'_>) -> Result<(), Error> {
        let supported = match card.read_value(&symbol::EVENT_TYPES, 0) {
            Ok(types) => types,
            // An old driver may lack this query and still accept the registration, which then decides.
            Err(error) if error.is_not_supported() => WANTED,
            Err(error) => return Err(error),
        };
        let wanted = match supported & WANTED {
            // The driver itself then answers that the card reports no events.
            0 => WANTED,
            some => some,
        };
        card.make_call(&symbol::EVENT_REGISTER, |register| {
            // SAFETY: both handles are the driver's.
            unsafe { register(card.raw_handle(), wanted, self.raw) }
        })?;
        self.members
            .push((card.raw_handle().addr(), card.handle_card()));
        Ok(())
    }

    /// Waits for the next event; `NotSupported` if none came within `timeout`. Blocks the thread.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn wait_event(&mut self, timeout: Duration) -> Result<Option<DriverEvent>, Error> {
        let mut data = sys::nvmlEventData_t {
            device: ptr::null_mut(),
            eventType: 0,
            eventData: 0,
            gpuInstanceId: NO_INSTANCE,
            computeInstanceId: NO_INSTANCE,
        };
        let millis = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        // Of several XIDs between two waits NVML reports only the last: keep the pauses short.
        let waited = self.session.library().call_within(
            &symbol::EVENT_SET_WAIT,
            None,
            timeout + WAIT_GRACE,
            |wait| {
                // SAFETY: the set is ours until it is dropped, the pointer is valid for one event.
                unsafe { wait(self.raw, &raw mut data, millis) }
            },
        );
        match waited {
            Ok(()) => Ok(Some(self.occurrence(&data))),
            Err(error) if error.return_code() == Some(ReturnCode::TIMEOUT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn occurrence(&self, data: &sys::nvmlEventData_t) -> DriverEvent {
        let instance = |id| (id != NO_INSTANCE).then_some(id);
        DriverEvent {
            card: self.member(data.device),
            gpu_instance: instance(data.gpuInstanceId),
            compute_instance: instance(data.computeInstanceId),
            kind: EventKind::from_raw(data.eventType, data.eventData),
        }
    }

    /// Finds the card of a handle: by the handle itself, or else by its PCI address (handles of MIG
    /// devices).
    fn member(&self, raw: nvmlDevice_t) -> Option<CardRef> {
        if raw.is_null() {
            return None;
        }
        let known = self
            .members
            .iter()
            .find(|(member, _)| *member == raw.addr());
        known.map(|(_, at)| *at).or_else(|| {
            let mut info = EMPTY_PCI;
            let asked = self.session.make_call(&symbol::PCI_INFO, None, |get| {
                // SAFETY: the handle is the driver's, the pointer is valid for one address.
                unsafe { get(raw, &raw mut info) }
            });
            asked.ok()?;
            let at = CardRef::Pci(address(info)?);
            self.members.iter().any(|(_, m)| *m == at).then_some(at)
        })
    }
}

impl Drop for EventSet {
    fn drop(&mut self) {
        let freed = self
            .session
            .make_call(&symbol::EVENT_SET_FREE, None, |free| {
                // SAFETY: the set is ours and not used again.
                unsafe { free(self.raw) }
            });
        if let Err(error) = freed {
            tracing::debug!(%error, "an event set could not be freed");
        }
    }
}

impl fmt::Debug for EventSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSet")
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

// SAFETY: NVML may be called from any thread; the handle is used by one at a time (`&mut`).
unsafe impl Send for EventSet {}

// === impl EventKind ===

impl EventKind {
    fn from_raw(kind: c_ulonglong, data: c_ulonglong) -> Self {
        match u32::try_from(kind) {
            Ok(sys::nvmlEventTypeXidCriticalError) => Self::Xid(data),
            Ok(sys::nvmlEventTypeSingleBitEccError) => Self::SingleBitEcc,
            Ok(sys::nvmlEventTypeDoubleBitEccError) => Self::DoubleBitEcc,
            _ => Self::Other(kind),
        }
    }
}
