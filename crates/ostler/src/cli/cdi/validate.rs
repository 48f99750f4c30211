//! `ostler cdi validate`: checks that runtimes accept specs, and that containers can start with them.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use cdi::{CdiSpec, SpecProblem, SpecSeverity, check_spec};
use rules::ContainerEdits;
use serde::Serialize;

use super::files::{SpecFile, find_spec_files, or_usual};
use crate::cli::table::{OutputFormat, new_table, serialize_output};

/// Check CDI specs: CDI's own rules, missing files, duplicate names.
///
/// All problems are shown at once. The exit status is 1 if there are errors.
#[derive(Debug, clap::Args)]
pub(super) struct CdiValidateArgs {
    /// Files and folders [default: /etc/cdi and /var/run/cdi]
    #[arg(value_name = "FILE|DIR")]
    places: Vec<PathBuf>,

    /// Folder that has the host's files
    #[arg(
        long,
        env = "OSTLER_HOST_ROOT",
        value_name = "DIR",
        default_value = "/"
    )]
    host_root: PathBuf,

    /// The output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: OutputFormat,
}

/// Result of the checks.
#[derive(Debug, Serialize)]
struct ValidationReport {
    /// Number of files that were checked.
    files: usize,
    /// Number of names in them.
    names: usize,
    problems: Vec<ProblemRow>,
}

/// One problem of one file.
#[derive(Debug, Serialize)]
struct ProblemRow {
    file: PathBuf,
    #[serde(flatten)]
    problem: SpecProblem,
}

// === impl CdiValidateArgs ===

impl CdiValidateArgs {
    pub(super) fn validate_specs(self) -> anyhow::Result<ExitCode> {
        let files = find_spec_files(&or_usual(self.places))?;
        let mut problems: Vec<ProblemRow> = files
            .iter()
            .flat_map(|file| check_spec_file(file, &self.host_root))
            .collect();
        problems.extend(find_conflicts(&files));
        let bad = |row: &ProblemRow| row.problem.severity == SpecSeverity::Error;
        let code = match problems.iter().any(bad) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        };
        let report = ValidationReport {
            files: files.len(),
            names: files.iter().map(|file| file.qualified_names().len()).sum(),
            problems,
        };
        let output = match self.output {
            OutputFormat::Table => format_report(&report),
            OutputFormat::Json => serialize_output(&report, false)?,
            OutputFormat::Yaml => serialize_output(&report, true)?,
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(code)
    }
}

/// Checks one file.
fn check_spec_file(file: &SpecFile, root: &Path) -> Vec<ProblemRow> {
    let problems = match &file.spec {
        Err(problem) => vec![new_problem("", SpecSeverity::Error, problem.clone())],
        Ok(value) => {
            let mut problems = check_spec(value);
            // A spec that does not parse names no files to check.
            if let Ok(spec) = serde_json::from_value::<CdiSpec>(value.clone()) {
                problems.extend(find_missing_files(&spec, root));
            }
            problems
        }
    };
    let row = |problem| ProblemRow {
        file: file.path.clone(),
        problem,
    };
    problems.into_iter().map(row).collect()
}

/// Finds files that the spec needs and that the host does not have.
fn find_missing_files(spec: &CdiSpec, root: &Path) -> Vec<SpecProblem> {
    let devices = spec.devices.iter().enumerate();
    let devices = devices.map(|(n, device)| {
        let at = format!("devices[{n}].containerEdits");
        (at, &device.container_edits)
    });
    let common = ("containerEdits".to_owned(), &spec.container_edits);
    devices
        .chain([common])
        .flat_map(|(at, edits)| missing_of(&at, edits, root))
        .collect()
}

fn missing_of(at: &str, edits: &ContainerEdits, root: &Path) -> Vec<SpecProblem> {
    let mut problems = Vec::new();
    let mut look = |place: String, path: &str, severity: SpecSeverity| {
        // `Path::join` with an absolute path would replace the root.
        if !root.join(path.trim_start_matches('/')).exists() {
            let text = format!("{path} is not on the host");
            problems.push(new_problem(&format!("{at}.{place}"), severity, text));
        }
    };
    for (n, node) in edits.device_nodes.iter().enumerate() {
        // With type and major in the spec, a runtime makes the node without the host's one
        // (container-device-interface, pkg/cdi/container-edits_unix.go, `fillMissingInfo`).
        let severity = match node.kind.is_some() && node.major.is_some() {
            true => SpecSeverity::Warning,
            false => SpecSeverity::Error,
        };
        look(format!("deviceNodes[{n}]"), node.outside(), severity);
    }
    for (n, mount) in edits.mounts.iter().enumerate() {
        // Other mounts, such as a tmpfs, have no source on the host.
        if mount.kind.is_none() || mount.options.iter().any(|option| option.contains("bind")) {
            look(
                format!("mounts[{n}]"),
                &mount.host_path,
                SpecSeverity::Error,
            );
        }
    }
    for (n, hook) in edits.hooks.iter().enumerate() {
        look(format!("hooks[{n}]"), &hook.path, SpecSeverity::Error);
    }
    problems
}

/// Finds names that several files have. In one folder neither can be used; of two folders the later
/// one wins (container-device-interface, pkg/cdi/cache.go, `refresh`).
fn find_conflicts(files: &[SpecFile]) -> Vec<ProblemRow> {
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    let mut rows = Vec::new();
    for file in files {
        for name in file.qualified_names() {
            let Some(first) = seen.insert(name.clone(), &file.path) else {
                continue;
            };
            if first == file.path {
                continue;
            }
            let (severity, effect) = match first.parent() == file.path.parent() {
                true => (SpecSeverity::Error, "neither can be used"),
                false => (SpecSeverity::Warning, "the later folder wins"),
            };
            let text = format!("{name} is in {} too: {effect}", first.display());
            rows.push(ProblemRow {
                file: file.path.clone(),
                problem: new_problem("", severity, text),
            });
        }
    }
    rows
}

fn new_problem(at: &str, severity: SpecSeverity, text: String) -> SpecProblem {
    SpecProblem {
        at: at.to_owned(),
        severity,
        text,
    }
}

fn format_report(report: &ValidationReport) -> String {
    let counts = [(report.files, "file"), (report.names, "name")];
    let counts = counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    let counts = counts.join(", ");
    if report.problems.is_empty() {
        return format!("{counts}: nothing is wrong\n");
    }
    let mut page = new_table(&["SEVERITY", "FILE", "PLACE", "PROBLEM"]);
    for ProblemRow { file, problem } in &report.problems {
        let severity = match problem.severity {
            SpecSeverity::Error => "error",
            SpecSeverity::Warning => "warning",
        };
        let at = match problem.at.as_str() {
            "" => "-",
            at => at,
        };
        let file = file.display().to_string();
        page.add_row([severity, &file, at, &problem.text]);
    }
    format!("{}\n{counts}\n", page.trim_fmt())
}
