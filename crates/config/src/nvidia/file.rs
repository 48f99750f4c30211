//! NVIDIA's config file, `version: v1`, as it is written.

mod interval;
mod read;

use std::path::Path;

pub use self::interval::SleepInterval;
use super::sharing::{Replicated, ResourceName};
use crate::{
    Error, Problem, Problems,
    source::{Dialect, Notes, Said, Source},
};

/// The file as it is written. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// What flags can say too.
    pub flags: FlagsSection,
    /// Names for cards, by product name.
    pub gpus: Vec<NamedPattern>,
    /// Names for MIG devices, by profile.
    pub mig: Vec<NamedPattern>,
    /// Sharing by taking turns.
    pub time_slicing: Option<Replicated>,
    /// Sharing through MPS; where it is there, `time_slicing` does not count.
    pub mps: Option<Replicated>,
    /// IMEX channels.
    pub imex: Imex,
    /// What is probably not meant so.
    pub warnings: Vec<Problem>,
    pub(crate) source: Source,
}

/// `flags`: what flags can say too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagsSection {
    /// `migStrategy`.
    pub mig_strategy: Option<Said<String>>,
    /// `failOnInitError`.
    pub fail_on_init_error: Option<Said<bool>>,
    /// `mpsRoot`.
    pub mps_root: Option<Said<String>>,
    /// `nvidiaDriverRoot`.
    pub driver_root: Option<Said<String>>,
    /// `nvidiaDevRoot`.
    pub dev_root: Option<Said<String>>,
    /// `gdrcopyEnabled`.
    pub gdrcopy: Option<Said<bool>>,
    /// `gdsEnabled`.
    pub gds: Option<Said<bool>>,
    /// `mofedEnabled`.
    pub mofed: Option<Said<bool>>,
    /// `useNodeFeatureAPI`, for the labels.
    pub use_node_feature_api: Option<Said<bool>>,
    /// `deviceDiscoveryStrategy`.
    pub discovery: Option<Said<String>>,
    /// `plugin`.
    pub plugin: PluginFlags,
    /// `gfd`, for the labels.
    pub gfd: GfdFlags,
}

/// `flags.plugin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginFlags {
    /// `passDeviceSpecs`.
    pub pass_device_specs: Option<Said<bool>>,
    /// `deviceListStrategy`: one, which is not split at commas, or a list.
    pub device_list_strategy: Option<Said<Vec<String>>>,
    /// `deviceIDStrategy`.
    pub device_id_strategy: Option<Said<String>>,
    /// `cdiAnnotationPrefix`.
    pub cdi_annotation_prefix: Option<Said<String>>,
    /// `nvidiaCTKPath`.
    pub ctk_path: Option<Said<String>>,
    /// `containerDriverRoot`.
    pub container_driver_root: Option<Said<String>>,
    /// `sharedDevicesAllocationPolicy`.
    pub allocation_policy: Option<Said<String>>,
}

/// `flags.gfd`: how the node's labels are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GfdFlags {
    /// `oneshot`.
    pub oneshot: Option<Said<bool>>,
    /// `noTimestamp`.
    pub no_timestamp: Option<Said<bool>>,
    /// `sleepInterval`.
    pub sleep_interval: Option<Said<SleepInterval>>,
    /// `outputFile`.
    pub output_file: Option<Said<String>>,
    /// `machineTypeFile`.
    pub machine_type_file: Option<Said<String>>,
}

/// A pattern and the resource name of what it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPattern {
    /// `*` stands for any text, the rest for itself; all of the value must match.
    pub pattern: Said<String>,
    /// The name.
    pub name: Said<ResourceName>,
}

/// `imex`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imex {
    /// `channelIDs`.
    pub channel_ids: Option<Said<Vec<i64>>>,
    /// `required`.
    pub required: Option<Said<bool>>,
}

/// Reads a config file. `/dev/null`, to which a config manager may link, is an empty one.
pub fn load(path: &Path) -> Result<File, Error> {
    read_source(Source::load(path)?)
}

/// Reads a config; `name` stands in errors. An empty text is all defaults.
pub fn parse(name: &str, text: &str) -> Result<File, Error> {
    read_source(Source::new(name, text))
}

/// Whether a text says that it is one of these files: a top-level `version` and none of our keys.
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
