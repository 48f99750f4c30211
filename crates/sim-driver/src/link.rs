//! NVLinks and the NVLink fabric.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_GPU_FABRIC_STATE_COMPLETED, NVML_NVLINK_MAX_LINKS, nvmlGpuFabricInfo_t,
    nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t, nvmlNvLinkInfo_v1_t, nvmlNvLinkInfo_v2_t,
    nvmlNvLinkUtilizationControl_t, nvmlPciInfo_t,
};
use sim_node::state::NvLink;

use super::{
    call::CalledDevice,
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult, VERSION_MISMATCH},
    identity::{ShortPci, bare, short_pci_info},
    memory::to_counter,
    nvml,
    wire::{Out, mark_of},
};

/// First architecture whose fabric has an identity: Hopper.
const NAMED_FABRIC: u32 = 9;
/// First architecture whose links have no configurable counters: Ampere.
const NO_COUNTERS: u32 = 7;

nvml! {
    device nvmlDeviceGetNvLinkState: (link: c_uint, active: Out<c_uint>) |unit|
        active.set(c_uint::from(find_link(unit, link)?.active));
    device nvmlDeviceGetNvLinkVersion: (link: c_uint, version: Out<c_uint>) |unit| {
        find_link(unit, link)?;
        version.set(unit.model.nvlink_version)
    };
    device nvmlDeviceGetNvLinkCapability: (link: c_uint, capability: c_uint, able: Out<c_uint>) |unit| {
        let link = find_link(unit, link)?;
        match capability {
            // Peer-to-peer access, atomics, and validity of the link.
            0 | 2 | 5 => able.set(c_uint::from(link.active)),
            1 | 3 | 4 => able.set(0),
            _ => Err(INVALID_ARGUMENT),
        }
    };
    device nvmlDeviceGetNvLinkRemotePciInfo_v2: (link: c_uint, info: Out<nvmlPciInfo_t>) |unit|
        info.set(bare(up(unit, link)?.remote));
    device nvmlDeviceGetNvLinkRemotePciInfo: (link: c_uint, info: Out<ShortPci>) |unit|
        info.set(short_pci_info(&bare(up(unit, link)?.remote)));
    device nvmlDeviceGetNvLinkRemoteDeviceType: (link: c_uint, kind: Out<c_uint>) |unit|
        kind.set(if up(unit, link)?.switch { 2 } else { 0 });
    device nvmlDeviceGetNvLinkErrorCounter: (link: c_uint, counter: c_uint, value: Out<u64>) |unit| {
        find_link(unit, link)?;
        if counter > 4 {
            return Err(INVALID_ARGUMENT);
        }
        // All errors count as replays of the first link.
        value.set(if (link, counter) == (0, 0) { unit.gpu.sensors.nvlink_errors } else { 0 })
    };
    device nvmlDeviceResetNvLinkErrorCounters: (link: c_uint) |unit| find_link(unit, link).map(|_| ());
    device nvmlDeviceGetNvLinkUtilizationCounter: (link: c_uint, counter: c_uint, received: Out<u64>, sent: Out<u64>) |unit| {
        require_counter(unit, link, counter)?;
        received.set(0)?;
        sent.set(0)
    };
    device nvmlDeviceGetNvLinkUtilizationControl: (link: c_uint, counter: c_uint, control: Out<nvmlNvLinkUtilizationControl_t>) |unit| {
        require_counter(unit, link, counter)?;
        // Unit: bytes; filter: all packets.
        control.set(nvmlNvLinkUtilizationControl_t { units: 2, pktfilter: 0xff })
    };
    device nvmlDeviceSetNvLinkUtilizationControl: (link: c_uint, counter: c_uint, _control: Out<nvmlNvLinkUtilizationControl_t>, _reset: c_uint) |unit|
        require_counter(unit, link, counter);
    device nvmlDeviceFreezeNvLinkUtilizationCounter: (link: c_uint, counter: c_uint, _freeze: c_uint) |unit|
        require_counter(unit, link, counter);
    device nvmlDeviceResetNvLinkUtilizationCounter: (link: c_uint, counter: c_uint) |unit|
        require_counter(unit, link, counter);
    device nvmlDeviceGetNvLinkInfo: (info: Out<nvmlNvLinkInfo_v1_t>) |unit| {
        let newer = info.cast::<nvmlNvLinkInfo_v2_t>();
        let is_newer = newer.check_version(2).is_ok();
        if !is_newer && info.check_version(1).is_err() {
            return Err(VERSION_MISMATCH);
        }
        unit.require_card()?;
        (unit.model.nvlink_version > 0).then_some(()).ok_or(NOT_SUPPORTED)?;
        // Both versions begin with the encryption state; the firmware list stays empty.
        info.set(nvmlNvLinkInfo_v1_t { version: info.get()?.version, isNvleEnabled: 0 })?;
        if is_newer { newer.set_end(0_u32) } else { Ok(()) }
    };
    device nvmlDeviceGetGpuFabricInfo: (info: Out<nvmlGpuFabricInfo_t>) |unit| {
        let (cluster, clique) = fabric_identity(unit)?;
        info.set(nvmlGpuFabricInfo_t {
            clusterUuid: cluster,
            status: status(unit),
            cliqueId: clique,
            state: fabric_state(unit),
        })
    };
    device nvmlDeviceGetGpuFabricInfoV: (info: Out<nvmlGpuFabricInfo_v3_t>) |unit| {
        let older = info.cast::<nvmlGpuFabricInfo_v2_t>();
        let is_older = older.check_version(2).is_ok();
        if !is_older && info.check_version(3).is_err() {
            return Err(VERSION_MISMATCH);
        }
        let (cluster, clique) = fabric_identity(unit)?;
        if is_older {
            return older.set(nvmlGpuFabricInfo_v2_t {
                version: mark_of::<nvmlGpuFabricInfo_v2_t>(2),
                clusterUuid: cluster,
                status: status(unit),
                cliqueId: clique,
                state: fabric_state(unit),
                healthMask: 0,
            });
        }
        info.set(nvmlGpuFabricInfo_v3_t {
            version: mark_of::<nvmlGpuFabricInfo_v3_t>(3),
            clusterUuid: cluster,
            status: status(unit),
            cliqueId: clique,
            state: fabric_state(unit),
            healthMask: 0,
            healthSummary: 1,
        })
    };
}

