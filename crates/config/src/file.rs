//! Reads `ostler.yaml`. Every key may be left out.

use std::path::Path;

use crate::{
    Config, ConfigProblem, ConfigProblems, Error, Resolved,
    source::{ConfigText, Dialect, FileItem, ReadNotes, read_section},
};

/// Reads a config file of at most 1 MiB. `/dev/null`, or a link to it, is an empty file.
///
/// # Errors
/// [`Error::Invalid`] has every problem of the text. Any other variant: there is no text.
pub fn load_native(path: &Path) -> Result<Resolved, Error> {
    read_source(ConfigText::load_text(path)?)
}

/// Parses a config. `name` stands for the file in problems and origins. An empty text gives the
/// defaults.
///
/// # Errors
/// [`Error::Invalid`] has every problem of the text.
///
/// ```
/// let resolved = config::parse_native("ostler.yaml", "probe: {period: 3s}")?;
/// assert_eq!(resolved.config.probe.period.as_secs(), 3);
/// assert_eq!(resolved.origins.find_origin("probe.period").to_string(), "ostler.yaml:1");
/// # Ok::<(), config::Error>(())
/// ```
pub fn parse_native(name: &str, text: &str) -> Result<Resolved, Error> {
    read_source(ConfigText::new(name, text))
}

fn read_source(source: ConfigText) -> Result<Resolved, Error> {
    let mut notes = ReadNotes::new(source, Dialect::Native);
    let mut config = Config::default();
    if let Some(tree) = notes.parse_tree() {
        read_section(&FileItem::of_file(&tree), &mut notes, &mut config);
    }
    let mut problems = std::mem::take(&mut notes.problems);
    problems.sort_by_key(ConfigProblem::sort_key);
    if problems.iter().any(ConfigProblem::is_error) {
        return Err(Error::Invalid(ConfigProblems(problems)));
    }
    let mut origins = notes.list_origins();
    // A key of a pool's `handover` that the pool does not set has the value, and so the origin, of
    // the file's `handover`.
    for n in 0..config.pools.pools.len() {
        origins.inherit_origins("handover", &format!("pools[{n}].handover"));
    }
    let mut resolved = Resolved {
        config,
        origins,
        warnings: problems,
    };
    resolved.derive_defaults();
    Ok(resolved)
}

#[cfg(test)]
pub(crate) mod broken;
#[cfg(test)]
pub(crate) mod tests;
