//! GPU instances: the profiles of a card, its instances, creation and destruction.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_GPU_INSTANCE_PROFILE_COUNT, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t,
    nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t,
};
use sim_node::{
    mig,
    state::{Gpu, Instance, MigProfile, Place, State},
};

use super::{
    call::{self, Unit},
    code::{Answer, IN_USE, INSUFFICIENT_RESOURCES, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED},
    identity::handle,
    nvml,
    partition::{capable, enabled},
    session::{self, Key},
    shape::{summary, versioned},
    wire::{Handle, Maybe, Out},
};

/// A GPU instance and its card.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// The whole card.
    pub(super) unit: Unit<'a>,
    pub(super) id: u32,
    pub(super) start: u32,
    pub(super) shape: &'a MigProfile,
}

nvml! {
    device nvmlDeviceGetGpuInstanceProfileInfo: (profile: c_uint, info: Out<nvmlGpuInstanceProfileInfo_t>) |unit|
        info.set(summary(offered(unit, profile)?));
    device nvmlDeviceGetGpuInstanceProfileInfoV: (profile: c_uint, info: Out<nvmlGpuInstanceProfileInfo_v2_t>) |unit|
        versioned(&info, || offered(unit, profile));
    device nvmlDeviceGetGpuInstanceProfileInfoByIdV: (id: c_uint, info: Out<nvmlGpuInstanceProfileInfo_v2_t>) |unit|
        versioned(&info, || by_id(unit, id));
    device nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDeviceGetGpuInstancePossiblePlacements: (id: c_uint, places: Maybe<nvmlGpuInstancePlacement_t>, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        let size = shape.memory_slices;
        let all = mig::starts(shape).into_iter();
        let all: Vec<_> = all.map(|start| nvmlGpuInstancePlacement_t { start, size }).collect();
        if let Some(places) = places.place() {
            places.set_all(&all)?;
        }
        count.set(number(all.len())?)
    };
    device nvmlDeviceGetGpuInstanceRemainingCapacity: (id: c_uint, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        enabled(unit)?;
        let mut trial = unit.gpu.clone();
        let mut room = 0;
        while let Some((id, start)) = mig::room(&trial, unit.model, shape, None) {
            trial.instances.push(Instance { id, profile: shape.name.clone(), start });
            room += 1;
        }
        count.set(room)
    };
    device nvmlDeviceGetGpuInstances: (id: c_uint, instances: Out<Handle>, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        enabled(unit)?;
        let mut ids: Vec<_> = all(unit.gpu).filter(|(_, profile, _)| *profile == shape.name).map(|(id, ..)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        // By contract the caller has room for as many as fit on the card.
        let fit = ids.iter().take(shape.count as usize);
        let handles: Vec<_> = fit.map(|id| key(unit, *id)).collect();
        instances.set_all(&handles)?;
        count.set(number(handles.len())?)
    };
    device nvmlDeviceGetGpuInstanceById: (id: c_uint, instance: Out<Handle>) |unit| {
        enabled(unit)?;
        let there = all(unit.gpu).any(|(known, ..)| known == id);
        there.then_some(()).ok_or(NOT_FOUND)?;
        instance.set(key(unit, id))
    };
    device nvmlDeviceCreateGpuInstance: (id: c_uint, instance: Out<Handle>) |unit|
        create(unit, id, None, &instance);
    device nvmlDeviceCreateGpuInstanceWithPlacement: (id: c_uint, place: Out<nvmlGpuInstancePlacement_t>, instance: Out<Handle>) |unit|
        create(unit, id, Some(place.get()?), &instance);
    part nvmlGpuInstanceGetInfo: (info: Out<nvmlGpuInstanceInfo_t>) |part|
        info.set(nvmlGpuInstanceInfo_t {
            device: pointer(handle(&part.unit)),
            id: part.id,
            profileId: part.shape.id,
            placement: nvmlGpuInstancePlacement_t {
                start: part.start,
                size: part.shape.memory_slices,
            },
        });
    part nvmlGpuInstanceDestroy: () |part| call::change(&part.unit, |gpu, _| {
        if gpu.migs.iter().any(|mig| mig.gi == part.id) {
            return Err(IN_USE);
        }
        gpu.instances.retain(|instance| instance.id != part.id);
        Ok(())
    });
}

// === impl Part ===

impl<'a> Part<'a> {
    /// Looks up the instance of a handle on a given card.
    fn of(unit: &Unit<'a>, instance: Handle) -> Answer<Self> {
        let key = session::with(|session| session.key(instance).cloned())?;
        let Key::GpuInstance(_, id) = key else {
            return Err(INVALID_ARGUMENT);
        };
        Self::new(unit, id)
    }

    /// Looks up the instance with this id.
    pub(super) fn new(unit: &Unit<'a>, id: u32) -> Answer<Self> {
        let found = all(unit.gpu).find(|(known, ..)| *known == id);
        let (_, profile, start) = found.ok_or(INVALID_ARGUMENT)?;
        Ok(Self {
            unit: Unit { mig: None, ..*unit },
            id,
            start,
            shape: unit.model.shape(profile).ok_or(INVALID_ARGUMENT)?,
        })
    }
}

/// Runs a call for a GPU instance by its handle.
pub(super) fn on(name: &str, instance: Handle, body: impl FnOnce(&Part<'_>) -> Answer) -> u32 {
    let find = |state: &State| find(state, instance);
    call::answer(|| call::on(name, &find, |unit| body(&Part::of(unit, instance)?)))
}

/// Position of an instance: its card, and the first MIG device in the instance if there is one.
pub(super) fn find(state: &State, instance: Handle) -> Answer<Place> {
    let key = session::with(|session| session.key(instance).cloned())?;
    let (uuid, gi, ci) = match &key {
        Key::GpuInstance(uuid, gi) => (uuid, *gi, None),
        Key::ComputeInstance(uuid, gi, ci) => (uuid, *gi, Some(*ci)),
        Key::Device(_) | Key::Set(_) => return Err(INVALID_ARGUMENT),
    };
    let card = state.gpus.iter().position(|gpu| gpu.uuid == *uuid);
    let card = card.ok_or(INVALID_ARGUMENT)?;
    let migs = &state.gpus[card].migs;
    let mig = migs
        .iter()
        .position(|mig| mig.gi == gi && ci.is_none_or(|ci| mig.ci == ci));
    Ok((card, mig))
}

/// GPU instances of a card: id, profile and first slice. An instance with several MIG devices is
/// listed several times.
fn all(gpu: &Gpu) -> impl Iterator<Item = (u32, &str, u32)> {
    let alone = gpu
        .instances
        .iter()
        .map(|i| (i.id, i.profile.as_str(), i.start));
    alone.chain(
        gpu.migs
            .iter()
            .map(|mig| (mig.gi, mig.profile.as_str(), mig.start)),
    )
}

/// Creates a GPU instance, at the wanted placement or where the driver would place it.
fn create(
    unit: &Unit<'_>,
    id: c_uint,
    wanted: Option<nvmlGpuInstancePlacement_t>,
    out: &Out<Handle>,
) -> Answer {
    enabled(unit)?;
    let shape = by_id(unit, id).map_err(|_| INVALID_ARGUMENT)?;
    if let Some(place) = wanted {
        let allowed = mig::starts(shape).contains(&place.start);
        if !allowed || place.size != shape.memory_slices {
            return Err(INVALID_ARGUMENT);
        }
    }
    let made = call::change(unit, |gpu, model| {
        let room = mig::room(gpu, model, shape, wanted.map(|place| place.start));
        let (id, start) = room.ok_or(INSUFFICIENT_RESOURCES)?;
        let profile = shape.name.clone();
        gpu.instances.push(Instance { id, profile, start });
        Ok(id)
    })?;
    out.set(key(unit, made))
}

fn key(unit: &Unit<'_>, id: u32) -> Handle {
    let key = Key::GpuInstance(unit.gpu.uuid.clone(), id);
    session::with(|session| session.handle(key))
}

/// MIG profile of an NVML GPU instance profile number.
fn offered<'a>(unit: &Unit<'a>, profile: c_uint) -> Answer<&'a MigProfile> {
    capable(unit)?;
    // Newer drivers have one more profile than the header's count.
    if profile > NVML_GPU_INSTANCE_PROFILE_COUNT {
        return Err(INVALID_ARGUMENT);
    }
    let shape = unit.model.mig.iter().find(|shape| shape.profile == profile);
    shape.ok_or(NOT_SUPPORTED)
}

fn by_id<'a>(unit: &Unit<'a>, id: c_uint) -> Answer<&'a MigProfile> {
    capable(unit)?;
    let shape = unit.model.mig.iter().find(|shape| shape.id == id);
    shape.ok_or(NOT_SUPPORTED)
}

/// Count in the width of NVML's parameters.
pub(super) fn number(count: usize) -> Answer<c_uint> {
    c_uint::try_from(count).map_err(|_| INVALID_ARGUMENT)
}

/// Handle in the form in which structures hold it.
pub(super) fn pointer<T>(handle: Handle) -> *mut T {
    std::ptr::without_provenance_mut(handle.0)
}
