//! Common path of all calls: a call is recorded, delayed or failed according to the node's faults,
//! and given the device of its handle.

use std::{
    io::{ErrorKind, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use sim_node::{
    NodeFolder,
    state::{
        DevicePlace, Effect, Gpu, GpuModel, MigDevice, MigProfile, NodeState, NvmlFault, by_uuid,
    },
    store,
};

use super::{
    code::{
        GPU_IS_LOST, INVALID_ARGUMENT, NO_PERMISSION, NOT_SUPPORTED, NvmlResult, SUCCESS, UNKNOWN,
    },
    session::{self, HandleKey},
    watch::{FolderWatch, WaitDeadline},
    wire::Handle,
};

/// Device of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CalledDevice<'a> {
    pub(super) state: &'a NodeState,
    pub(super) index: usize,
    pub(super) gpu: &'a Gpu,
    pub(super) model: &'a GpuModel,
    /// MIG device with its index and profile; `None` for a card.
    pub(super) mig: Option<(usize, &'a MigDevice, &'a MigProfile)>,
}

// === impl CalledDevice ===

impl<'a> CalledDevice<'a> {
    /// Looks up the device at a position of the state.
    pub(super) fn at_place(state: &'a NodeState, (index, mig): DevicePlace) -> NvmlResult<Self> {
        let gpu = state.gpus.get(index).ok_or(GPU_IS_LOST)?;
        let model = state.models.get(&gpu.model).ok_or(UNKNOWN)?;
        let mig = mig.map(|position| {
            let mig = gpu.migs.get(position).ok_or(INVALID_ARGUMENT)?;
            let shape = model.find_shape(&mig.profile).ok_or(UNKNOWN)?;
            NvmlResult::Ok((position, mig, shape))
        });
        Ok(Self {
            state,
            index,
            gpu,
            model,
            mig: mig.transpose()?,
        })
    }

    /// Fails for a MIG device: the requested fact belongs to the whole card.
    pub(super) fn require_card(&self) -> NvmlResult {
        self.mig.is_none().then_some(()).ok_or(NOT_SUPPORTED)
    }
}

/// Lookup of a call's device. A trait object, so that the code below is compiled once and not for
/// each of the 398 functions: this makes the library a quarter smaller.
pub(super) type FindPlace<'a> = &'a dyn Fn(&NodeState) -> NvmlResult<DevicePlace>;

/// NVML code of a change that was rejected.
struct RefusedChange(u32);

// === impl RefusedChange ===

impl From<store::Error> for RefusedChange {
    fn from(error: store::Error) -> Self {
        let io = match &error {
            store::Error::Io(io) => Some(io.kind()),
            _ => None,
        };
        Self(match io {
            Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => NO_PERMISSION,
            _ => UNKNOWN,
        })
    }
}

/// Runs a call for the whole driver.
pub(super) fn system(name: &str, body: impl FnOnce(&NodeState) -> NvmlResult) -> u32 {
    answer(|| body(&begin_call(name, &|_| Err(UNKNOWN))?.0))
}

/// Runs a call for one device by its handle.
pub(super) fn device(
    name: &str,
    handle: Handle,
    body: impl FnOnce(&CalledDevice<'_>) -> NvmlResult,
) -> u32 {
    answer(|| call_device(name, &|state| resolve_handle(state, handle), body))
}

/// Runs a call for one device with any lookup. For a lost card every call returns `GPU_IS_LOST`.
pub(super) fn call_device(
    name: &str,
    find: FindPlace<'_>,
    body: impl FnOnce(&CalledDevice<'_>) -> NvmlResult,
) -> NvmlResult {
    let (state, place) = begin_call(name, find)?;
    let unit = CalledDevice::at_place(&state, place?)?;
    if unit.gpu.lost {
        return Err(GPU_IS_LOST);
    }
    body(&unit)
}

/// Return code for a function's result. A panic becomes `UNKNOWN`: unwinding must not cross the C
/// ABI.
pub(super) fn answer(body: impl FnOnce() -> NvmlResult) -> u32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => UNKNOWN,
    }
}

/// Position of a device by its handle.
pub(super) fn resolve_handle(state: &NodeState, handle: Handle) -> NvmlResult<DevicePlace> {
    let key = session::with_session(|session| session.find_key(handle).cloned())?;
    let HandleKey::Device(uuid) = key else {
        return Err(INVALID_ARGUMENT);
    };
    by_uuid(state, &uuid).ok_or(if uuid.starts_with("MIG-") {
        INVALID_ARGUMENT
    } else {
        GPU_IS_LOST
    })
}

/// Records a call and applies the faults. Returns the state after that, and the position of the
/// device.
pub(super) fn begin_call(
    name: &str,
    find: FindPlace<'_>,
) -> NvmlResult<(Arc<NodeState>, NvmlResult<DevicePlace>)> {
    let state = session::with_session(|session| session.current_state())?;
    let place = find(&state);
    record(name, &state, &place);
    apply_faults(
        name,
        state,
        place,
        &session::DriverSession::current_state,
        find,
    )
}

/// [`begin_call`] for a call that must work before NVML is initialised.
pub(super) fn begin_early(name: &str) -> NvmlResult {
    let Ok(state) = session::with_session(|session| session.reload_state()) else {
        return Ok(());
    };
    let nowhere = |_: &NodeState| Err(UNKNOWN);
    record(name, &state, &Err(UNKNOWN));
    let reload = |session: &mut session::DriverSession| session.reload_state().map_err(|_| UNKNOWN);
    apply_faults(name, state, Err(UNKNOWN), &reload, &nowhere).map(|_| ())
}

/// Changes a card in the node's folder, so that all processes see the change.
pub(super) fn change_card<T>(
    unit: &CalledDevice<'_>,
    edit: impl FnOnce(&mut Gpu, &GpuModel) -> NvmlResult<T>,
) -> NvmlResult<T> {
    let folder = NodeFolder::at_path(session::node_folder());
    let changed = folder.revise(|state| {
        let place = state.gpus.iter().position(|gpu| gpu.uuid == unit.gpu.uuid);
        let gpu = &mut state.gpus[place.ok_or(RefusedChange(GPU_IS_LOST))?];
        let model = state.models.get(&gpu.model).ok_or(RefusedChange(UNKNOWN))?;
        edit(gpu, model).map_err(RefusedChange)
    });
    changed.map_err(|RefusedChange(code)| code)
}

/// Applies the faults to a call: hangs as long as a fault says so, or fails.
fn apply_faults(
    name: &str,
    mut state: Arc<NodeState>,
    mut place: NvmlResult<DevicePlace>,
    reload: &dyn Fn(&mut session::DriverSession) -> NvmlResult<Arc<NodeState>>,
    find: FindPlace<'_>,
) -> NvmlResult<(Arc<NodeState>, NvmlResult<DevicePlace>)> {
    let mut hang: Option<(FolderWatch, Option<u64>, WaitDeadline)> = None;
    loop {
        match find_fault(name, &state, &place).map(|fault| fault.effect) {
            None => return Ok((state, place)),
            Some(Effect::Fail { code }) => return Err(code),
            Some(Effect::Hang { millis }) => match &hang {
                Some((_, same, deadline)) if *same == millis && deadline.over() => {
                    return Ok((state, place));
                }
                Some((watch, same, deadline)) if *same == millis => watch.wait_change(*deadline),
                _ => {
                    let watch = FolderWatch::new(session::node_folder());
                    hang = Some((watch, millis, WaitDeadline::after(millis)));
                }
            },
        }
        // Read again: the fault may have been cleared, and the device may be at another position.
        state = session::with_session(reload)?;
        place = find(&state);
    }
}

/// First fault for this call and device.
fn find_fault<'a>(
    name: &str,
    state: &'a NodeState,
    place: &NvmlResult<DevicePlace>,
) -> Option<&'a NvmlFault> {
    let unit = place
        .and_then(|place| CalledDevice::at_place(state, place))
        .ok();
    state.faults.iter().find(|fault| {
        let device = fault.device.as_ref().is_none_or(|wanted| {
            unit.is_some_and(|unit| {
                let mig = unit.mig.is_some_and(|(_, mig, _)| mig.uuid == *wanted);
                mig || unit.gpu.uuid == *wanted
            })
        });
        device && fault_matches(&fault.call, name)
    })
}

