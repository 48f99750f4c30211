//! GPU instances: the profiles of a card, its instances, creation and destruction.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_GPU_INSTANCE_PROFILE_COUNT, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t,
    nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t,
};
use sim_node::{
    mig,
    state::{DevicePlace, Gpu, GpuInstance, MigProfile, NodeState},
};

use super::{
    call::{self, CalledDevice},
    code::{
        IN_USE, INSUFFICIENT_RESOURCES, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlResult,
    },
    identity::device_handle,
    nvml,
    partition::{capable, enabled},
    session::{self, HandleKey},
    shape::{instance_summary, versioned},
    wire::{Handle, Maybe, Out},
};

/// A GPU instance and its card.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstanceOnCard<'a> {
    /// The whole card.
    pub(super) unit: CalledDevice<'a>,
    pub(super) id: u32,
    pub(super) start: u32,
    pub(super) shape: &'a MigProfile,
}

nvml! {
    device nvmlDeviceGetGpuInstanceProfileInfo: (profile: c_uint, info: Out<nvmlGpuInstanceProfileInfo_t>) |unit|
        info.set(instance_summary(offered(unit, profile)?));
    device nvmlDeviceGetGpuInstanceProfileInfoV: (profile: c_uint, info: Out<nvmlGpuInstanceProfileInfo_v2_t>) |unit|
        versioned(&info, || offered(unit, profile));
    device nvmlDeviceGetGpuInstanceProfileInfoByIdV: (id: c_uint, info: Out<nvmlGpuInstanceProfileInfo_v2_t>) |unit|
        versioned(&info, || by_id(unit, id));
    device nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDeviceGetGpuInstancePossiblePlacements: (id: c_uint, places: Maybe<nvmlGpuInstancePlacement_t>, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        let size = shape.memory_slices;
        let all = mig::possible_starts(shape).into_iter();
        let all: Vec<_> = all.map(|start| nvmlGpuInstancePlacement_t { start, size }).collect();
        if let Some(places) = places.non_null() {
            places.set_all(&all)?;
        }
        count.set(to_nvml_count(all.len())?)
    };
    device nvmlDeviceGetGpuInstanceRemainingCapacity: (id: c_uint, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        enabled(unit)?;
        let mut trial = unit.gpu.clone();
        let mut room = 0;
        while let Some((id, start)) = mig::find_room(&trial, unit.model, shape, None) {
            trial.instances.push(GpuInstance { id, profile: shape.name.clone(), start });
            room += 1;
        }
        count.set(room)
    };
    device nvmlDeviceGetGpuInstances: (id: c_uint, instances: Out<Handle>, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        enabled(unit)?;
        let mut ids: Vec<_> = all_instances(unit.gpu).filter(|(_, profile, _)| *profile == shape.name).map(|(id, ..)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        // By contract the caller has room for as many as fit on the card.
        let fit = ids.iter().take(shape.count as usize);
        let handles: Vec<_> = fit.map(|id| instance_handle(unit, *id)).collect();
        instances.set_all(&handles)?;
        count.set(to_nvml_count(handles.len())?)
    };
    device nvmlDeviceGetGpuInstanceById: (id: c_uint, instance: Out<Handle>) |unit| {
        enabled(unit)?;
        let there = all_instances(unit.gpu).any(|(known, ..)| known == id);
        there.then_some(()).ok_or(NOT_FOUND)?;
        instance.set(instance_handle(unit, id))
    };
    device nvmlDeviceCreateGpuInstance: (id: c_uint, instance: Out<Handle>) |unit|
        create_instance(unit, id, None, &instance);
    device nvmlDeviceCreateGpuInstanceWithPlacement: (id: c_uint, place: Out<nvmlGpuInstancePlacement_t>, instance: Out<Handle>) |unit|
        create_instance(unit, id, Some(place.get()?), &instance);
    part nvmlGpuInstanceGetInfo: (info: Out<nvmlGpuInstanceInfo_t>) |part|
        info.set(nvmlGpuInstanceInfo_t {
            device: pointer(device_handle(&part.unit)),
            id: part.id,
            profileId: part.shape.id,
            placement: nvmlGpuInstancePlacement_t {
                start: part.start,
                size: part.shape.memory_slices,
            },
        });
    part nvmlGpuInstanceDestroy: () |part| call::change_card(&part.unit, |gpu, _| {
        if gpu.migs.iter().any(|mig| mig.gi == part.id) {
            return Err(IN_USE);
        }
        gpu.instances.retain(|instance| instance.id != part.id);
        Ok(())
    });
}

// === impl InstanceOnCard ===

impl<'a> InstanceOnCard<'a> {
    /// Looks up the instance of a handle on a given card.
    fn of_handle(unit: &CalledDevice<'a>, instance: Handle) -> NvmlResult<Self> {
        let key = session::with_session(|session| session.find_key(instance).cloned())?;
        let HandleKey::GpuInstance(_, id) = key else {
            return Err(INVALID_ARGUMENT);
        };
        Self::new(unit, id)
    }

    /// Looks up the instance with this id.
    pub(super) fn new(unit: &CalledDevice<'a>, id: u32) -> NvmlResult<Self> {
        let found = all_instances(unit.gpu).find(|(known, ..)| *known == id);
        let (_, profile, start) = found.ok_or(INVALID_ARGUMENT)?;
        Ok(Self {
            unit: CalledDevice { mig: None, ..*unit },
            id,
            start,
            shape: unit.model.find_shape(profile).ok_or(INVALID_ARGUMENT)?,
        })
    }
}

/// Runs a call for a GPU instance by its handle.
pub(super) fn on(
    name: &str,
    instance: Handle,
    body: impl FnOnce(&InstanceOnCard<'_>) -> NvmlResult,
) -> u32 {
    let find = |state: &NodeState| find_instance(state, instance);
    call::answer(|| {
        call::call_device(name, &find, |unit| {
            body(&InstanceOnCard::of_handle(unit, instance)?)
        })
    })
}

/// Position of an instance: its card, and the first MIG device in the instance if there is one.
pub(super) fn find_instance(state: &NodeState, instance: Handle) -> NvmlResult<DevicePlace> {
    let key = session::with_session(|session| session.find_key(instance).cloned())?;
    let (uuid, gi, ci) = match &key {
        HandleKey::GpuInstance(uuid, gi) => (uuid, *gi, None),
        HandleKey::ComputeInstance(uuid, gi, ci) => (uuid, *gi, Some(*ci)),
        HandleKey::Device(_) | HandleKey::Set(_) => return Err(INVALID_ARGUMENT),
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
fn all_instances(gpu: &Gpu) -> impl Iterator<Item = (u32, &str, u32)> {
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
fn create_instance(
    unit: &CalledDevice<'_>,
    id: c_uint,
    wanted: Option<nvmlGpuInstancePlacement_t>,
    out: &Out<Handle>,
) -> NvmlResult {
    enabled(unit)?;
    let shape = by_id(unit, id).map_err(|_| INVALID_ARGUMENT)?;
    if let Some(place) = wanted {
        let allowed = mig::possible_starts(shape).contains(&place.start);
        if !allowed || place.size != shape.memory_slices {
            return Err(INVALID_ARGUMENT);
        }
    }
    let made = call::change_card(unit, |gpu, model| {
        let room = mig::find_room(gpu, model, shape, wanted.map(|place| place.start));
        let (id, start) = room.ok_or(INSUFFICIENT_RESOURCES)?;
        let profile = shape.name.clone();
        gpu.instances.push(GpuInstance { id, profile, start });
        Ok(id)
    })?;
    out.set(instance_handle(unit, made))
}

fn instance_handle(unit: &CalledDevice<'_>, id: u32) -> Handle {
    let key = HandleKey::GpuInstance(unit.gpu.uuid.clone(), id);
    session::with_session(|session| session.handle_of(key))
}

/// MIG profile of an NVML GPU instance profile number.
fn offered<'a>(unit: &CalledDevice<'a>, profile: c_uint) -> NvmlResult<&'a MigProfile> {
    capable(unit)?;
    // Newer drivers have one more profile than the header's count.
    if profile > NVML_GPU_INSTANCE_PROFILE_COUNT {
        return Err(INVALID_ARGUMENT);
    }
    let shape = unit.model.mig.iter().find(|shape| shape.profile == profile);
    shape.ok_or(NOT_SUPPORTED)
}

fn by_id<'a>(unit: &CalledDevice<'a>, id: c_uint) -> NvmlResult<&'a MigProfile> {
    capable(unit)?;
    let shape = unit.model.mig.iter().find(|shape| shape.id == id);
    shape.ok_or(NOT_SUPPORTED)
}

/// Count in the width of NVML's parameters.
pub(super) fn to_nvml_count(count: usize) -> NvmlResult<c_uint> {
    c_uint::try_from(count).map_err(|_| INVALID_ARGUMENT)
}

/// Handle in the form in which structures hold it.
pub(super) fn pointer<T>(handle: Handle) -> *mut T {
    std::ptr::without_provenance_mut(handle.0)
}
