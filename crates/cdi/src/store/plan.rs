//! Steps from the present files to the wanted ones. All specs are written before any is removed, and each
//! step is atomic.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use host::small::{self, Error};

use super::{FileStatus, InUse, SpecKey, Store, StoreOutcome, TEXT_LIMIT, WantedFile};
use crate::CdiSpec;

// NVIDIA's plugin v0.20.0 uses the same mode: a runtime without root rights must be able to read it.
/// Permissions of a spec file: readable by every user.
const MODE: u32 = 0o644;

/// Steps on the disk, and the state of each file after them.
#[derive(Debug)]
pub(super) struct StorePlan {
    rows: Vec<PlannedFile>,
    pub(super) steps: Vec<DiskStep>,
}

/// One change on the disk.
#[derive(Debug)]
pub(super) enum DiskStep {
    /// Writes a spec to the file of a row.
    Write { row: usize, spec: Arc<CdiSpec> },
    /// Removes the file of a row.
    Remove { row: usize },
    /// Removes a temporary file of an agent that was killed during a write.
    Sweep(PathBuf),
}

/// A file with its spec after all steps, or the reason why it is not in the wanted state.
#[derive(Debug)]
struct PlannedFile {
    key: SpecKey,
    path: PathBuf,
    then: Result<Option<Arc<CdiSpec>>, String>,
}

/// Content of a path.
#[derive(Debug)]
pub(super) enum FoundFile {
    Nothing,
    /// A spec of the key's kind, with the text of the file.
    Ours {
        text: String,
        spec: Arc<CdiSpec>,
    },
    /// Something else, or a file that cannot be read. The text is the reason to leave it alone.
    Foreign(String),
}

// === impl StorePlan ===

impl StorePlan {
    /// Reads the files and plans the steps. It changes nothing on the disk.
    pub(super) fn new(store: &Store, wishes: &[(SpecKey, WantedFile)], in_use: &InUse) -> Self {
        let mut plan = Self {
            rows: Vec::with_capacity(wishes.len()),
            steps: Vec::new(),
        };
        let mut removals = Vec::new();
        for (key, wanted) in wishes {
            let (row, path) = (plan.rows.len(), store.file_path(key));
            let (step, then) = decide(
                row,
                &path,
                wanted,
                FoundFile::inspect_file(&path, key.cdi_kind()),
                in_use,
            );
            match step {
                Some(step @ DiskStep::Write { .. }) => plan.steps.push(step),
                other => removals.extend(other),
            }
            let key = key.clone();
            plan.rows.push(PlannedFile { key, path, then });
        }
        plan.steps.extend(removals);
        let drafts = store.drafts(wishes.iter().map(|(key, _)| key));
        plan.steps.extend(drafts.into_iter().map(DiskStep::Sweep));
        plan
    }

    /// Carries out one step. A failure goes into the row of the file.
    pub(super) fn carry_out(&mut self, step: DiskStep) {
        let (row, verb, done) = match step {
            DiskStep::Write { row, spec } => {
                (row, "written", write_spec(&self.rows[row].path, &spec))
            }
            DiskStep::Remove { row } => (row, "removed", fs_err::remove_file(&self.rows[row].path)),
            // A temporary file that cannot be removed does no harm: its name does not end in .json, so no
            // runtime reads it.
            DiskStep::Sweep(draft) => return drop(fs_err::remove_file(draft)),
        };
        if let Err(error) = done {
            let row = &mut self.rows[row];
            row.then = Err(cannot(verb, &row.path, &error));
        }
    }

    /// Makes the outcome after all steps.
    pub(super) fn outcome(self) -> StoreOutcome {
        let mut outcome = StoreOutcome::default();
        for PlannedFile { key, path, then } in self.rows {
            let (names, problem): (BTreeSet<String>, _) = match then {
                Ok(Some(spec)) => (spec.qualified_names().collect(), None),
                Ok(None) => continue,
                Err(problem) => (BTreeSet::new(), Some(problem)),
            };
            outcome.files.push(FileStatus {
                key,
                path,
                names: names.len(),
                problem,
            });
            outcome.names.extend(names);
        }
        outcome
    }
}

