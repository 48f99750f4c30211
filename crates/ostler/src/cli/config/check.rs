//! `ostler config check`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use config::{ConfigProblem, Error, Overrides, ValueOrigin};
use serde::Serialize;

use crate::{
    CONFIG,
    cli::{
        DropIn, DropInFlags,
        table::{OutputFormat, serialize_output},
    },
};

/// Check config files, and show all problems at once.
///
/// A file with `version: v1` is read as nvidia-device-plugin reads it, together with its
/// variables and the flags after `--`; every other file as ostler.yaml. The exit status is 78 if
/// a file is invalid, and 0 if there are only warnings.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ConfigCheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: OutputFormat,

    #[command(flatten)]
    drop_in: DropInFlags,
}

/// Result of the check of one file.
#[derive(Debug, Serialize)]
struct FileVerdict {
    file: PathBuf,
    /// Dialect: `ostler` or `nvidia`.
    kind: &'static str,
    /// Reason for which the file could not be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    problems: Vec<ConfigProblem>,
}

// === impl ConfigCheckArgs ===

impl ConfigCheckArgs {
    pub(super) fn check_files(self) -> anyhow::Result<ExitCode> {
        let drop_in = self.drop_in.parse_flags(None)?;
        let verdicts: Vec<FileVerdict> = self
            .files
            .iter()
            .map(|path| self.check_config_file(path, &drop_in))
            .collect();
        let output = match self.output {
            OutputFormat::Table => format_verdicts(&verdicts),
            OutputFormat::Json => serialize_output(&verdicts, false)?,
            OutputFormat::Yaml => serialize_output(&verdicts, true)?,
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(match verdicts.iter().any(FileVerdict::is_bad) {
            true => ExitCode::from(CONFIG),
            false => ExitCode::SUCCESS,
        })
    }

    fn check_config_file(&self, path: &Path, drop_in: &DropIn) -> FileVerdict {
        let is_drop_in = self.drop_in.is_v1_file(Some(path));
        let result = if is_drop_in {
            drop_in.resolve_file(path)
        } else {
            config::native(Some(path), Overrides::default(), &ValueOrigin::of_flag)
        };
        let (unreadable, problems) = match result {
            Ok(resolved) => (None, resolved.warnings),
            Err(Error::Invalid(problems)) => (None, problems.0),
            Err(error) => (Some(format!("{:#}", anyhow::Error::new(error))), Vec::new()),
        };
        FileVerdict {
            file: path.to_owned(),
            kind: if is_drop_in { DropIn::KIND } else { "ostler" },
            unreadable,
            problems,
        }
    }
}

// === impl FileVerdict ===

impl FileVerdict {
    fn error_count(&self) -> usize {
        self.problems.iter().filter(|p| p.is_error()).count() + self.unreadable.iter().count()
    }

    fn is_bad(&self) -> bool {
        self.error_count() > 0
    }
}

/// Text for a person: the problems, and a line for each file.
fn format_verdicts(verdicts: &[FileVerdict]) -> String {
    let mut page = String::new();
    for verdict in verdicts {
        for problem in &verdict.problems {
            page += &format!("{problem}\n");
        }
        if let Some(error) = &verdict.unreadable {
            page += &format!("{error}\n");
        }
        let errors = verdict.error_count();
        let warnings = verdict.problems.iter().filter(|p| !p.is_error()).count();
        let count = |n: usize, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let file = verdict.file.display();
        page += &match (errors, warnings) {
            (0, 0) => format!("{file}: good\n"),
            (0, n) => format!("{file}: usable, {}\n", count(n, "warning")),
            (n, 0) => format!("{file}: not usable, {}\n", count(n, "error")),
            (n, m) => format!(
                "{file}: not usable, {}, {}\n",
                count(n, "error"),
                count(m, "warning")
            ),
        };
    }
    page
}
