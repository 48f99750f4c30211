//! `ostler.yaml` as it is written: its shape, from which the schema is made. Everything may be
//! left out.

mod check;
mod pools;
mod read;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;

pub(crate) use self::check::{prefix, relative};
pub use self::pools::{HandoverFile, PlacementFile, PoolFile, SharingFile};
use crate::{
    Backends, Cdi, Error, Health, Kubelet, Mig, Origins, Probe, Problem, Problems, Selector,
    source::{Dialect, Notes, Said, Source},
};

/// The file as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct File {
    /// Whether the agent exits when the driver does not start, instead of waiting.
    pub fail_on_init_error: Option<Said<bool>>,
    /// Where the kubelet is.
    pub kubelet: Kubelet,
    /// The folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: Option<Said<PathBuf>>,
    /// Where commands reach the agent.
    pub control_socket: Option<Said<PathBuf>>,
    /// How the hardware is looked at.
    pub probe: Probe,
    /// What each vendor's probe needs to know.
    pub backends: Backends,
    /// How verdicts are made.
    pub health: Health,
    /// What CDI specs are made of.
    pub cdi: Cdi,
    /// Whether a missing IMEX channel is an error.
    pub imex_required: Option<Said<bool>>,
    /// What becomes of cards in MIG mode.
    pub mig: Option<Said<Mig>>,
    /// If there are any, only devices that one of them matches are offered.
    #[schemars(with = "Option<OneOrMany<Selector>>")]
    pub include: Option<Said<Vec<Selector>>>,
    /// Devices that one of them matches are not offered.
    #[schemars(with = "Option<OneOrMany<Selector>>")]
    pub exclude: Option<Said<Vec<Selector>>>,
    /// What a container is given, for every pool that does not say otherwise.
    pub handover: HandoverFile,
    /// The pools; the first whose selector matches takes the device.
    pub pools: Option<Vec<PoolFile>>,
    /// What is probably not meant so.
    #[schemars(skip)]
    pub warnings: Vec<Problem>,
    #[schemars(skip)]
    pub(crate) source: Source,
    #[schemars(skip)]
    pub(crate) origins: Origins,
}

/// One value, or a list of them: a form for the schema alone.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
pub(crate) enum OneOrMany<T> {
    /// One.
    One(T),
    /// Some.
    Many(Vec<T>),
}

/// An index, written as a number or a text: a form for the schema alone.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "the schema is made from it, no value ever is")]
pub(crate) enum Index {
    /// `3`.
    Number(u32),
    /// `3:0`.
    Text(String),
}

/// Reads a config file.
pub fn load(path: &Path) -> Result<File, Error> {
    read_source(Source::load(path)?)
}

/// Reads a config; `name` stands in errors. An empty text is all defaults.
pub fn parse(name: &str, text: &str) -> Result<File, Error> {
    read_source(Source::new(name, text))
}

/// The schema of `ostler.yaml`.
pub fn schema() -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let mut schema = settings.into_generator().into_root_schema_for::<File>();
    schema.insert("title".to_owned(), "ostler.yaml".into());
    schema.to_value()
}

fn read_source(source: Source) -> Result<File, Error> {
    let mut notes = Notes::new(source, Dialect::Native);
    let mut file = read::file(&mut notes);
    check::file(&file, &mut notes);
    let mut problems = std::mem::take(&mut notes.problems);
    problems.sort_by_key(|problem| problem.position());
    if problems.iter().any(Problem::is_error) {
        return Err(Error::Invalid(Problems(problems)));
    }
    file.warnings = problems;
    file.origins = notes.origins();
    file.source = notes.source;
    Ok(file)
}

#[cfg(test)]
pub(crate) mod broken;
#[cfg(test)]
pub(crate) mod tests;
