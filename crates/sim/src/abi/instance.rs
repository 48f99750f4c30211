//! GPU instances and compute instances: which shapes a card offers and which instances it has.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_COMPUTE_INSTANCE_PROFILE_COUNT, NVML_GPU_INSTANCE_PROFILE_COUNT,
    nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t,
    nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t,
};

use super::{
    call::{self, Unit},
    code::{Answer, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED},
    identity::handle,
    nvml,
    partition::capable,
    session::{self, Key},
    shape::{compute_summary, compute_versioned, summary, versioned},
    wire::{Handle, Out},
};
use crate::{
    profile::mig,
    state::{Mig, MigProfile, State},
    target::Place,
};

/// The slices of NVML's compute instance profiles, by number.
const COMPUTE_PROFILES: [u32; 8] = [1, 2, 3, 4, 7, 8, 6, 1];

nvml! {
    device nvmlDeviceGetGpuInstanceProfileInfo: (profile: c_uint, info: Out<nvmlGpuInstanceProfileInfo_t>) |unit|
        info.set(summary(offered(unit, profile)?));
    device nvmlDeviceGetGpuInstanceProfileInfoV: (profile: c_uint, info: Out<nvmlGpuInstanceProfileInfo_v2_t>) |unit|
        versioned(&info, || offered(unit, profile));
    device nvmlDeviceGetGpuInstanceProfileInfoByIdV: (id: c_uint, info: Out<nvmlGpuInstanceProfileInfo_v2_t>) |unit|
        versioned(&info, || by_id(unit, id));
    device nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDeviceGetGpuInstancePossiblePlacements: (id: c_uint, places: Out<nvmlGpuInstancePlacement_t>, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        let size = shape.memory_slices;
        let all = mig::starts(shape).into_iter();
        let all: Vec<_> = all.map(|start| nvmlGpuInstancePlacement_t { start, size }).collect();
        if !places.is_null() {
            places.set_all(&all)?;
        }
        count.set(number(all.len())?)
    };
    device nvmlDeviceGetGpuInstanceRemainingCapacity: (id: c_uint, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        let mut trial = unit.gpu.clone();
        let mut room = 0;
        while room < shape.count && mig::add(&mut trial, unit.model, &shape.name).is_ok() {
            room += 1;
        }
        count.set(room)
    };
    device nvmlDeviceGetGpuInstances: (id: c_uint, instances: Out<Handle>, count: Out<c_uint>) |unit| {
        let shape = by_id(unit, id)?;
        let mut ids: Vec<_> = parts(unit, &shape.name).map(|mig| mig.gi).collect();
        ids.dedup();
        let handles = session::with(|session| {
            let key = |gi: &u32| Key::GpuInstance(unit.gpu.uuid.clone(), *gi);
            ids.iter().map(|gi| session.handle(key(gi))).collect::<Vec<_>>()
        });
        instances.set_all(&handles)?;
        count.set(number(handles.len())?)
    };
    device nvmlDeviceGetGpuInstanceById: (id: c_uint, instance: Out<Handle>) |unit| {
        capable(unit)?;
        let there = unit.gpu.migs.iter().any(|mig| mig.gi == id);
        there.then_some(()).ok_or(NOT_FOUND)?;
        let key = Key::GpuInstance(unit.gpu.uuid.clone(), id);
        instance.set(session::with(|session| session.handle(key)))
    };
    plain nvmlGpuInstanceGetInfo: (instance: Handle, info: Out<nvmlGpuInstanceInfo_t>) |name|
        on(name, instance, |unit, mig, shape| info.set(nvmlGpuInstanceInfo_t {
            device: pointer(handle(unit)),
            id: mig.gi,
            profileId: shape.id,
            placement: nvmlGpuInstancePlacement_t {
                start: mig.start,
                size: shape.memory_slices,
            },
        }));
    plain nvmlGpuInstanceGetComputeInstanceProfileInfo: (
        instance: Handle,
        profile: c_uint,
        engine: c_uint,
        info: Out<nvmlComputeInstanceProfileInfo_t>,
    ) |name| on(name, instance, |_, _, shape| {
        let slices = compute(shape, profile, engine)?;
        info.set(compute_summary(shape, profile, slices))
    });
    plain nvmlGpuInstanceGetComputeInstanceProfileInfoV: (
        instance: Handle,
        profile: c_uint,
        engine: c_uint,
        info: Out<nvmlComputeInstanceProfileInfo_v2_t>,
    ) |name| on(name, instance, |_, _, shape| {
        compute_versioned(&info, || Ok((shape, profile, compute(shape, profile, engine)?)))
    });
    plain nvmlGpuInstanceGetComputeInstances: (instance: Handle, profile: c_uint, list: Out<Handle>, count: Out<c_uint>) |name|
        on(name, instance, |unit, first, shape| {
            let slices = compute(shape, profile, 0)?;
            let inside = unit.gpu.migs.iter().filter(|mig| mig.gi == first.gi);
            let inside = inside.filter(|mig| mig.slices == slices).map(|mig| (mig.gi, mig.ci));
            let handles = session::with(|session| {
                let key = |(gi, ci)| Key::ComputeInstance(unit.gpu.uuid.clone(), gi, ci);
                inside.map(|ids| session.handle(key(ids))).collect::<Vec<_>>()
            });
            list.set_all(&handles)?;
            count.set(number(handles.len())?)
        });
    plain nvmlGpuInstanceGetComputeInstanceById: (instance: Handle, id: c_uint, found: Out<Handle>) |name|
        on(name, instance, |unit, first, _| {
            let is = |mig: &Mig| mig.gi == first.gi && mig.ci == id;
            unit.gpu.migs.iter().any(is).then_some(()).ok_or(NOT_FOUND)?;
            let key = Key::ComputeInstance(unit.gpu.uuid.clone(), first.gi, id);
            found.set(session::with(|session| session.handle(key)))
        });
    plain nvmlComputeInstanceGetInfo_v2, nvmlComputeInstanceGetInfo: (instance: Handle, info: Out<nvmlComputeInstanceInfo_t>) |name|
        on(name, instance, |unit, mig, _| {
            let key = Key::GpuInstance(unit.gpu.uuid.clone(), mig.gi);
            let parent = session::with(|session| session.handle(key));
            let profile = COMPUTE_PROFILES.iter().position(|slices| *slices == mig.slices);
            info.set(nvmlComputeInstanceInfo_t {
                device: pointer(handle(unit)),
                gpuInstance: pointer(parent),
                id: mig.ci,
                profileId: number(profile.unwrap_or(0))?,
                placement: nvmlComputeInstancePlacement_t { start: 0, size: mig.slices },
            })
        });
}

