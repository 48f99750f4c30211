//! Common path of all calls: a call is recorded, delayed or failed according to the node's faults,
//! and given the device of its handle.

use std::{
    io::{ErrorKind, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use sim_node::{
    Folder,
    state::{Effect, Fault, Gpu, Mig, MigProfile, Model, Place, State, by_uuid},
    store,
};

use super::{
    code::{Answer, GPU_IS_LOST, INVALID_ARGUMENT, NO_PERMISSION, NOT_SUPPORTED, SUCCESS, UNKNOWN},
    session::{self, Key},
    watch::{Deadline, Watch},
    wire::Handle,
};

/// Device of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit<'a> {
    pub(super) state: &'a State,
    pub(super) index: usize,
    pub(super) gpu: &'a Gpu,
    pub(super) model: &'a Model,
    /// MIG device with its index and profile; `None` for a card.
    pub(super) mig: Option<(usize, &'a Mig, &'a MigProfile)>,
}

// === impl Unit ===

impl<'a> Unit<'a> {
    /// Looks up the device at a position of the state.
    pub(super) fn at(state: &'a State, (index, mig): Place) -> Answer<Self> {
        let gpu = state.gpus.get(index).ok_or(GPU_IS_LOST)?;
        let model = state.models.get(&gpu.model).ok_or(UNKNOWN)?;
        let mig = mig.map(|position| {
            let mig = gpu.migs.get(position).ok_or(INVALID_ARGUMENT)?;
            let shape = model.shape(&mig.profile).ok_or(UNKNOWN)?;
            Answer::Ok((position, mig, shape))
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
    pub(super) fn whole(&self) -> Answer {
        self.mig.is_none().then_some(()).ok_or(NOT_SUPPORTED)
    }
}

/// Lookup of a call's device. A trait object, so that the code below is compiled once and not for
/// each of the 398 functions: this makes the library a quarter smaller.
pub(super) type Find<'a> = &'a dyn Fn(&State) -> Answer<Place>;

/// NVML code of a change that was rejected.
struct Refusal(u32);

// === impl Refusal ===

impl From<store::Error> for Refusal {
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
pub(super) fn system(name: &str, body: impl FnOnce(&State) -> Answer) -> u32 {
    answer(|| body(&begin(name, &|_| Err(UNKNOWN))?.0))
}

/// Runs a call for one device by its handle.
pub(super) fn device(name: &str, handle: Handle, body: impl FnOnce(&Unit<'_>) -> Answer) -> u32 {
    answer(|| on(name, &|state| resolve(state, handle), body))
}

/// Runs a call for one device with any lookup. For a lost card every call returns `GPU_IS_LOST`.
pub(super) fn on(name: &str, find: Find<'_>, body: impl FnOnce(&Unit<'_>) -> Answer) -> Answer {
    let (state, place) = begin(name, find)?;
    let unit = Unit::at(&state, place?)?;
    if unit.gpu.lost {
        return Err(GPU_IS_LOST);
    }
    body(&unit)
}

/// Return code for a function's result. A panic becomes `UNKNOWN`: unwinding must not cross the C
/// ABI.
pub(super) fn answer(body: impl FnOnce() -> Answer) -> u32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => UNKNOWN,
    }
}

/// Position of a device by its handle.
pub(super) fn resolve(state: &State, handle: Handle) -> Answer<Place> {
    let key = session::with(|session| session.key(handle).cloned())?;
    let Key::Device(uuid) = key else {
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
pub(super) fn begin(name: &str, find: Find<'_>) -> Answer<(Arc<State>, Answer<Place>)> {
    let state = session::with(|session| session.state())?;
    let place = find(&state);
    record(name, &state, &place);
    obey(name, state, place, &session::Session::state, find)
}

/// [`begin`] for a call that must work before NVML is initialised.
pub(super) fn begin_early(name: &str) -> Answer {
    let Ok(state) = session::with(|session| session.load()) else {
        return Ok(());
    };
    let nowhere = |_: &State| Err(UNKNOWN);
    record(name, &state, &Err(UNKNOWN));
    let reload = |session: &mut session::Session| session.load().map_err(|_| UNKNOWN);
    obey(name, state, Err(UNKNOWN), &reload, &nowhere).map(|_| ())
}

/// Changes a card in the node's folder, so that all processes see the change.
pub(super) fn change<T>(
    unit: &Unit<'_>,
    edit: impl FnOnce(&mut Gpu, &Model) -> Answer<T>,
) -> Answer<T> {
    let folder = Folder::at(session::folder());
    let changed = folder.revise(|state| {
        let place = state.gpus.iter().position(|gpu| gpu.uuid == unit.gpu.uuid);
        let gpu = &mut state.gpus[place.ok_or(Refusal(GPU_IS_LOST))?];
        let model = state.models.get(&gpu.model).ok_or(Refusal(UNKNOWN))?;
        edit(gpu, model).map_err(Refusal)
    });
    changed.map_err(|Refusal(code)| code)
}

/// Applies the faults to a call: hangs as long as a fault says so, or fails.
fn obey(
    name: &str,
    mut state: Arc<State>,
    mut place: Answer<Place>,
    reload: &dyn Fn(&mut session::Session) -> Answer<Arc<State>>,
    find: Find<'_>,
) -> Answer<(Arc<State>, Answer<Place>)> {
    let mut hang: Option<(Watch, Option<u64>, Deadline)> = None;
    loop {
        match fault(name, &state, &place).map(|fault| fault.effect) {
            None => return Ok((state, place)),
            Some(Effect::Fail { code }) => return Err(code),
            Some(Effect::Hang { millis }) => match &hang {
                Some((_, same, deadline)) if *same == millis && deadline.over() => {
                    return Ok((state, place));
                }
                Some((watch, same, deadline)) if *same == millis => watch.wait(*deadline),
                _ => {
                    let watch = Watch::new(session::folder());
                    hang = Some((watch, millis, Deadline::after(millis)));
                }
            },
        }
        // Read again: the fault may have been cleared, and the device may be at another position.
        state = session::with(reload)?;
        place = find(&state);
    }
}

/// First fault for this call and device.
fn fault<'a>(name: &str, state: &'a State, place: &Answer<Place>) -> Option<&'a Fault> {
    let unit = place.and_then(|place| Unit::at(state, place)).ok();
    state.faults.iter().find(|fault| {
        let device = fault.device.as_ref().is_none_or(|wanted| {
            unit.is_some_and(|unit| {
                let mig = unit.mig.is_some_and(|(_, mig, _)| mig.uuid == *wanted);
                mig || unit.gpu.uuid == *wanted
            })
        });
        device && names(&fault.call, name)
    })
}

/// True if the name in a fault matches a call: the same name, the name without version, or `*`.
fn names(fault: &str, call: &str) -> bool {
    fault == "*" || fault == call || fault == base(call)
}

/// Name of a function without its version: `_v2`, or a `V` at the end.
fn base(call: &str) -> &str {
    if let Some((base, version)) = call.rsplit_once("_v")
        && !version.is_empty()
        && version.bytes().all(|b| b.is_ascii_digit())
    {
        return base;
    }
    call.strip_suffix('V').unwrap_or(call)
}

/// Appends a line to the log of calls, if the log exists.
fn record(name: &str, state: &State, place: &Answer<Place>) {
    let log = session::folder().join(store::CALLS);
    let Ok(mut log) = fs_err::OpenOptions::new().append(true).open(log) else {
        return;
    };
    let unit = place.and_then(|place| Unit::at(state, place)).ok();
    let target = unit.map_or("-", |unit| match unit.mig {
        Some((_, mig, _)) => &mig.uuid,
        None => &unit.gpu.uuid,
    });
    // A call must not fail because it cannot be recorded.
    let _ = log.write_all(format!("{name} {target}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::names;
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
        assert_eq!(names(fault, call), stands);
    }
}
