//! Section `backends.nvidia`: settings that NVIDIA's probe is given, and rules that only the agent
//! reads.

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
    handover::{check_annotation_prefix, relative},
    mps::{MPS_CLIENT_LIMIT, check_mps},
};
use super::Startup;
use crate::{
    KindName, Period, Pool, Selector,
    source::{Section, SectionReader, Word, parse_word},
};

/// Settings of NVIDIA's probe, and rules for NVIDIA's devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NvidiaBackend {
    /// Settings of the backend's start.
    #[serde(flatten)]
    pub startup: Startup,
    /// Settings that the probe is given.
    #[serde(flatten)]
    pub probe: NvidiaProbe,
    /// Strategy for cards in MIG mode.
    pub mig: Mig,
    /// Reports units as Unhealthy while an IMEX channel of `handover.nvidia.imex` is missing.
    pub imex_required: bool,
    /// Contents of CDI specs.
    pub cdi: NvidiaCdi,
    /// Meaning of XIDs.
    pub xids: Xids,
}

// The probe reads the same type as JSON: there a missing key has its default, and an unknown key is
// ignored.
/// Settings of the probe of NVIDIA's cards. Paths are as the agent sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NvidiaProbe {
    /// Folder under which the driver's files are. Default: the search path of the loader.
    pub driver_path: Option<PathBuf>,
    /// Asks the loader for the driver library where `driverPath` does not have it.
    pub loader_fallback: bool,
    /// Driver library itself. Default: a search for `libnvidia-ml.so.1`.
    pub nvml_library: Option<PathBuf>,
    /// Second folder under which device nodes are.
    pub dev_path: Option<PathBuf>,
    /// Folder of the MPS daemons. Units that are shared through MPS are Unhealthy until
    /// `<mpsPath>/<resource>/.started` exists.
    pub mps_path: Option<PathBuf>,
    /// Strategy for finding cards.
    pub discovery: Discovery,
    /// Longest time that a card may take to join its fabric without a warning.
    #[serde(with = "Period")]
    pub fabric_join: Duration,
}

/// Strategy for cards in MIG mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mig {
    /// MIG is ignored: every card is offered whole.
    None,
    /// MIG devices, all of one profile, are offered as if they were cards.
    Single,
    /// MIG devices are offered by profile, cards that are not in MIG mode whole.
    #[default]
    Mixed,
}

/// Strategy for finding cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Discovery {
    /// Detected from the machine.
    #[default]
    Auto,
    /// Through NVML.
    Nvml,
    /// By the files of a Tegra board.
    Tegra,
}

// === impl NvidiaBackend ===

impl Section for NvidiaBackend {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        self.startup.read_options(at);
        self.probe.read_options(at);
        at.set_option("mig", &mut self.mig);
        at.set_option("imexRequired", &mut self.imex_required);
        at.set_section("cdi", &mut self.cdi);
        at.set_section("xids", &mut self.xids);
    }
}

impl NvidiaBackend {
    /// Returns the pools of a node whose config has none: whole cards as `nvidia.com/gpu`, MIG
    /// devices as `nvidia.com/mig-<profile>`, or with [`Mig::Single`] as `nvidia.com/gpu` too.
    pub fn nvidia_pools(&self) -> Vec<Pool> {
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
            of(
                KindName::Card,
                Pool::of_all_devices("gpu", "nvidia.com/gpu"),
            ),
            of(KindName::Partition, Pool::of_all_devices("mig", partitions)),
        ]
    }
}

// === impl NvidiaProbe ===

impl Section for NvidiaProbe {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("driverPath", &mut self.driver_path);
        at.set_option("loaderFallback", &mut self.loader_fallback);
        at.set_option("nvmlLibrary", &mut self.nvml_library);
        at.set_option("devPath", &mut self.dev_path);
        at.set_option("mpsPath", &mut self.mps_path);
        at.set_option("discovery", &mut self.discovery);
        at.set_option("fabricJoin", &mut self.fabric_join);
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
    /// Returns the section as JSON, for the probe.
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
        parse_word(text).map_err(|(message, help)| format!("{message}; {help}"))
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
