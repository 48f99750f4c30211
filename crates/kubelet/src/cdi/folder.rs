//! The files themselves. A runtime reads every `*.json` of the folder at any moment, so a file is
//! replaced whole; and a file under our name that is not ours is left alone.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use cdi::Spec;
use host::small::{self, Error};

use super::TEXT_LIMIT;

/// The permissions of a spec file: for everybody to read.
const MODE: u32 = 0o644;

/// Each kind with what is to become of its file, in the order of the vendors and their kinds.
pub(super) type Files = Vec<(&'static str, Wanted)>;

/// The fate of the file of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// It has this.
    Spec(Arc<Spec>),
    /// The same for containers of before, while no pool asks for it: what another agent wrote is
    /// that one's to keep right.
    Held(Arc<Spec>),
    /// It is not there.
    Nothing,
    /// It stays as it is.
    AsItIs,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The qualified names that specs on the disk have.
    pub(super) names: BTreeSet<String>,
    /// One row for each file that is there or should be.
    pub(super) files: Vec<FileStatus>,
    /// Whether the disk did not answer.
    pub(super) late: bool,
}

/// How a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// The CDI kind of its devices.
    pub kind: &'static str,
    /// The file.
    pub path: PathBuf,
    /// How many names it has.
    pub names: usize,
    /// Why it is not as it should be.
    pub problem: Option<String>,
}

/// What is at a path.
enum Found {
    Nothing,
    /// A spec of this kind.
    Ours {
        text: String,
        spec: Box<Spec>,
    },
    /// Something else, or something that cannot be read; why it is left alone.
    Foreign(String),
}

/// The file of a kind.
pub(super) fn file(dir: &Path, kind: &str) -> PathBuf {
    dir.join(format!("{}.json", kind.replace('/', "-")))
}

/// The specs of ours that are there.
pub(super) fn read(dir: &Path, kinds: &[&'static str]) -> Vec<Spec> {
    let found = kinds.iter().map(|kind| find(&file(dir, kind), kind));
    let ours = found.filter_map(|found| match found {
        Found::Ours { spec, .. } => Some(*spec),
        Found::Nothing | Found::Foreign(_) => None,
    });
    ours.collect()
}

/// Makes the files as wanted.
pub(super) fn sync(dir: &Path, files: &Files) -> Outcome {
    let mut outcome = Outcome::default();
    for (kind, wanted) in files {
        let path = file(dir, kind);
        let done = settle(&path, kind, wanted);
        let (names, problem) = match done {
            Ok(Some(spec)) => (spec.names().collect(), None),
            Ok(None) => continue,
            Err(problem) => (Vec::new(), Some(problem)),
        };
        outcome.files.push(FileStatus {
            kind,
            path,
            names: names.len(),
            problem,
        });
        outcome.names.extend(names);
    }
    outcome
}

// === impl Outcome ===

impl Outcome {
    /// The same, and a problem with all of it: the disk did not answer.
    pub(super) fn with_problem(mut self, dir: &Path, files: &Files, problem: String) -> Self {
        if self.files.is_empty() {
            let first = files.first().map(|(kind, _)| FileStatus {
                kind,
                path: file(dir, kind),
                names: 0,
                problem: None,
            });
            self.files.extend(first);
        }
        if let Some(file) = self.files.first_mut() {
            file.problem = Some(problem);
        }
        self.late = true;
        self
    }

    /// The reason why the file of a kind is not as it should be.
    pub(super) fn problem(&self, kind: &str) -> Option<&str> {
        let mut files = self.files.iter();
        let file = files.find(|file| file.kind == kind || self.late)?;
        file.problem.as_deref()
    }
}

/// Makes one file as wanted; the spec that is in it then.
fn settle(path: &Path, kind: &str, wanted: &Wanted) -> Result<Option<Spec>, String> {
    use Wanted::{AsItIs, Held, Nothing};
    match (wanted, find(path, kind)) {
        (Wanted::Spec(spec) | Held(spec), Found::Ours { text, .. }) if text == spec.to_text() => {
            Ok(Some(Spec::clone(spec)))
        }
        (Held(_), Found::Ours { text, spec }) if text != spec.to_text() => Ok(Some(*spec)),
        (Wanted::Spec(spec) | Held(spec), Found::Nothing | Found::Ours { .. }) => {
            write(path, spec).map_err(|error| cannot("written", path, &error))?;
            Ok(Some(Spec::clone(spec)))
        }
        (Wanted::Spec(_) | Held(_), Found::Foreign(why)) => Err(format!(
            "{} is left alone, because {why}; remove it, so that the agent can write its own",
            path.display()
        )),
        // In our own hand: what NVIDIA's plugin wrote may still be in its use.
        (Nothing, Found::Ours { text, spec }) if text == spec.to_text() => {
            match fs_err::remove_file(path) {
                Ok(()) => Ok(None),
                Err(error) => Err(cannot("removed", path, &error)),
            }
        }
        (AsItIs, Found::Ours { spec, .. }) => Ok(Some(*spec)),
        // What is not wanted and not ours is none of our business.
        (Nothing | AsItIs, _) => Ok(None),
    }
}

/// Looks at a file. A spec of our kind is ours, whoever wrote it: NVIDIA's plugin uses the same
/// names, and its place is taken.
fn find(path: &Path, kind: &str) -> Found {
    let text = match small::read_text(path, TEXT_LIMIT) {
        Ok(text) => text,
        // Without a folder there is nothing in it; who writes there says what is wrong.
        Err(Error::Io(error))
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Found::Nothing;
        }
        Err(error @ (Error::NotText | Error::NotAFile)) => {
            return Found::Foreign(error.to_string());
        }
        Err(error) => return Found::Foreign(format!("it cannot be read: {error}")),
    };
    let spec: Spec = match serde_json::from_str(&text) {
        Ok(spec) => spec,
        Err(error) => return Found::Foreign(format!("it is no CDI spec: {error}")),
    };
    match spec.kind == kind {
        true => Found::Ours {
            text,
            spec: Box::new(spec),
        },
        false => Found::Foreign(format!("it is a spec of another kind, {}", spec.kind)),
    }
}

fn write(path: &Path, spec: &Spec) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs_err::create_dir_all(dir)?;
    }
    host::atomic::write(path, spec.to_text().as_bytes(), MODE)
}

/// What failed. The error names a draft, which has another name each time, before it says why.
fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    let error = error.to_string();
    let reason = error.rsplit_once("`: ").map_or(&*error, |(_, why)| why);
    format!(
        "the CDI spec {} cannot be {what}: {reason}; let the agent write there, or set cdi.dir",
        path.display()
    )
}

#[cfg(test)]
mod tests;