/// The shape behind one of NVML's GPU instance profiles.
fn offered<'a>(unit: &Unit<'a>, profile: c_uint) -> Answer<&'a MigProfile> {
    capable(unit)?;
    // Newer drivers know one more profile than the header's count says.
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

fn parts<'a>(unit: &Unit<'a>, profile: &str) -> impl Iterator<Item = &'a Mig> {
    unit.gpu
        .migs
        .iter()
        .filter(move |mig| mig.profile == profile)
}

fn number(count: usize) -> Answer<c_uint> {
    c_uint::try_from(count).map_err(|_| INVALID_ARGUMENT)
}

fn pointer<T>(handle: Handle) -> *mut T {
    std::ptr::without_provenance_mut(handle.0)
}

/// The slices of a compute instance profile that fits a GPU instance.
fn compute(shape: &MigProfile, profile: c_uint, engine: c_uint) -> Answer<u32> {
    if profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engine != 0 {
        return Err(INVALID_ARGUMENT);
    }
    let position = usize::try_from(profile).map_err(|_| INVALID_ARGUMENT)?;
    // The last profile is a second kind of one slice, which no card here has.
    let slices = COMPUTE_PROFILES[..7].get(position).ok_or(NOT_SUPPORTED)?;
    (*slices <= shape.slices)
        .then_some(*slices)
        .ok_or(NOT_SUPPORTED)
}

/// A call for an instance by its handle: the card, the instance (or the first compute instance
/// in it), and its shape.
fn on(
    name: &str,
    instance: Handle,
    body: impl FnOnce(&Unit<'_>, &Mig, &MigProfile) -> Answer,
) -> Answer {
    call::on(
        name,
        |state| find(state, instance),
        |part| {
            let (_, mig, shape) = part.mig.ok_or(INVALID_ARGUMENT)?;
            body(&Unit { mig: None, ..*part }, mig, shape)
        },
    )
}

fn find(state: &State, instance: Handle) -> Answer<Place> {
    let key = session::with(|session| session.key(instance).cloned())?;
    let (uuid, gi, ci) = match &key {
        Key::GpuInstance(uuid, gi) => (uuid, *gi, None),
        Key::ComputeInstance(uuid, gi, ci) => (uuid, *gi, Some(*ci)),
        Key::Device(_) | Key::Set(_) => return Err(INVALID_ARGUMENT),
    };
    let card = state.gpus.iter().position(|gpu| gpu.uuid == *uuid);
    let card = card.ok_or(NOT_FOUND)?;
    let is = |mig: &Mig| mig.gi == gi && ci.is_none_or(|ci| mig.ci == ci);
    let mig = state.gpus[card].migs.iter().position(is).ok_or(NOT_FOUND)?;
    Ok((card, Some(mig)))
}
