//! Processes that compute on a device.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings as sys;

use crate::{DeviceHandle, Error, ReturnCode, symbol};

/// Value that NVML writes if it does not know the memory of a process
/// (`NVML_VALUE_NOT_AVAILABLE`, -1).
const NOT_KNOWN: u64 = u64::MAX;

/// Number of entries offered in the first call.
const FIRST_ROOM: usize = 16;

/// Number of further tries with a longer list: processes may start between two calls.
const TRIES: u32 = 4;

/// Process that computes on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputeProcess {
    /// Process id in the host's PID namespace.
    pub pid: u32,
    /// Device memory of the process, in bytes; `NotSupported` if the driver does not know it.
    pub memory: Option<u64>,
}

impl DeviceHandle<'_> {
    /// Lists the processes that compute on the device, directly or through the MPS daemon, sorted
    /// by process id.
    ///
    /// # Errors
    /// The driver's answer. A driver that is too old to list MPS clients is no error.
    pub fn users(&self) -> Result<Vec<ComputeProcess>, Error> {
        let mut users = self.read_process_list(&symbol::COMPUTE_PROCESSES)?;
        match self.read_process_list(&symbol::MPS_PROCESSES) {
            Ok(more) => users.extend(more),
            Err(error) if error.is_not_supported() => {}
            Err(error) => return Err(error),
        }
        users.sort_unstable();
        users.dedup_by_key(|user| user.pid);
        Ok(users)
    }

    fn read_process_list(
        &self,
        symbol: &symbol::Symbol<symbol::GetProcesses>,
    ) -> Result<Vec<ComputeProcess>, Error> {
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
            let asked = self.make_call(symbol, |get| {
                // SAFETY: the handle is the driver's, the list has as many places as are told.
                unsafe { get(self.raw_handle(), &raw mut count, list.as_mut_ptr()) }
            });
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            match asked {
                Ok(()) => {
                    let users = list.into_iter().take(count).map(|info| ComputeProcess {
                        pid: info.pid,
                        memory: Some(info.usedGpuMemory).filter(|bytes| *bytes != NOT_KNOWN),
                    });
                    return Ok(users.collect());
                }
                Err(error)
                    if error.return_code() == Some(ReturnCode::INSUFFICIENT_SIZE)
                        && tries < TRIES =>
                {
                    tries += 1;
                    let room = count.saturating_add(FIRST_ROOM).min(1 << 16);
                    list.resize(room.max(list.len()), empty);
                }
                Err(error) => return Err(error),
            }
        }
    }
}
