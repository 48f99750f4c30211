//! `ostler cdi validate`: checks that runtimes accept specs, and that containers can start with them.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use cdi::{Problem, Severity, Spec, check};
use rules::ContainerEdits;
use serde::Serialize;

use super::files::{SpecFile, find, or_usual};
use crate::cli::table::{Output, table, text};

/// Check CDI specs: CDI's own rules, missing files, duplicate names.
///
/// All problems are shown at once. The exit status is 1 if there are errors.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
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
    output: Output,
}

/// Result of the checks.
#[derive(Debug, Serialize)]
struct Report {
    /// Number of files that were checked.
    files: usize,
    /// Number of names in them.
    names: usize,
    problems: Vec<Row>,
}

/// One problem of one file.
#[derive(Debug, Serialize)]
struct Row {
    file: PathBuf,
    #[serde(flatten)]
    problem: Problem,
}

// === impl Args ===

impl Args {
    pub(super) fn start(self) -> anyhow::Result<ExitCode> {
        let files = find(&or_usual(self.places))?;
        let mut problems: Vec<Row> = files
            .iter()
            .flat_map(|file| judge(file, &self.host_root))
            .collect();
        problems.extend(conflicts(&files));
        let bad = |row: &Row| row.problem.severity == Severity::Error;
        let code = match problems.iter().any(bad) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        };
        let report = Report {
            files: files.len(),
            names: files.iter().map(|file| file.names().len()).sum(),
            problems,
        };
        let output = match self.output {
            Output::Table => page(&report),
            Output::Json => text(&report, false)?,
            Output::Yaml => text(&report, true)?,
        };
        std::io::stdout().write_all(output.as_bytes())?;
        Ok(code)
    }
}

/// Checks one file.
fn judge(file: &SpecFile, root: &Path) -> Vec<Row> {
    let problems = match &file.spec {
        Err(problem) => vec![note("", Severity::Error, problem.clone())],
        Ok(value) => {
            let mut problems = check(value);
            // A spec that does not parse names no files to check.
            if let Ok(spec) = serde_json::from_value::<Spec>(value.clone()) {
                problems.extend(missing(&spec, root));
            }
            problems
        }
    };
    let row = |problem| Row {
        file: file.path.clone(),
        problem,
    };
    problems.into_iter().map(row).collect()
}

/// Finds files that the spec needs and that the host does not have.
fn missing(spec: &Spec, root: &Path) -> Vec<Problem> {
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

fn missing_of(at: &str, edits: &ContainerEdits, root: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut look = |place: String, path: &str, severity: Severity| {
        // `Path::join` with an absolute path would replace the root.
        if !root.join(path.trim_start_matches('/')).exists() {
            let text = format!("{path} is not on the host");
            problems.push(note(&format!("{at}.{place}"), severity, text));
        }
    };
    for (n, node) in edits.device_nodes.iter().enumerate() {
        // With type and major in the spec, a runtime makes the node without the host's one
        // (container-device-interface, pkg/cdi/container-edits_unix.go, `fillMissingInfo`).
        let severity = match node.kind.is_some() && node.major.is_some() {
            true => Severity::Warning,
            false => Severity::Error,
        };
        look(format!("deviceNodes[{n}]"), node.outside(), severity);
    }
    for (n, mount) in edits.mounts.iter().enumerate() {
        // Other mounts, such as a tmpfs, have no source on the host.
        if mount.kind.is_none() || mount.options.iter().any(|option| option.contains("bind")) {
            look(format!("mounts[{n}]"), &mount.host_path, Severity::Error);
        }
    }
    for (n, hook) in edits.hooks.iter().enumerate() {
        look(format!("hooks[{n}]"), &hook.path, Severity::Error);
    }
    problems
}

/// Finds names that several files have. In one folder neither can be used; of two folders the later
/// one wins (container-device-interface, pkg/cdi/cache.go, `refresh`).
fn conflicts(files: &[SpecFile]) -> Vec<Row> {
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    let mut rows = Vec::new();
    for file in files {
        for name in file.names() {
            let Some(first) = seen.insert(name.clone(), &file.path) else {
                continue;
            };
            if first == file.path {
                continue;
            }
            let (severity, effect) = match first.parent() == file.path.parent() {
                true => (Severity::Error, "neither can be used"),
                false => (Severity::Warning, "the later folder wins"),
            };
            let text = format!("{name} is in {} too: {effect}", first.display());
            rows.push(Row {
                file: file.path.clone(),
                problem: note("", severity, text),
            });
        }
    }
    rows
}

fn note(at: &str, severity: Severity, text: String) -> Problem {
    Problem {
        at: at.to_owned(),
        severity,
        text,
    }
}

fn page(report: &Report) -> String {
    let counts = [(report.files, "file"), (report.names, "name")];
    let counts = counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    let counts = counts.join(", ");
    if report.problems.is_empty() {
        return format!("{counts}: nothing is wrong\n");
    }
    let mut page = table(&["SEVERITY", "FILE", "PLACE", "PROBLEM"]);
    for Row { file, problem } in &report.problems {
        let severity = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
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
