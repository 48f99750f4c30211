//! Topology: the closest common ancestor of two cards.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings as sys;
use sim_node::state::Gpu;

use super::{
    affinity::near_cpus,
    call::{CalledDevice, resolve_handle},
    code::{GPU_IS_LOST, INVALID_ARGUMENT, NvmlResult},
    instance::to_nvml_count,
    nvml, session,
    wire::{Handle, Maybe, Out},
};

const INTERNAL: u32 = 0;
const SINGLE: u32 = 10;
const MULTIPLE: u32 = 20;
const HOST_BRIDGE: u32 = 30;
const NODE: u32 = 40;
const SYSTEM: u32 = 50;

nvml! {
    device nvmlDeviceGetTopologyCommonAncestor: (other: Handle, level: Out<c_uint>) |unit| {
        let peer = peer(unit, other)?;
        level.set(common_ancestor(unit.gpu, peer))
    };
    device nvmlDeviceGetTopologyNearestGpus: (level: c_uint, count: Out<c_uint>, devices: Maybe<Handle>) |unit| {
        unit.require_card()?;
        let near = |gpu: &&Gpu| gpu.uuid != unit.gpu.uuid && common_ancestor(unit.gpu, gpu) <= level;
        let found: Vec<_> = unit.state.gpus.iter().filter(near).collect();
        hand(&found, &count, &devices)
    };
    system nvmlSystemGetTopologyGpuSet: (cpu: c_uint, count: Out<c_uint>, devices: Maybe<Handle>) |state| {
        let near = |index: usize| CalledDevice::at_place(state, (index, None)).is_ok_and(|unit| near_cpus(&unit).any(|one| one == cpu));
        let cards = state.gpus.iter().enumerate();
        let found: Vec<_> = cards.filter(|(index, _)| near(*index)).map(|(_, gpu)| gpu).collect();
        hand(&found, &count, &devices)
    };
    device nvmlDeviceGetP2PStatus: (other: Handle, what: c_uint, status: Out<c_uint>) |unit| {
        let peer = peer(unit, other)?;
        if what > sys::nvmlGpuP2PCapsIndex_enum_NVML_P2P_CAPS_INDEX_PROP {
            return Err(INVALID_ARGUMENT);
        }
        let nvlink = are_joined(unit.gpu, peer);
        let close = common_ancestor(unit.gpu, peer) <= HOST_BRIDGE;
        let able = match what {
            sys::nvmlGpuP2PCapsIndex_enum_NVML_P2P_CAPS_INDEX_NVLINK
            | sys::nvmlGpuP2PCapsIndex_enum_NVML_P2P_CAPS_INDEX_ATOMICS => nvlink,
            _ => nvlink || close,
        };
        status.set(if able {
            sys::nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_OK
        } else {
            sys::nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_NOT_SUPPORTED
        })
    };
}

/// Writes as many cards as the caller has room for; `count` receives their number.
fn hand(cards: &[&Gpu], count: &Out<c_uint>, devices: &Maybe<Handle>) -> NvmlResult {
    let room = usize::try_from(count.get()?).map_err(|_| INVALID_ARGUMENT)?;
    count.set(to_nvml_count(cards.len())?)?;
    if room == 0 || cards.is_empty() {
        return Ok(());
    }
    let devices = devices.non_null().ok_or(INVALID_ARGUMENT)?;
    let handles = session::with_session(|session| {
        let some = cards.iter().take(room);
        some.map(|gpu| session.open_card(gpu)).collect::<Vec<_>>()
    });
    devices.set_all(&handles)
}

/// Second card of a pair. As for the first one, a lost card fails the call.
pub(super) fn peer<'a>(unit: &CalledDevice<'a>, other: Handle) -> NvmlResult<&'a Gpu> {
    unit.require_card()?;
    let peer = CalledDevice::at_place(unit.state, resolve_handle(unit.state, other)?)?;
    peer.require_card()?;
    if peer.gpu.lost {
        return Err(GPU_IS_LOST);
    }
    Ok(peer.gpu)
}

/// Closest common ancestor of two cards, derived from the bridges above them.
fn common_ancestor(a: &Gpu, b: &Gpu) -> u32 {
    if a.uuid == b.uuid {
        return INTERNAL;
    }
    let (left, right): (Vec<_>, Vec<_>) =
        (a.under.split('/').collect(), b.under.split('/').collect());
    let same = left.iter().zip(&right).take_while(|(l, r)| l == r).count();
    // Below the common ancestor, a switch has one port for each of the two. More bridges than that
    // mean several switches.
    match same {
        0 if a.numa.is_some() && a.numa == b.numa => NODE,
        0 => SYSTEM,
        1 => HOST_BRIDGE,
        _ if left.len() <= same + 1 && right.len() <= same + 1 => SINGLE,
        _ => MULTIPLE,
    }
}

/// True if NVLinks connect two cards, directly or through switches.
fn are_joined(a: &Gpu, b: &Gpu) -> bool {
    let up = |gpu: &Gpu, remote| gpu.links.iter().any(|l| l.active && l.remote == remote);
    let direct = up(a, b.pci) && up(b, a.pci);
    let switched = |gpu: &Gpu| gpu.links.iter().any(|l| l.active && l.switch);
    direct || switched(a) && switched(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use sim::NodeProfile;

    #[rstest]
    #[case("dgx1-v100", 0, 1, SINGLE)]
    #[case("dgx1-v100", 0, 2, HOST_BRIDGE)]
    #[case("dgx1-v100", 0, 4, SYSTEM)]
    #[case("dgx-a100", 0, 1, MULTIPLE)]
    #[case("dgx-a100", 0, 2, SYSTEM)]
    #[case("hgx2-v100", 0, 1, SINGLE)]
    #[case("hgx2-v100", 0, 2, MULTIPLE)]
    #[case("hgx2-v100", 0, 4, NODE)]
    #[case("hgx2-v100", 0, 8, SYSTEM)]
    fn cards_are_as_close_as_on_the_real_machine(
        #[case] profile: &str,
        #[case] a: usize,
        #[case] b: usize,
        #[case] level: u32,
    ) {
        let state = NodeProfile::find_profile(profile)
            .unwrap()
            .to_state()
            .unwrap();
        assert_eq!(common_ancestor(&state.gpus[a], &state.gpus[b]), level);
        assert_eq!(common_ancestor(&state.gpus[b], &state.gpus[a]), level);
    }
}
