//! `ostler cdi list`: lists the names that a container runtime on this host can resolve.

use std::{io::Write, path::PathBuf, process::ExitCode};

use serde::Serialize;

use super::files::{SpecFile, find_spec_files, or_usual};
use crate::cli::table::{OutputFormat, new_table, serialize_output};

/// List the names in the CDI specs of this host.
///
/// The exit status is 1 if a file cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct CdiListArgs {
    /// Folders and files to read [default: /etc/cdi and /var/run/cdi]
    #[arg(value_name = "DIR")]
    places: Vec<PathBuf>,

    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: OutputFormat,
}

/// One name, and the spec file that has it.
#[derive(Debug, Serialize)]
struct NameRow {
    name: String,
    version: String,
    file: PathBuf,
}

// === impl CdiListArgs ===

impl CdiListArgs {
    pub(super) fn list_names(self) -> anyhow::Result<ExitCode> {
        let files = find_spec_files(&or_usual(self.places))?;
        for file in &files {
            if let Err(problem) = &file.spec {
                anstream::eprintln!("{}: {problem}", file.path.display());
            }
        }
        let rows: Vec<NameRow> = files.iter().flat_map(name_rows).collect();
        let output = match self.output {
            OutputFormat::Table => format_names(&rows),
            OutputFormat::Json => serialize_output(&rows, false)?,
            OutputFormat::Yaml => serialize_output(&rows, true)?,
        };
        std::io::stdout().write_all(output.as_bytes())?;
        match files.iter().any(|file| file.spec.is_err()) {
            true => Ok(ExitCode::FAILURE),
            false => Ok(ExitCode::SUCCESS),
        }
    }
}

fn name_rows(file: &SpecFile) -> Vec<NameRow> {
    let names = file.qualified_names().into_iter();
    names
        .map(|name| NameRow {
            name,
            version: file.declared_version().to_owned(),
            file: file.path.clone(),
        })
        .collect()
}

fn format_names(rows: &[NameRow]) -> String {
    if rows.is_empty() {
        return "no CDI device\n".to_owned();
    }
    let mut page = new_table(&["NAME", "CDI", "FILE"]);
    for row in rows {
        let file = row.file.display().to_string();
        page.add_row([&row.name, &row.version, &file]);
    }
    page.trim_fmt() + "\n"
}
