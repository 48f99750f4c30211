//! Reads `ostler.yaml`. Everything may be left out.

use std::path::Path;

use crate::{
    Config, Error, Problem, Problems, Resolved,
    source::{Dialect, Item, Notes, Source, read_section},
};

/// Reads a config file.
pub fn load(path: &Path) -> Result<Resolved, Error> {
    read_source(Source::load(path)?)
}

/// Reads a config; `name` stands in errors. An empty text is all defaults.
pub fn parse(name: &str, text: &str) -> Result<Resolved, Error> {
    read_source(Source::new(name, text))
}

fn read_source(source: Source) -> Result<Resolved, Error> {
    let mut notes = Notes::new(source, Dialect::Native);
    let mut config = Config::default();
    if let Some(tree) = notes.tree() {
        read_section(&Item::root(&tree), &mut notes, &mut config);
    }
    let mut problems = std::mem::take(&mut notes.problems);
    problems.sort_by_key(Problem::position);
    if problems.iter().any(Problem::is_error) {
        return Err(Error::Invalid(Problems(problems)));
    }
    let mut origins = notes.origins();
    for n in 0..config.pools.pools.len() {
        origins.inherit("handover", &format!("pools[{n}].handover"));
    }
    let mut resolved = Resolved {
        config,
        origins,
        warnings: problems,
    };
    resolved.settle();
    Ok(resolved)
}

#[cfg(test)]
pub(crate) mod broken;
#[cfg(test)]
pub(crate) mod tests;