/// True if the name in a fault matches a call: the same name, the name without version, or `*`.
fn fault_matches(fault: &str, call: &str) -> bool {
    fault == "*" || fault == call || fault == without_version(call)
}

/// Name of a function without its version: `_v2`, or a `V` at the end.
fn without_version(call: &str) -> &str {
    if let Some((base, version)) = call.rsplit_once("_v")
        && !version.is_empty()
        && version.bytes().all(|b| b.is_ascii_digit())
    {
        return base;
    }
    call.strip_suffix('V').unwrap_or(call)
}

/// Appends a line to the log of calls, if the log exists.
fn record(name: &str, state: &NodeState, place: &NvmlResult<DevicePlace>) {
    let log = session::node_folder().join(store::CALLS);
    let Ok(mut log) = fs_err::OpenOptions::new().append(true).open(log) else {
        return;
    };
    let unit = place
        .and_then(|place| CalledDevice::at_place(state, place))
        .ok();
    let target = unit.map_or("-", |unit| match unit.mig {
        Some((_, mig, _)) => &mig.uuid,
        None => &unit.gpu.uuid,
    });
    // A call must not fail because it cannot be recorded.
    let _ = log.write_all(format!("{name} {target}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::fault_matches;
    use rstest::rstest;

    #[rstest]
    #[case("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2", true)]
    #[case("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV", true)]
    #[case("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo_v2", true)]
    #[case("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo", false)]
    #[case("nvmlDeviceGet", "nvmlDeviceGetName", false)]
    #[case("*", "nvmlInit_v2", true)]
    fn a_name_without_version_stands_for_all(
        #[case] fault: &str,
        #[case] call: &str,
        #[case] stands: bool,
    ) {
        assert_eq!(fault_matches(fault, call), stands);
    }
}
