//! Creation of MIG devices as by the driver: the profiles of a card, their placements, and the
//! instance ids.

use crate::{
    identity::made_up_uuid,
    state::{Gpu, GpuModel, MigDevice, MigProfile},
};

/// Memory slices of a card.
const MEMORY_SLICES: u32 = 8;
/// Compute slices of a card.
const COMPUTE_SLICES: u32 = 7;
/// Number of GPU instance ids of a card, as in the driver's capability files.
pub const GPU_INSTANCES: u32 = 15;
/// Number of compute instance ids of a GPU instance, as in the driver's capability files.
pub const COMPUTE_INSTANCES: u32 = 8;

/// Reason why a MIG device cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The card does not support MIG.
    #[error("{gpu} ({model}) has no MIG")]
    Unsupported {
        /// UUID of the card.
        gpu: String,
        /// Product name of the card.
        model: String,
    },
    /// MIG mode is off.
    #[error("MIG mode is off on {gpu}")]
    Disabled {
        /// UUID of the card.
        gpu: String,
    },
    /// The card has no such profile.
    #[error("{gpu} has no MIG profile `{profile}`; it has: {known}")]
    Profile {
        /// UUID of the card.
        gpu: String,
        /// Requested profile.
        profile: String,
        /// All profiles of the card, separated by commas.
        known: String,
    },
    /// The card has no room.
    #[error("{gpu} has no room for another {profile}")]
    Full {
        /// UUID of the card.
        gpu: String,
        /// Requested profile.
        profile: String,
    },
}

/// Creates a MIG device and returns its UUID. The profile is a name such as `3g.20gb`, or
/// `1c.3g.20gb` for a part of the compute slices. `3g.20gb@4` places it at memory slice 4.
///
/// # Errors
/// If the card does not support MIG, has no such profile, or has no room.
pub fn add_mig_device(gpu: &mut Gpu, model: &GpuModel, profile: &str) -> Result<String, Error> {
    if model.mig.is_empty() {
        return Err(Error::Unsupported {
            gpu: gpu.uuid.clone(),
            model: model.name.clone(),
        });
    }
    if !gpu.mig_enabled {
        return Err(Error::Disabled {
            gpu: gpu.uuid.clone(),
        });
    }
    let (shape, slices, wanted) = parse_mig_name(model, profile).ok_or_else(|| Error::Profile {
        gpu: gpu.uuid.clone(),
        profile: profile.to_owned(),
        known: join_profile_names(model),
    })?;
    let mig = share(gpu, shape, slices, wanted)
        .or_else(|| place_instance(gpu, model, shape, (slices, wanted)))
        .ok_or_else(|| Error::Full {
            gpu: gpu.uuid.clone(),
            profile: profile.to_owned(),
        })?;
    let uuid = mig.uuid.clone();
    gpu.migs.push(mig);
    gpu.migs.sort_by_key(|mig| (mig.gi, mig.ci));
    Ok(uuid)
}

/// Profile, compute slices and first memory slice that a name requests.
fn parse_mig_name<'a>(
    model: &'a GpuModel,
    profile: &str,
) -> Option<(&'a MigProfile, u32, Option<u32>)> {
    let (name, wanted) = match profile.split_once('@') {
        Some((name, start)) => (name, Some(start.parse().ok()?)),
        None => (profile, None),
    };
    if let Some(shape) = model.find_shape(name) {
        return Some((shape, shape.slices, wanted));
    }
    let (slices, rest) = name.split_once("c.")?;
    let (slices, shape) = (slices.parse().ok()?, model.find_shape(rest)?);
    (1..shape.slices)
        .contains(&slices)
        .then_some((shape, slices, wanted))
}

fn join_profile_names(model: &GpuModel) -> String {
    let names: Vec<_> = model.mig.iter().map(|shape| shape.name.as_str()).collect();
    names.join(", ")
}

/// Makes a compute instance in an existing GPU instance that has free slices.
fn share(gpu: &Gpu, shape: &MigProfile, slices: u32, wanted: Option<u32>) -> Option<MigDevice> {
    // A device with all compute slices needs a GPU instance of its own.
    if slices == shape.slices {
        return None;
    }
    let same = gpu.migs.iter().filter(|mig| mig.profile == shape.name);
    let (first, ci) = same
        .filter(|first| wanted.is_none_or(|wanted| wanted == first.start))
        .filter_map(|first| {
            let inside = || gpu.migs.iter().filter(|mig| mig.gi == first.gi);
            let used = inside().map(|mig| mig.slices).fold(0, u32::saturating_add);
            let free = (0..COMPUTE_INSTANCES).find(|ci| inside().all(|mig| mig.ci != *ci))?;
            (used.saturating_add(slices) <= shape.slices).then_some((first, free))
        })
        .next()?;
    Some(new_mig_device(
        gpu,
        shape,
        (first.gi, ci, first.start),
        slices,
    ))
}