// === impl FoundFile ===

impl FoundFile {
    /// Reads a file. A spec of the key's kind counts as ours even if another program wrote it: that program
    /// uses the same names, and is replaced by this agent.
    pub(super) fn inspect_file(path: &Path, kind: &str) -> Self {
        let text = match small::read_text(path, TEXT_LIMIT) {
            Ok(text) => text,
            // A path through a regular file has no file. The write later fails with the reason.
            Err(Error::Io(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Self::Nothing;
            }
            Err(error @ (Error::NotText | Error::NotAFile)) => {
                return Self::Foreign(error.to_string());
            }
            Err(error) => return Self::Foreign(format!("it cannot be read: {error}")),
        };
        match serde_json::from_str::<CdiSpec>(&text) {
            Err(error) => Self::Foreign(format!("it is no CDI spec: {error}")),
            Ok(spec) if spec.kind == kind => Self::Ours {
                text,
                spec: Arc::new(spec),
            },
            Ok(spec) => Self::Foreign(format!("it is a spec of another kind, {}", spec.kind)),
        }
    }
}

/// Decides the step for one file, if one is needed, and the spec in the file afterwards.
fn decide(
    row: usize,
    path: &Path,
    wanted: &WantedFile,
    found: FoundFile,
    in_use: &InUse,
) -> (Option<DiskStep>, Result<Option<Arc<CdiSpec>>, String>) {
    use WantedFile::{Absent, Held, Unchanged};
    match (wanted, found) {
        (WantedFile::Spec(spec) | Held(spec), FoundFile::Ours { text, .. })
            if text == spec.to_text() =>
        {
            (None, Ok(Some(Arc::clone(spec))))
        }
        // Another program wrote this text. It keeps its own containers' names up to date.
        (Held(_), FoundFile::Ours { text, spec }) if text != spec.to_text() => {
            (None, Ok(Some(spec)))
        }
        (WantedFile::Spec(spec) | Held(spec), FoundFile::Nothing | FoundFile::Ours { .. }) => {
            let spec = Arc::clone(spec);
            let step = DiskStep::Write {
                row,
                spec: Arc::clone(&spec),
            };
            (Some(step), Ok(Some(spec)))
        }
        (WantedFile::Spec(_) | Held(_), FoundFile::Foreign(why)) => {
            let why = format!(
                "{} is left alone, because {why}; remove it, so that the agent can write its own",
                path.display()
            );
            (None, Err(why))
        }
        (Absent, FoundFile::Ours { spec, .. }) if in_use.has_any(&spec) => (None, Ok(Some(spec))),
        // Only a text that we wrote is removed. Another program may still use a file that it wrote.
        (Absent, FoundFile::Ours { text, spec }) if text == spec.to_text() => {
            (Some(DiskStep::Remove { row }), Ok(None))
        }
        (Unchanged, FoundFile::Ours { spec, .. }) => (None, Ok(Some(spec))),
        // A file that is not ours and not wanted is not touched and not reported.
        (Absent | Unchanged, _) => (None, Ok(None)),
    }
}

fn write_spec(path: &Path, spec: &CdiSpec) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir)?;
    }
    host::atomic::replace_file(path, spec.to_text().as_bytes(), MODE)
}

/// Describes a failed step for an operator.
fn cannot(verb: &str, path: &Path, error: &io::Error) -> String {
    // The error begins with the path of the temporary file, which differs each time. Without it, equal
    // failures have equal texts and are logged once.
    let error = error.to_string();
    let reason = error.rsplit_once("`: ").map_or(&*error, |(_, why)| why);
    format!(
        "the CDI spec {} cannot be {verb}: {reason}; let the agent write there, or set cdi.dir",
        path.display()
    )
}
