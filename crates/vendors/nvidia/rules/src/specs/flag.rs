//! Feature flags of NVIDIA's CDI library (nvcdi in toolkit 1.20.0), under its names, and their
//! effect on specs made here.

use config::NvidiaCdi;

const NO_IPC: &str = "disable-ipc-discoverer";
const NO_GROUPS: &str = "no-additional-gids-for-device-nodes";
const COMPANIONS: &str = "enable-explicit-driver-libraries";
const COHERENT: &str = "enable-coherent-annotations";

/// Flags for NVIDIA's discovery. They are accepted and have no effect here. The second is an old
/// misspelling that NVIDIA still accepts.
const WITHOUT_EFFECT: [&str; 3] = [
    "disable-nvsandboxutils",
    "disable-nvsandbox-utils",
    "disable-multiple-csv-devices",
];

/// Effects of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CdiFeatureFlags {
    /// True if daemon sockets are handed over.
    pub(super) ipc: bool,
    /// True if containers are put into the groups of nodes that are not open to everyone.
    pub(super) groups: bool,
    /// True if companion libraries are handed over.
    pub(super) companions: bool,
    /// True if cards are annotated with their coherence.
    pub(super) coherent: bool,
}

// === impl CdiFeatureFlags ===

impl CdiFeatureFlags {
    pub(super) fn from_cdi_section(cdi: &NvidiaCdi) -> Self {
        let has = |flag: &str| cdi.feature_flags.iter().any(|own| own == flag);
        Self {
            ipc: !has(NO_IPC),
            groups: !has(NO_GROUPS),
            companions: has(COMPANIONS),
            coherent: has(COHERENT),
        }
    }

    /// Returns the flags that NVIDIA does not know.
    pub(super) fn unknown(cdi: &NvidiaCdi) -> impl Iterator<Item = &str> {
        let known = |flag: &&str| {
            [NO_IPC, NO_GROUPS, COMPANIONS, COHERENT].contains(flag)
                || WITHOUT_EFFECT.contains(flag)
        };
        let flags = cdi.feature_flags.iter().map(String::as_str);
        flags.filter(move |flag| !known(flag))
    }
}
