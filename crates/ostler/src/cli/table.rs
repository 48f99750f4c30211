//! Tables and machine-readable output, the same for every command.

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// The form of a command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For people who read programs
    Yaml,
}

/// A table without lines, in kubectl's manner.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().copied());
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// A value as JSON or YAML text.
pub(super) fn text(value: &impl Serialize, yaml: bool) -> anyhow::Result<String> {
    Ok(match yaml {
        true => serde_saphyr::to_string(value)?,
        false => serde_json::to_string_pretty(value)? + "\n",
    })
}
