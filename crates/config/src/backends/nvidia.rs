//! The section `backends.nvidia`: settings that NVIDIA's probe is given, and rules that the agent
//! keeps to itself.

mod cdi;
mod handover;
mod mps;
mod overrides;
mod xids;

use std::{path::PathBuf, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    cdi::NvidiaCdi,
    handover::NvidiaHandover,
    overrides::NvidiaOverrides,
    xids::{XidBase, XidSet, Xids},
};
pub(crate) use self::{
    handover::{prefix, relative},
    mps::{MPS_CLIENT_LIMIT, check_mps},
};
use super::Startup;
use crate::{
    KindName, Period, Pool, Selector,
    source::{At, Section, Word, word},
};

/// Settings of NVIDIA's probe, and rules for NVIDIA's devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NvidiaBackend {
    /// The start of the backend.
    #[serde(flatten)]
    pub startup: Startup,
    /// The part that the probe is given.
    #[serde(flatten)]
    pub probe: NvidiaProbe,
    /// The way in which cards in MIG mode are offered.
    pub mig: Mig,
    /// Makes a missing IMEX channel an error.
    pub imex_required: bool,
    /// The contents of CDI specs.
    pub cdi: NvidiaCdi,
    /// The meaning of XIDs.
    pub xids: Xids,
}

// The probe reads the same type as JSON: a key that is missing has its default there, and a key that is
// not known is ignored.
/// Settings of the probe of NVIDIA's cards. Paths are as the agent sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NvidiaProbe {
    /// The folder under which the driver's files are.
    pub driver_path: Option<PathBuf>,
    /// Asks the loader for the library where `driverPath` does not have it.
    pub loader_fallback: bool,
    /// The driver library itself; without it, it is looked for.
    pub nvml_library: Option<PathBuf>,
    /// A second folder under which device nodes are.
    pub dev_path: Option<PathBuf>,
    /// The folder of the MPS daemons.
    pub mps_path: Option<PathBuf>,
    /// The way in which cards are found.
    pub discovery: Discovery,
    /// The longest time that a card may take to join its fabric without a warning.
    #[serde(with = "Period")]
    pub fabric_join: Duration,
}

/// The way in which cards in MIG mode are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mig {
    /// MIG is not looked at: every card is offered whole.
    None,
    /// MIG devices, all of one shape, are offered as if they were cards.
    Single,
    /// MIG devices are offered by shape, cards that are not in MIG mode whole.
    #[default]
    Mixed,
}

/// The way in which cards are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Discovery {
    /// As the machine is.
    #[default]
    Auto,
    /// Through NVML.
    Nvml,
    /// As a Tegra board.
    Tegra,
}

// === impl NvidiaBackend ===

impl Section for NvidiaBackend {
    fn read(&mut self, at: &mut At<'_>) {
        self.startup.read(at);
        self.probe.read(at);
        at.set("mig", &mut self.mig);
        at.set("imexRequired", &mut self.imex_required);
        at.section("cdi", &mut self.cdi);
        at.section("xids", &mut self.xids);
    }
}

impl NvidiaBackend {
    /// The pools of a node whose config names none: whole cards as `nvidia.com/gpu`, MIG devices as
    /// `nvidia.com/mig-<profile>`, or as `nvidia.com/gpu` too under [`Mig::Single`].
    pub fn pools(&self) -> Vec<Pool> {
        let partitions = match self.mig {
            Mig::Single => "nvidia.com/gpu",
            Mig::None | Mig::Mixed => "nvidia.com/mig-{profile}",
        };
        let of = |kind, pool| {
            let selectors = vec![Selector {
                vendor: vec!["nvidia".to_owned()],
                kind: Some(kind),
                ..Selector::default()
            }];
            Pool { selectors, ..pool }
        };
        vec![
            of(KindName::Card, Pool::all("gpu", "nvidia.com/gpu")),
            of(KindName::Partition, Pool::all("mig", partitions)),
        ]
    }
}

// === impl NvidiaProbe ===

impl Section for NvidiaProbe {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("driverPath", &mut self.driver_path);
        at.set("loaderFallback", &mut self.loader_fallback);
        at.set("nvmlLibrary", &mut self.nvml_library);
        at.set("devPath", &mut self.dev_path);
        at.set("mpsPath", &mut self.mps_path);
        at.set("discovery", &mut self.discovery);
        at.set("fabricJoin", &mut self.fabric_join);
    }
}

impl Default for NvidiaProbe {
    fn default() -> Self {
        Self {
            driver_path: None,
            loader_fallback: false,
            nvml_library: None,
            dev_path: None,
            mps_path: None,
            discovery: Discovery::default(),
            fabric_join: Duration::from_secs(600),
        }
    }
}

impl NvidiaProbe {
    /// The section as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("the config refuses paths that are not UTF-8")
    }
}

// === impl Mig ===

impl Word for Mig {}

// === impl Discovery ===

impl Word for Discovery {}

impl FromStr for Discovery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        word(text).map_err(|(message, help)| format!("{message}; {help}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_probe_reads_what_the_config_writes() {
        let section = NvidiaProbe {
            driver_path: Some("/driver".into()),
            loader_fallback: true,
            discovery: Discovery::Tegra,
            fabric_join: Duration::from_millis(90_500),
            ..NvidiaProbe::default()
        };
        let read: NvidiaProbe = serde_json::from_value(section.to_value()).unwrap();
        assert_eq!(read, section);
    }

    #[test]
    fn a_missing_key_has_its_default_and_an_unknown_key_is_ignored() {
        let read: NvidiaProbe = serde_json::from_value(json!({"later": 1})).unwrap();
        assert_eq!(read, NvidiaProbe::default());
    }
}
