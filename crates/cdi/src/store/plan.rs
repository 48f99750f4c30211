//! The steps from the files that are there to those that are wanted: specs are written before others are
//! removed, each by one step that is done whole or not at all.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use host::small::{self, Error};

use super::{FileStatus, InUse, Key, Outcome, Store, TEXT_LIMIT, Wanted};
use crate::Spec;

/// The permissions of a spec file: for everybody to read.
const MODE: u32 = 0o644;

/// The work on the disk, and the state of each file after it.
#[derive(Debug)]
pub(super) struct Plan {
    rows: Vec<Row>,
    pub(super) steps: Vec<Step>,
}

/// One change on the disk.
#[derive(Debug)]
pub(super) enum Step {
    /// Puts a spec into the file of a row.
    Write { row: usize, spec: Arc<Spec> },
    /// Removes the file of a row.
    Remove { row: usize },
    /// Removes a draft that an agent left which was ended in the middle of a step.
    Sweep(PathBuf),
}

/// A file, and the spec that it has when all steps are done, or why it is not as it should be.
#[derive(Debug)]
struct Row {
    key: Key,
    path: PathBuf,
    then: Result<Option<Arc<Spec>>, String>,
}

/// The thing at a path.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// A spec of the key's kind.
    Ours {
        text: String,
        spec: Arc<Spec>,
    },
    /// Something else, or something that cannot be read; why it is left alone.
    Foreign(String),
}

// === impl Plan ===

impl Plan {
    /// Looks at the disk, and changes nothing.
    pub(super) fn new(store: &Store, wishes: &[(Key, Wanted)], in_use: &InUse) -> Self {
        let mut plan = Self {
            rows: Vec::with_capacity(wishes.len()),
            steps: Vec::new(),
        };
        let mut removals = Vec::new();
        for (key, wanted) in wishes {
            let (row, path) = (plan.rows.len(), store.file(key));
            let (step, then) = decide(row, &path, wanted, Found::look(&path, key.kind()), in_use);
            match step {
                Some(step @ Step::Write { .. }) => plan.steps.push(step),
                other => removals.extend(other),
            }
            let key = key.clone();
            plan.rows.push(Row { key, path, then });
        }
        plan.steps.extend(removals);
        let drafts = store.drafts(wishes.iter().map(|(key, _)| key));
        plan.steps.extend(drafts.into_iter().map(Step::Sweep));
        plan
    }

    /// Carries out one step. A failure is noted with its file.
    pub(super) fn carry_out(&mut self, step: Step) {
        let (row, verb, done) = match step {
            Step::Write { row, spec } => (row, "written", write(&self.rows[row].path, &spec)),
            Step::Remove { row } => (row, "removed", fs_err::remove_file(&self.rows[row].path)),
            // Nobody takes a draft for a spec: one that cannot be removed harms nobody.
            Step::Sweep(draft) => return drop(fs_err::remove_file(draft)),
        };
        if let Err(error) = done {
            let row = &mut self.rows[row];
            row.then = Err(cannot(verb, &row.path, &error));
        }
    }

    /// The outcome, when all steps are done.
    pub(super) fn outcome(self) -> Outcome {
        let mut outcome = Outcome::default();
        for Row { key, path, then } in self.rows {
            let (names, problem): (BTreeSet<String>, _) = match then {
                Ok(Some(spec)) => (spec.names().collect(), None),
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

// === impl Found ===

impl Found {
    /// Looks at a file. A spec of the key's kind is ours, whoever wrote it: another program of the same
    /// vendor may use the same names, and its place is taken.
    pub(super) fn look(path: &Path, kind: &str) -> Self {
        let text = match small::read_text(path, TEXT_LIMIT) {
            Ok(text) => text,
            // Without a folder there is nothing in it; who writes there says what is wrong.
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
        match serde_json::from_str::<Spec>(&text) {
            Err(error) => Self::Foreign(format!("it is no CDI spec: {error}")),
            Ok(spec) if spec.kind == kind => Self::Ours {
                text,
                spec: Arc::new(spec),
            },
            Ok(spec) => Self::Foreign(format!("it is a spec of another kind, {}", spec.kind)),
        }
    }
}

/// The step for one file, if it takes one, and the spec that is in the file then.
fn decide(
    row: usize,
    path: &Path,
    wanted: &Wanted,
    found: Found,
    in_use: &InUse,
) -> (Option<Step>, Result<Option<Arc<Spec>>, String>) {
    use Wanted::{AsItIs, Held, Nothing};
    match (wanted, found) {
        (Wanted::Spec(spec) | Held(spec), Found::Ours { text, .. }) if text == spec.to_text() => {
            (None, Ok(Some(Arc::clone(spec))))
        }
        // In the hand of another program, which keeps it right.
        (Held(_), Found::Ours { text, spec }) if text != spec.to_text() => (None, Ok(Some(spec))),
        (Wanted::Spec(spec) | Held(spec), Found::Nothing | Found::Ours { .. }) => {
            let spec = Arc::clone(spec);
            let step = Step::Write {
                row,
                spec: Arc::clone(&spec),
            };
            (Some(step), Ok(Some(spec)))
        }
        (Wanted::Spec(_) | Held(_), Found::Foreign(why)) => {
            let why = format!(
                "{} is left alone, because {why}; remove it, so that the agent can write its own",
                path.display()
            );
            (None, Err(why))
        }
        (Nothing, Found::Ours { spec, .. }) if in_use.has_any(&spec) => (None, Ok(Some(spec))),
        // In our own hand: what another program wrote may still be in its use.
        (Nothing, Found::Ours { text, spec }) if text == spec.to_text() => {
            (Some(Step::Remove { row }), Ok(None))
        }
        (AsItIs, Found::Ours { spec, .. }) => (None, Ok(Some(spec))),
        // What is not wanted and not ours is none of our business.
        (Nothing | AsItIs, _) => (None, Ok(None)),
    }
}

fn write(path: &Path, spec: &Spec) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir)?;
    }
    host::atomic::write(path, spec.to_text().as_bytes(), MODE)
}

/// What failed. The error names a draft, which has another name each time, before it says why.
fn cannot(verb: &str, path: &Path, error: &io::Error) -> String {
    let error = error.to_string();
    let reason = error.rsplit_once("`: ").map_or(&*error, |(_, why)| why);
    format!(
        "the CDI spec {} cannot be {verb}: {reason}; let the agent write there, or set cdi.dir",
        path.display()
    )
}
