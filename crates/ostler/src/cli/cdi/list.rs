//! `ostler cdi list`: lists the names that a container runtime on this host can resolve.

use std::{io::Write, path::PathBuf, process::ExitCode};

use serde::Serialize;

use super::files::{SpecFile, find, or_usual};
use crate::cli::table::{Output, table, text};

/// List the names in the CDI specs of this host.
///
/// The exit status is 1 if a file cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folders and files to read [default: /etc/cdi and /var/run/cdi]
    #[arg(value_name = "DIR")]
    places: Vec<PathBuf>,

    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
}

/// One name, and the spec file that has it.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    version: String,
    file: PathBuf,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let files = find(&or_usual(self.places))?;
        for file in &files {
            if let Err(problem) = &file.spec {
                anstream::eprintln!("{}: {problem}", file.path.display());
            }
        }
        let rows: Vec<Row> = files.iter().flat_map(rows).collect();
        let output = match self.output {
            Output::Table => page(&rows),
            Output::Json => text(&rows, false)?,
            Output::Yaml => text(&rows, true)?,
        };
        std::io::stdout().write_all(output.as_bytes())?;
        match files.iter().any(|file| file.spec.is_err()) {
            true => Ok(ExitCode::FAILURE),
            false => Ok(ExitCode::SUCCESS),
        }
    }
}

fn rows(file: &SpecFile) -> Vec<Row> {
    let names = file.names().into_iter();
    names
        .map(|name| Row {
            name,
            version: file.version().to_owned(),
            file: file.path.clone(),
        })
        .collect()
}

fn page(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no CDI device\n".to_owned();
    }
    let mut page = table(&["NAME", "CDI", "FILE"]);
    for row in rows {
        let file = row.file.display().to_string();
        page.add_row([&row.name, &row.version, &file]);
    }
    page.trim_fmt() + "\n"
}
