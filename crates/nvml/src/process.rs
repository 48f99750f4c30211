//! The processes that compute on a device.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings as sys;

use crate::{Code, Device, Error, symbol};

/// What NVML writes where it does not know how much memory a process uses.
const NOT_KNOWN: u64 = u64::MAX;

/// The places for processes in the first call.
const FIRST_ROOM: usize = 16;

/// How often it is tried again with more room: processes come while we ask.
const TRIES: u32 = 4;

/// A process that computes on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Its id, as the host counts.
    pub pid: u32,
    /// Memory that it uses, in bytes, where the driver knows.
    pub memory: Option<u64>,
}

impl Device<'_> {
    /// The processes that compute on it, by themselves or through the MPS daemon, in the order of
    /// their ids.
    ///
    /// # Errors
    /// What the driver answers. A driver that is too old to tell of MPS is none.
    pub fn users(&self) -> Result<Vec<User>, Error> {
        let mut users = self.processes(&symbol::COMPUTE_PROCESSES)?;
        match self.processes(&symbol::MPS_PROCESSES) {
            Ok(more) => users.extend(more),
            Err(error) if error.is_not_supported() => {}
            Err(error) => return Err(error),
        }
        users.sort_unstable();
        users.dedup_by_key(|user| user.pid);
        Ok(users)
    }

    fn processes(&self, symbol: &symbol::Symbol<symbol::GetProcesses>) -> Result<Vec<User>, Error> {
        let empty = sys::nvmlProcessInfo_t {
            pid: 0,
            usedGpuMemory: 0,
            gpuInstanceId: 0,
            computeInstanceId: 0,
        };
        let mut list = vec![empty; FIRST_ROOM];
        let mut tries = 0;
        loop {
            let mut count = c_uint::try_from(list.len()).unwrap_or(c_uint::MAX);
            let asked = self.call(symbol, |get| {
                // SAFETY: the handle is the driver's, the list has as many places as are told.
                unsafe { get(self.raw(), &raw mut count, list.as_mut_ptr()) }
            });
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            match asked {
                Ok(()) => {
                    let users = list.into_iter().take(count).map(|info| User {
                        pid: info.pid,
                        memory: Some(info.usedGpuMemory).filter(|bytes| *bytes != NOT_KNOWN),
                    });
                    return Ok(users.collect());
                }
                Err(error) if error.code() == Some(Code::INSUFFICIENT_SIZE) && tries < TRIES => {
                    tries += 1;
                    let room = count.saturating_add(FIRST_ROOM).min(1 << 16);
                    list.resize(room.max(list.len()), empty);
                }
                Err(error) => return Err(error),
            }
        }
    }
}
