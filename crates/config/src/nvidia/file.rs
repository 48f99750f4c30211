//! NVIDIA's config file, `version: v1`: its types, before the translation into our config.

mod interval;
mod read;

use std::path::Path;

pub use self::interval::SleepInterval;
use super::sharing::{Replicated, ResourceName};
use crate::{
    Error, Problem, Problems,
    source::{Dialect, Notes, Said, Source},
};

/// Content of a v1 file. Every key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Section `flags`: options that flags can set too.
    pub flags: FlagsSection,
    /// Resource names for cards, by product name. The first pattern that matches wins.
    pub gpus: Vec<NamedPattern>,
    /// Resource names for MIG devices, by profile. The first pattern that matches wins.
    pub mig: Vec<NamedPattern>,
    /// Section `sharing.timeSlicing`.
    pub time_slicing: Option<Replicated>,
    // Both sections together are no error for NVIDIA's plugin, which then uses `mps` everywhere.
    /// Section `sharing.mps`. If it is set, `time_slicing` is not used.
    pub mps: Option<Replicated>,
    /// Section `imex`.
    pub imex: Imex,
    /// Warnings: unknown keys and probable mistakes.
    pub warnings: Vec<Problem>,
    pub(crate) source: Source,
}

/// Section `flags`: options that flags can set too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagsSection {
    /// `migStrategy`: `none`, `single` or `mixed`.
    pub mig_strategy: Option<Said<String>>,
    /// `failOnInitError`: exit if the driver does not start.
    pub fail_on_init_error: Option<Said<bool>>,
    /// `mpsRoot`: folder on the host with the MPS daemon's files.
    pub mps_root: Option<Said<String>>,
    /// `nvidiaDriverRoot`: folder on the host with the driver's files.
    pub driver_root: Option<Said<String>>,
    /// `nvidiaDevRoot`: folder on the host with `/dev/nvidia*`. Default: `nvidiaDriverRoot`.
    pub dev_root: Option<Said<String>>,
    /// `gdrcopyEnabled`: GDRCopy in containers.
    pub gdrcopy: Option<Said<bool>>,
    /// `gdsEnabled`: GPUDirect Storage in containers.
    pub gds: Option<Said<bool>>,
    /// `mofedEnabled`: RDMA devices in containers.
    pub mofed: Option<Said<bool>>,
    /// `useNodeFeatureAPI`, for the node's labels.
    pub use_node_feature_api: Option<Said<bool>>,
    /// `deviceDiscoveryStrategy`: `auto`, `nvml` or `tegra`.
    pub discovery: Option<Said<String>>,
    /// Section `flags.plugin`.
    pub plugin: PluginFlags,
    /// Section `flags.gfd`, for the node's labels.
    pub gfd: GfdFlags,
}

/// Section `flags.plugin`: options of the device plugin alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginFlags {
    /// `passDeviceSpecs`: device nodes in the kubelet's answer.
    pub pass_device_specs: Option<Said<bool>>,
    /// `deviceListStrategy`: a list, or one strategy. Unlike the flag, a text is not split at
    /// commas.
    pub device_list_strategy: Option<Said<Vec<String>>>,
    /// `deviceIDStrategy`: `uuid` or `index`.
    pub device_id_strategy: Option<Said<String>>,
    /// `cdiAnnotationPrefix`: beginning of the CDI annotation's key.
    pub cdi_annotation_prefix: Option<Said<String>>,
    /// `nvidiaCTKPath`: program on the host that the hooks of CDI specs call.
    pub ctk_path: Option<Said<String>>,
    /// `containerDriverRoot`: folder with the driver's files as the plugin sees it.
    pub container_driver_root: Option<Said<String>>,
    /// `sharedDevicesAllocationPolicy`: `distributed` or `packed`.
    pub allocation_policy: Option<Said<String>>,
}

/// Section `flags.gfd`: options of GPU Feature Discovery, which makes the node's labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GfdFlags {
    /// `oneshot`: write the labels once and exit.
    pub oneshot: Option<Said<bool>>,
    /// `noTimestamp`: no label with the time.
    pub no_timestamp: Option<Said<bool>>,
    /// `sleepInterval`: time between two updates of the labels.
    pub sleep_interval: Option<Said<SleepInterval>>,
    /// `outputFile`: file for the labels.
    pub output_file: Option<Said<String>>,
    /// `machineTypeFile`: file with the type of the machine.
    pub machine_type_file: Option<Said<String>>,
}

/// Pattern with the resource name of the devices that it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPattern {
    /// Pattern: `*` stands for any text, any other character for itself. The whole value must
    /// match.
    pub pattern: Said<String>,
    /// Resource name.
    pub name: Said<ResourceName>,
}

/// Section `imex`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imex {
    /// `channelIDs`: numbers of the IMEX channels. Only `[]` and `[0]` are valid.
    pub channel_ids: Option<Said<Vec<i64>>>,
    /// `required`: a missing channel is an error.
    pub required: Option<Said<bool>>,
}

/// Reads a v1 file. `/dev/null`, to which NVIDIA's config-manager may link, is an empty file.
///
/// # Errors
/// [`Error::Invalid`] has every problem of the text. Any other variant: there is no text.
pub fn load(path: &Path) -> Result<File, Error> {
    read_source(Source::load(path)?)
}

/// Parses a v1 file. `name` stands for the file in problems and origins. An empty text gives the
/// defaults.
///
/// # Errors
/// [`Error::Invalid`] has every problem of the text.
pub fn parse(name: &str, text: &str) -> Result<File, Error> {
    read_source(Source::new(name, text))
}

/// Returns true if a text is a v1 file: it has a key of one at the top. A text that cannot be
/// parsed is one if a line begins with `version:`.
pub fn is_v1(text: &str) -> bool {
    let source = Source::new("", text);
    let mut notes = Notes::new(source, Dialect::Go);
    let Some(tree) = notes.tree() else {
        return text.lines().any(|line| line.starts_with("version:"));
    };
    let crate::source::Value::Map(entries) = tree.value else {
        return false;
    };
    let mut keys = entries.iter().map(|entry| entry.key.to_ascii_lowercase());
    keys.any(|key| ["version", "flags", "sharing", "resources", "imex"].contains(&key.as_str()))
}

fn read_source(source: Source) -> Result<File, Error> {
    let mut notes = Notes::new(source, Dialect::Go);
    let mut file = read::file(&mut notes);
    notes.problems.sort_by_key(Problem::position);
    if notes.failed() {
        return Err(Error::Invalid(Problems(notes.problems)));
    }
    file.warnings = notes.problems;
    file.source = notes.source;
    Ok(file)
}

#[cfg(test)]
mod broken;
#[cfg(test)]
mod tests;