/// Link of a card. `NOT_SUPPORTED` for a card without NVLink, `INVALID_ARGUMENT` for a number that
/// the card does not have.
pub(super) fn find_link<'a>(unit: &CalledDevice<'a>, link: c_uint) -> NvmlResult<&'a NvLink> {
    unit.require_card()?;
    if link >= NVML_NVLINK_MAX_LINKS {
        return Err(INVALID_ARGUMENT);
    }
    if unit.model.nvlink_version == 0 {
        return Err(NOT_SUPPORTED);
    }
    let position = usize::try_from(link).map_err(|_| INVALID_ARGUMENT)?;
    unit.gpu.links.get(position).ok_or(INVALID_ARGUMENT)
}

/// Fails unless a link has this counter. Newer cards have fields in place of counters.
fn require_counter(unit: &CalledDevice<'_>, link: c_uint, counter: c_uint) -> NvmlResult {
    find_link(unit, link)?;
    match counter {
        0 | 1 if unit.model.architecture < NO_COUNTERS => Ok(()),
        0 | 1 => Err(NOT_SUPPORTED),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// Link that is up; a link that is down has no other end.
fn up<'a>(unit: &CalledDevice<'a>, link: c_uint) -> NvmlResult<&'a NvLink> {
    let link = find_link(unit, link)?;
    link.active.then_some(link).ok_or(NOT_SUPPORTED)
}

/// Fabric identity and clique of a card; fails for older fabrics, which have none.
fn fabric_identity(unit: &CalledDevice<'_>) -> NvmlResult<([u8; 16], c_uint)> {
    unit.require_card()?;
    let switched = unit.gpu.links.iter().any(|link| link.switch);
    if unit.model.architecture < NAMED_FABRIC || !switched {
        return Err(NOT_SUPPORTED);
    }
    // A single machine forms a cluster of its own, whose UUID is zero.
    let named = unit.state.machine.fabric.as_ref();
    let named = named.and_then(|fabric| Some((fabric.cluster_bytes()?, fabric.clique)));
    Ok(named.unwrap_or(([0; 16], 0)))
}

/// State of the card's registration with the fabric.
fn fabric_state(unit: &CalledDevice<'_>) -> u8 {
    match unit.gpu.sensors.fabric_state {
        begun @ (1 | 2) => u8::try_from(begun).unwrap_or(0),
        _ => u8::try_from(NVML_GPU_FABRIC_STATE_COMPLETED).unwrap_or(0),
    }
}

/// Result of the card's registration with the fabric.
fn status(unit: &CalledDevice<'_>) -> c_uint {
    to_counter(unit.gpu.sensors.fabric_status)
}
