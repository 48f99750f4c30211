//! Compute instances: the profiles of a GPU instance, its instances, creation and destruction.
//! Programs see a compute instance in a GPU instance as a MIG device.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_COMPUTE_INSTANCE_PROFILE_COUNT, nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t,
    nvmlComputeInstanceProfileInfo_t, nvmlComputeInstanceProfileInfo_v2_t,
};
use sim_node::{
    mig,
    state::{Gpu, GpuInstance, MigDevice, MigProfile},
};

use super::{
    call,
    code::{
        IN_USE, INSUFFICIENT_RESOURCES, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlResult,
    },
    identity::device_handle,
    instance::{InstanceOnCard, find_instance, pointer, to_nvml_count},
    nvml,
    session::{self, HandleKey},
    shape::{compute_summary, compute_versioned},
    wire::{Handle, Maybe, Out},
};

/// Slices of NVML's compute instance profiles, by profile number. The last profile is a second one
/// with one slice, which no simulated card has.
const PROFILES: [u32; 7] = [1, 2, 3, 4, 7, 8, 6];

/// Structure of the first version, which has fewer fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ShortInstanceInfo {
    device: Handle,
    instance: Handle,
    id: c_uint,
    profile: c_uint,
}

nvml! {
    part nvmlGpuInstanceGetComputeInstanceProfileInfo: (profile: c_uint, engine: c_uint, info: Out<nvmlComputeInstanceProfileInfo_t>) |part| {
        let slices = slices(part.shape, profile, engine)?;
        info.set(compute_summary(part.shape, profile, slices))
    };
    part nvmlGpuInstanceGetComputeInstanceProfileInfoV: (profile: c_uint, engine: c_uint, info: Out<nvmlComputeInstanceProfileInfo_v2_t>) |part|
        compute_versioned(&info, || Ok((part.shape, profile, slices(part.shape, profile, engine)?)));
    part nvmlGpuInstanceGetComputeInstanceRemainingCapacity: (profile: c_uint, count: Out<c_uint>) |part|
        count.set(free_slices(part.unit.gpu, part) / slices(part.shape, profile, 0)?.max(1));
    part nvmlGpuInstanceGetComputeInstancePossiblePlacements: (profile: c_uint, places: Maybe<nvmlComputeInstancePlacement_t>, count: Out<c_uint>) |part| {
        let size = slices(part.shape, profile, 0)?;
        let all = compute_starts(part.shape, size).map(|start| nvmlComputeInstancePlacement_t { start, size });
        let all: Vec<_> = all.collect();
        if let Some(places) = places.non_null() {
            places.set_all(&all)?;
        }
        count.set(to_nvml_count(all.len())?)
    };
    part nvmlGpuInstanceGetComputeInstances: (profile: c_uint, list: Out<Handle>, count: Out<c_uint>) |part| {
        let slices = slices(part.shape, profile, 0)?;
        let same = computes_inside(part.unit.gpu, part.id).filter(|mig| mig.slices == slices);
        // By contract the caller has room for as many as fit in the GPU instance.
        let fit = same.take((part.shape.slices / slices.max(1)) as usize);
        let handles: Vec<_> = fit.map(|mig| compute_handle(part, mig.ci)).collect();
        list.set_all(&handles)?;
        count.set(to_nvml_count(handles.len())?)
    };
    part nvmlGpuInstanceGetComputeInstanceById: (id: c_uint, found: Out<Handle>) |part| {
        let there = computes_inside(part.unit.gpu, part.id).any(|mig| mig.ci == id);
        there.then_some(()).ok_or(NOT_FOUND)?;
        found.set(compute_handle(part, id))
    };
    part nvmlGpuInstanceCreateComputeInstance: (profile: c_uint, made: Out<Handle>) |part|
        create_compute(part, profile, None, &made);
    part nvmlGpuInstanceCreateComputeInstanceWithPlacement: (profile: c_uint, place: Out<nvmlComputeInstancePlacement_t>, made: Out<Handle>) |part|
        create_compute(part, profile, Some(place.get()?), &made);
    compute nvmlComputeInstanceGetInfo_v2: (info: Out<nvmlComputeInstanceInfo_t>) |found| {
        let (part, mig) = found;
        let (device, parent, profile) = parent_handles(part, mig)?;
        info.set(nvmlComputeInstanceInfo_t {
            device: pointer(device),
            gpuInstance: pointer(parent),
            id: mig.ci,
            profileId: profile,
            placement: nvmlComputeInstancePlacement_t { start: compute_start(part, mig), size: mig.slices },
        })
    };
    compute nvmlComputeInstanceGetInfo: (info: Out<ShortInstanceInfo>) |found| {
        let (part, mig) = found;
        let (device, instance, profile) = parent_handles(part, mig)?;
        info.set(ShortInstanceInfo { device, instance, id: mig.ci, profile })
    };
    compute nvmlComputeInstanceDestroy: () |found| {
        let (part, mig) = found;
        call::change_card(&part.unit, |gpu, _| destroy(gpu, part, mig))
    };
}

