//! Checks of pools whose cards are shared through NVIDIA's MPS.

use crate::{Method, Pool, source::SectionReader};

/// Largest number of units that a card shared through MPS can become.
// An MPS daemon serves 48 clients per card, 60 from CUDA 13.1. NVIDIA's own limit is 48 from
// compute capability 7.5, else 16 (k8s-device-plugin, cmd/mps-control-daemon/mps). The config is
// checked without a card, so it has the larger one.
pub(crate) const MPS_CLIENT_LIMIT: u32 = 48;

/// Checks a pool if its devices are shared through MPS.
pub(crate) fn check_mps(pool: &Pool, at: &mut SectionReader<'_>) {
    let (method, replicas) = ("sharing.method", "sharing.replicas");
    let Some(any) = at.option_place(method).or(at.option_place(replicas)) else {
        return;
    };
    if pool.sharing.method != Method::Mps {
        return;
    }
    let most = MPS_CLIENT_LIMIT;
    if pool.sharing.replicas > most {
        let place = at.option_place(replicas).unwrap_or(any);
        let message = format!("an MPS daemon takes at most {most} clients");
        let help = format!("write at most {most}, or use time-slicing");
        at.error_at(place, replicas, message, help);
    }
    if pool.handover.nvidia.mps_root.is_none() {
        let help = "name the daemon's folder on the host: `handover: {nvidia: {mpsRoot: /run/nvidia/mps}}`";
        at.error_at(any, method, "MPS needs `handover.nvidia.mpsRoot`", help);
    }
}
