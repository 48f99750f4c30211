//! Requirements of a resource that are missing: the MPS control daemon, and IMEX channels.

use config::Method;
use rules::{MissingRequirement, ResourceNeed};

use crate::companions::{IMEX_CHANNEL, MPS};

/// Returns the first requirement that is missing for a resource.
pub(crate) fn first_missing(need: &ResourceNeed<'_>) -> Option<MissingRequirement> {
    let daemon = daemon(need);
    if need.pool.sharing.method == Method::Auto {
        // IMEX channels do not depend on the method of sharing, so `auto` does not ask for them.
        return daemon;
    }
    daemon.or_else(|| missing_imex_channel(need))
}

/// Returns the missing MPS control daemon. A resource whose config names MPS waits for the daemon
/// only if the config also names the folder where its file `.started` is.
fn daemon(need: &ResourceNeed<'_>) -> Option<MissingRequirement> {
    let resource = need.resource?;
    let is_up = |name: &String| name == resource.as_str();
    if need.companions.list_class(MPS).iter().any(is_up) {
        return None;
    }
    let reason = "no MPS control daemon is up for it";
    let folder = need.settings.nvidia.probe.mps_path.as_ref();
    let reason = match (need.pool.sharing.method, folder) {
        (Method::Auto, _) => reason.to_owned(),
        (Method::Mps, Some(path)) => format!(
            "{reason}: {}/{resource}/.started is not there; start the daemon, or share by \
             time-slicing",
            path.display()
        ),
        (Method::Mps, None) | (Method::None | Method::TimeSlicing, _) => return None,
    };
    Some(MissingRequirement {
        reason,
        is_required: false,
    })
}

/// Returns the first IMEX channel of the pool that the config requires and the node does not have.
/// NVIDIA's device plugin does not start in this case.
fn missing_imex_channel(need: &ResourceNeed<'_>) -> Option<MissingRequirement> {
    let is_there = |channel: u32| {
        let mut there = need.companions.list_numbers(IMEX_CHANNEL);
        there.any(|number| number == channel)
    };
    let is_required = need.settings.nvidia.imex_required;
    let wanted = need.pool.handover.nvidia.imex.iter().copied();
    let first = wanted
        .filter(|channel| is_required && !is_there(*channel))
        .min()?;
    let reason = format!(
        "IMEX channel {first} is required and /dev/nvidia-caps-imex-channels/channel{first} is not \
         visible to the agent; have the driver make it, or do not require it \
         (`backends.nvidia.imexRequired`, in NVIDIA's config `imex.required`)"
    );
    Some(MissingRequirement {
        reason,
        is_required,
    })
}