/// Runs a call for a compute instance by its handle.
pub(super) fn on(
    name: &str,
    instance: Handle,
    body: impl FnOnce((&InstanceOnCard<'_>, &MigDevice)) -> NvmlResult,
) -> u32 {
    call::answer(|| {
        call::call_device(name, &|state| find_instance(state, instance), |unit| {
            let key = session::with_session(|session| session.find_key(instance).cloned())?;
            let HandleKey::ComputeInstance(..) = key else {
                return Err(INVALID_ARGUMENT);
            };
            let (_, mig, _) = unit.mig.ok_or(INVALID_ARGUMENT)?;
            body((&InstanceOnCard::new(unit, mig.gi)?, mig))
        })
    })
}

/// Creates a compute instance, which is a new MIG device. The slices of a GPU instance are alike,
/// so a wanted placement only has to be a possible one.
fn create_compute(
    part: &InstanceOnCard<'_>,
    profile: c_uint,
    wanted: Option<nvmlComputeInstancePlacement_t>,
    out: &Out<Handle>,
) -> NvmlResult {
    let slices = slices(part.shape, profile, 0)?;
    if let Some(place) = wanted {
        let possible = compute_starts(part.shape, slices).any(|start| start == place.start);
        if !possible || place.size != slices {
            return Err(INVALID_ARGUMENT);
        }
    }
    let ci = call::change_card(&part.unit, |gpu, _| {
        let free = |ci: &u32| computes_inside(gpu, part.id).all(|mig| mig.ci != *ci);
        let ci = (0..mig::COMPUTE_INSTANCES).find(free);
        let ci = ci.filter(|_| free_slices(gpu, part) >= slices);
        let ci = ci.ok_or(INSUFFICIENT_RESOURCES)?;
        let new = mig::new_mig_device(gpu, part.shape, (part.id, ci, part.start), slices);
        gpu.migs.push(new);
        gpu.migs.sort_by_key(|mig| (mig.gi, mig.ci));
        Ok(ci)
    })?;
    out.set(compute_handle(part, ci))
}

/// Destroys a compute instance; its GPU instance stays.
fn destroy(gpu: &mut Gpu, part: &InstanceOnCard<'_>, mig: &MigDevice) -> NvmlResult {
    let ids = Some((mig.gi, mig.ci));
    if gpu.processes.iter().any(|process| process.instance == ids) {
        return Err(IN_USE);
    }
    gpu.migs.retain(|other| other.uuid != mig.uuid);
    if gpu.instances.iter().all(|instance| instance.id != part.id) {
        gpu.instances.push(GpuInstance {
            id: part.id,
            profile: part.shape.name.clone(),
            start: part.start,
        });
    }
    Ok(())
}

/// Compute instances of a GPU instance.
fn computes_inside(gpu: &Gpu, gi: u32) -> impl Iterator<Item = &MigDevice> {
    gpu.migs.iter().filter(move |mig| mig.gi == gi)
}

/// Number of free compute slices of a GPU instance.
fn free_slices(gpu: &Gpu, part: &InstanceOnCard<'_>) -> u32 {
    let used = computes_inside(gpu, part.id).map(|mig| mig.slices);
    let used = used.fold(0, u32::saturating_add);
    part.shape.slices.saturating_sub(used)
}

/// Possible first slices of a compute instance with `slices` slices.
fn compute_starts(shape: &MigProfile, slices: u32) -> impl Iterator<Item = u32> + use<> {
    let all = shape.slices;
    let starts = (0..all).step_by(slices.max(1) as usize);
    starts.filter(move |start| start.saturating_add(slices) <= all)
}

/// First slice of a compute instance: after those with lower ids.
fn compute_start(part: &InstanceOnCard<'_>, mig: &MigDevice) -> u32 {
    let before = computes_inside(part.unit.gpu, part.id).filter(|other| other.ci < mig.ci);
    before
        .map(|other| other.slices)
        .fold(0, u32::saturating_add)
}

fn parent_handles(
    part: &InstanceOnCard<'_>,
    mig: &MigDevice,
) -> NvmlResult<(Handle, Handle, c_uint)> {
    let key = HandleKey::GpuInstance(part.unit.gpu.uuid.clone(), part.id);
    let parent = session::with_session(|session| session.handle_of(key));
    let profile = PROFILES.iter().position(|slices| *slices == mig.slices);
    Ok((
        device_handle(&part.unit),
        parent,
        to_nvml_count(profile.unwrap_or(0))?,
    ))
}

fn compute_handle(part: &InstanceOnCard<'_>, ci: u32) -> Handle {
    let key = HandleKey::ComputeInstance(part.unit.gpu.uuid.clone(), part.id, ci);
    session::with_session(|session| session.handle_of(key))
}

/// Slices of a compute instance profile, if the GPU instance supports it.
fn slices(shape: &MigProfile, profile: c_uint, engine: c_uint) -> NvmlResult<u32> {
    if profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engine != 0 {
        return Err(INVALID_ARGUMENT);
    }
    let position = usize::try_from(profile).map_err(|_| INVALID_ARGUMENT)?;
    let slices = PROFILES.get(position).ok_or(NOT_SUPPORTED)?;
    (*slices <= shape.slices)
        .then_some(*slices)
        .ok_or(NOT_SUPPORTED)
}
