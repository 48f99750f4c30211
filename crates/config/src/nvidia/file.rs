//! NVIDIA's config file, `version: v1`: its types, before the translation into our config.

mod interval;
mod read;

use std::path::Path;

pub use self::interval::SleepInterval;
use super::sharing::{NvidiaResourceName, ReplicatedResources};
use crate::{
    ConfigProblem, ConfigProblems, Error,
    source::{ConfigText, Dialect, Placed, ReadNotes},
};

/// Content of a v1 file. Every key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct V1File {
    /// Section `flags`: options that flags can set too.
    pub flags: FlagsSection,
    /// Resource names for cards, by product name. The first pattern that matches wins.
    pub gpus: Vec<NamedPattern>,
    /// Resource names for MIG devices, by profile. The first pattern that matches wins.
    pub mig: Vec<NamedPattern>,
    /// Section `sharing.timeSlicing`.
    pub time_slicing: Option<ReplicatedResources>,
    // Both sections together are no error for NVIDIA's plugin, which then uses `mps` everywhere.
    /// Section `sharing.mps`. If it is set, `time_slicing` is not used.
    pub mps: Option<ReplicatedResources>,
    /// Section `imex`.
    pub imex: ImexSection,
    /// Warnings: unknown keys and probable mistakes.
    pub warnings: Vec<ConfigProblem>,
    pub(crate) source: ConfigText,
}

/// Section `flags`: options that flags can set too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagsSection {
    /// `migStrategy`: `none`, `single` or `mixed`.
    pub mig_strategy: Option<Placed<String>>,
    /// `failOnInitError`: exit if the driver does not start.
    pub fail_on_init_error: Option<Placed<bool>>,
    /// `mpsRoot`: folder on the host with the MPS daemon's files.
    pub mps_root: Option<Placed<String>>,
    /// `nvidiaDriverRoot`: folder on the host with the driver's files.
    pub driver_root: Option<Placed<String>>,
    /// `nvidiaDevRoot`: folder on the host with `/dev/nvidia*`. Default: `nvidiaDriverRoot`.
    pub dev_root: Option<Placed<String>>,
    /// `gdrcopyEnabled`: GDRCopy in containers.
    pub gdrcopy: Option<Placed<bool>>,
    /// `gdsEnabled`: GPUDirect Storage in containers.
    pub gds: Option<Placed<bool>>,
    /// `mofedEnabled`: RDMA devices in containers.
    pub mofed: Option<Placed<bool>>,
    /// `useNodeFeatureAPI`, for the node's labels.
    pub use_node_feature_api: Option<Placed<bool>>,
    /// `deviceDiscoveryStrategy`: `auto`, `nvml` or `tegra`.
    pub discovery: Option<Placed<String>>,
    /// Section `flags.plugin`.
    pub plugin: PluginFlags,
    /// Section `flags.gfd`, for the node's labels.
    pub gfd: GfdFlags,
}

/// Section `flags.plugin`: options of the device plugin alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginFlags {
    /// `passDeviceSpecs`: device nodes in the kubelet's answer.
    pub pass_device_specs: Option<Placed<bool>>,
    /// `deviceListStrategy`: a list, or one strategy. Unlike the flag, a text is not split at
    /// commas.
    pub device_list_strategy: Option<Placed<Vec<String>>>,
    /// `deviceIDStrategy`: `uuid` or `index`.
    pub device_id_strategy: Option<Placed<String>>,
    /// `cdiAnnotationPrefix`: beginning of the CDI annotation's key.
    pub cdi_annotation_prefix: Option<Placed<String>>,
    /// `nvidiaCTKPath`: program on the host that the hooks of CDI specs call.
    pub ctk_path: Option<Placed<String>>,
    /// `containerDriverRoot`: folder with the driver's files as the plugin sees it.
    pub container_driver_root: Option<Placed<String>>,
    /// `sharedDevicesAllocationPolicy`: `distributed` or `packed`.
    pub allocation_policy: Option<Placed<String>>,
}

/// Section `flags.gfd`: options of GPU Feature Discovery, which makes the node's labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GfdFlags {
    /// `oneshot`: write the labels once and exit.
    pub oneshot: Option<Placed<bool>>,
    /// `noTimestamp`: no label with the time.
    pub no_timestamp: Option<Placed<bool>>,
    /// `sleepInterval`: time between two updates of the labels.
    pub sleep_interval: Option<Placed<SleepInterval>>,
    /// `outputFile`: file for the labels.
    pub output_file: Option<Placed<String>>,
    /// `machineTypeFile`: file with the type of the machine.
    pub machine_type_file: Option<Placed<String>>,
}

/// Pattern with the resource name of the devices that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPattern {
    /// Pattern: `*` stands for any text, any other character for itself. The whole value must
    /// match.
    pub pattern: Placed<String>,
    /// Resource name.
    pub name: Placed<NvidiaResourceName>,
}

/// Section `imex`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImexSection {
    /// `channelIDs`: numbers of the IMEX channels. Only `[]` and `[0]` are valid.
    pub channel_ids: Option<Placed<Vec<i64>>>,
    /// `required`: a missing channel is an error.
    pub required: Option<Placed<bool>>,
}

/// Reads a v1 file. `/dev/null`, to which NVIDIA's config-manager may link, is an empty file.
///
/// # Errors
/// [`Error::Invalid`] has every problem of the text. Any other variant: there is no text.
pub fn load_v1(path: &Path) -> Result<V1File, Error> {
    read_source(ConfigText::load_text(path)?)
}

/// Parses a v1 file. `name` stands for the file in problems and origins. An empty text gives the
/// defaults.
///
/// # Errors
/// [`Error::Invalid`] has every problem of the text.
pub fn parse_v1(name: &str, text: &str) -> Result<V1File, Error> {
    read_source(ConfigText::new(name, text))
}

/// Returns true if a text is a v1 file: it has a key of one at the top. A text that cannot be
/// parsed is one if a line begins with `version:`.
pub fn is_v1(text: &str) -> bool {
    let source = ConfigText::new("", text);
    let mut notes = ReadNotes::new(source, Dialect::Go);
    let Some(tree) = notes.parse_tree() else {
        return text.lines().any(|line| line.starts_with("version:"));
    };
    let crate::source::YamlValue::Map(entries) = tree.value else {
        return false;
    };
    let mut keys = entries.iter().map(|entry| entry.key.to_ascii_lowercase());
    keys.any(|key| ["version", "flags", "sharing", "resources", "imex"].contains(&key.as_str()))
}

fn read_source(source: ConfigText) -> Result<V1File, Error> {
    let mut notes = ReadNotes::new(source, Dialect::Go);
    let mut file = read::read_v1_tree(&mut notes);
    notes.problems.sort_by_key(ConfigProblem::sort_key);
    if notes.has_errors() {
        return Err(Error::Invalid(ConfigProblems(notes.problems)));
    }
    file.warnings = notes.problems;
    file.source = notes.source;
    Ok(file)
}

#[cfg(test)]
mod broken;
#[cfg(test)]
mod tests;
