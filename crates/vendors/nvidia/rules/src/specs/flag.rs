//! The feature flags of NVIDIA's CDI library, under its names: what they change in a spec of ours.

use config::NvidiaCdi;

const NO_IPC: &str = "disable-ipc-discoverer";
const NO_GROUPS: &str = "no-additional-gids-for-device-nodes";
const COMPANIONS: &str = "enable-explicit-driver-libraries";
const COHERENT: &str = "enable-coherent-annotations";

/// Flags about how NVIDIA finds things: there is nothing here that they could switch off.
const WITHOUT_EFFECT: [&str; 3] = [
    "disable-nvsandboxutils",
    "disable-nvsandbox-utils",
    "disable-multiple-csv-devices",
];

/// What the flags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags {
    /// Whether the sockets of daemons are handed over.
    pub(super) ipc: bool,
    /// Whether containers are put into the groups of nodes that not everybody may use.
    pub(super) groups: bool,
    /// Whether libraries beside the driver's own are handed over.
    pub(super) companions: bool,
    /// Whether cards are marked by how they see the processor's memory.
    pub(super) coherent: bool,
}

// === impl Flags ===

impl Flags {
    pub(super) fn of(cdi: &NvidiaCdi) -> Self {
        let has = |flag: &str| cdi.feature_flags.iter().any(|own| own == flag);
        Self {
            ipc: !has(NO_IPC),
            groups: !has(NO_GROUPS),
            companions: has(COMPANIONS),
            coherent: has(COHERENT),
        }
    }

    /// The flags that are no flags of NVIDIA's.
    pub(super) fn unknown(cdi: &NvidiaCdi) -> impl Iterator<Item = &str> {
        let known = |flag: &&str| {
            [NO_IPC, NO_GROUPS, COMPANIONS, COHERENT].contains(flag)
                || WITHOUT_EFFECT.contains(flag)
        };
        let flags = cdi.feature_flags.iter().map(String::as_str);
        flags.filter(move |flag| !known(flag))
    }
}