/// Makes a new GPU instance where one fits.
fn place_instance(
    gpu: &Gpu,
    model: &GpuModel,
    shape: &MigProfile,
    (slices, wanted): (u32, Option<u32>),
) -> Option<MigDevice> {
    let (id, start) = find_room(gpu, model, shape, wanted)?;
    Some(new_mig_device(gpu, shape, (id, 0, start), slices))
}

/// Id and first memory slice of a new GPU instance, at the wanted slice or where the driver would
/// place it; `None` if it does not fit.
pub fn find_room(
    gpu: &Gpu,
    model: &GpuModel,
    shape: &MigProfile,
    wanted: Option<u32>,
) -> Option<(u32, u32)> {
    let taken = instances(gpu, model);
    let compute = taken.iter().map(|(_, other)| other.slices);
    let compute = compute.fold(0, u32::saturating_add);
    let same = taken.iter().filter(|(_, other)| other.name == shape.name);
    let same = u32::try_from(same.count()).unwrap_or(u32::MAX);
    // Compute slices limit the instances, too: a card has eight memory slices but seven of these.
    if compute.saturating_add(shape.slices) > COMPUTE_SLICES || same >= shape.count {
        return None;
    }
    let start = free_start(&taken, shape, wanted)?;
    Some((instance_id(shape, start), start))
}

/// New MIG device in a GPU instance, from its instance ids and first memory slice.
pub fn new_mig_device(
    gpu: &Gpu,
    shape: &MigProfile,
    (gi, ci, start): (u32, u32, u32),
    slices: u32,
) -> MigDevice {
    MigDevice {
        uuid: made_up_uuid("MIG", &[&gpu.uuid, &gi.to_string(), &ci.to_string()]),
        gi,
        ci,
        profile: shape.name.clone(),
        slices,
        start,
        // MiB that the driver uses in an empty MIG device.
        memory_used_mib: 12,
        ecc_uncorrected: 0,
    }
}

/// GPU instances of a card: first memory slice and profile of each.
pub fn instances<'a>(gpu: &Gpu, model: &'a GpuModel) -> Vec<(u32, &'a MigProfile)> {
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for mig in &gpu.migs {
        let Some(shape) = model.find_shape(&mig.profile) else {
            continue;
        };
        if !seen.contains(&mig.gi) {
            seen.push(mig.gi);
            found.push((mig.start, shape));
        }
    }
    for instance in &gpu.instances {
        if let Some(shape) = model.find_shape(&instance.profile)
            && !seen.contains(&instance.id)
        {
            found.push((instance.start, shape));
        }
    }
    found
}

/// Possible first memory slices of a profile: multiples of its own size.
pub fn possible_starts(shape: &MigProfile) -> Vec<u32> {
    let size = shape.memory_slices.clamp(1, MEMORY_SLICES);
    let all = (0..MEMORY_SLICES).step_by(size as usize);
    let fits = all.filter(|start| start + size <= MEMORY_SLICES);
    fits.take(shape.count as usize).collect()
}

/// First memory slice for a new instance: the wanted one, or the last free one, as the driver
/// chooses.
fn free_start(
    taken: &[(u32, &MigProfile)],
    shape: &MigProfile,
    wanted: Option<u32>,
) -> Option<u32> {
    let fits = |start: &u32| {
        if wanted.is_some_and(|wanted| wanted != *start) {
            return false;
        }
        let end = start + shape.memory_slices;
        let apart = |(at, other): &(u32, &MigProfile)| {
            end <= *at || at.saturating_add(other.memory_slices) <= *start
        };
        taken.iter().all(apart)
    };
    possible_starts(shape).into_iter().rev().find(fits)
}

/// Instance id, which the driver derives from size and placement: `1g` at slice 6 is 13, `2g` at 4
/// is 5.
fn instance_id(shape: &MigProfile, start: u32) -> u32 {
    match shape.memory_slices {
        8 => 0,
        4 => 1 + start / 4,
        2 => 3 + start / 2,
        _ => 7 + start,
    }
}
