//! The sections of `ostler.yaml` that are not about pools.

use std::path::PathBuf;

use schemars::JsonSchema;

use super::OneOrMany;
use crate::{Discovery, Period, XidSet, source::Said};

/// Where the kubelet is.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KubeletFile {
    /// The device plugin folder.
    pub dir: Option<Said<PathBuf>>,
    /// The pod resources socket.
    pub pod_resources_socket: Option<Said<PathBuf>>,
    /// Whether resources are registered; without, nothing is offered and all else works.
    pub register: Option<Said<bool>>,
}

/// How the hardware is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProbeFile {
    /// The time between two looks.
    pub period: Option<Said<Period>>,
    /// How long a driver call may take.
    pub call_limit: Option<Said<Period>>,
    /// How long a call that concerns the whole driver may take.
    pub driver_call_limit: Option<Said<Period>>,
    /// The pause before a stuck card is tried again; it doubles with each try.
    pub retry_pause: Option<Said<Period>>,
}

/// What each vendor's probe needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BackendsFile {
    /// NVIDIA's cards.
    pub nvidia: NvidiaBackendFile,
}

/// What the probe of NVIDIA's cards needs to know. Paths are as the agent sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NvidiaBackendFile {
    /// The folder under which the driver's files are.
    pub driver_path: Option<Said<PathBuf>>,
    /// Whether the loader is asked for the library where `driverPath` does not have it.
    pub loader_fallback: Option<Said<bool>>,
    /// The driver library itself.
    pub nvml_library: Option<Said<PathBuf>>,
    /// A second folder under which device nodes are.
    pub dev_path: Option<Said<PathBuf>>,
    /// The folder of the MPS daemons.
    pub mps_path: Option<Said<PathBuf>>,
    /// How the cards are found.
    pub discovery: Option<Said<Discovery>>,
}

/// How verdicts are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthFile {
    /// How long a card that does not answer is Unknown before it is Unhealthy.
    pub unanswered_grace: Option<Said<Period>>,
    /// How long a card that is gone stays listed as Unhealthy.
    pub gone_grace: Option<Said<Period>>,
    /// XIDs that say nothing about a card's health: `all`, or numbers.
    pub ignore_xids: Option<Said<XidSet>>,
    /// XIDs that count although they usually do not: `all`, or numbers. They win.
    pub heed_xids: Option<Said<XidSet>>,
}

/// What CDI specs are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CdiFile {
    /// The folder on the host under which the driver's files are.
    pub driver_root: Option<Said<PathBuf>>,
    /// The program on the host that the hooks call.
    pub hook_path: Option<Said<PathBuf>>,
    /// Switches for how specs are made.
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub feature_flags: Option<Said<Vec<String>>>,
    /// Hooks that are left out, or `all`.
    #[schemars(with = "Option<OneOrMany<String>>")]
    pub disable_hooks: Option<Said<Vec<String>>>,
}
