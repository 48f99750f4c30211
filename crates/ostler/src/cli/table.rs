//! Output of commands: tables, JSON and YAML.

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// Format of a command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// A table
    #[default]
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Makes a table without borders, as kubectl's are.
pub(super) fn new_table(header: &[&str]) -> Table {
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

/// Writes a value as JSON or YAML text.
pub(super) fn serialize_output(value: &impl Serialize, yaml: bool) -> anyhow::Result<String> {
    Ok(match yaml {
        true => serde_saphyr::to_string(value)?,
        false => serde_json::to_string_pretty(value)? + "\n",
    })
}
