//! The store of spec files. A runtime reads every `*.json` of the folder at any moment, so a file is replaced
//! whole. A spec is on the disk before anything refers to its names, stays while a container was started with
//! one of them, and goes when nobody wants it. A file under our name that is not ours is left alone.
//!
//! The store blocks: call it where a disk that hangs holds up nobody.

mod key;
mod plan;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use self::key::Key;
use self::plan::{Found, Plan};
use crate::{Spec, TEXT_LIMIT};

/// Spec files in one folder.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
}

/// Each key with what is to become of its file, in the order in which they are told of.
pub type Wishes = Vec<(Key, Wanted)>;

/// The fate of the file of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It has this.
    Spec(Arc<Spec>),
    /// The same for containers of before, while nobody asks for it now: what another program wrote is
    /// that one's to keep right.
    Held(Arc<Spec>),
    /// It is not there, unless a container was started with a name of it.
    Nothing,
    /// It stays as it is.
    AsItIs,
}

/// The names that containers were started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InUse {
    /// These qualified names, and no others.
    Names(BTreeSet<String>),
    /// It is not known: any name may be in use.
    Unknown,
}

/// The files after the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The qualified names that specs on the disk have.
    pub names: BTreeSet<String>,
    /// One row for each file that is there or should be.
    pub files: Vec<FileStatus>,
    /// True if the disk did not answer.
    pub late: bool,
}

/// The state of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// The key of the file.
    pub key: Key,
    /// The file.
    pub path: PathBuf,
    /// The number of names in it.
    pub names: usize,
    /// The reason why it is not as it should be.
    pub problem: Option<String>,
}

// === impl Store ===

impl Store {
    /// The store of a folder, which need not exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The file of a key.
    pub fn file(&self, key: &Key) -> PathBuf {
        self.dir.join(key.file_name())
    }

    /// The keys of these kinds that have a file, sorted: those of claims, too, which nobody could guess.
    pub fn keys(&self, kinds: &[&str]) -> Vec<Key> {
        let names = self.entries();
        let keys = names.filter_map(|name| Key::from_file_name(&name, kinds));
        let keys: BTreeSet<Key> = keys.collect();
        keys.into_iter().collect()
    }

    /// The specs of these kinds that are there.
    pub fn read(&self, kinds: &[&str]) -> Vec<Spec> {
        let keys = self.keys(kinds).into_iter();
        let found = keys.map(|key| Found::look(&self.file(&key), key.kind()));
        let ours = found.filter_map(|found| match found {
            Found::Ours { spec, .. } => Some(Arc::unwrap_or_clone(spec)),
            Found::Nothing | Found::Foreign(_) => None,
        });
        ours.collect()
    }

    /// Makes the files as wished. What is not wished is not removed where a container was started with it.
    /// An agent that is ended at any moment leaves whole files, and the next call goes on from there.
    pub fn settle(&self, wishes: &[(Key, Wanted)], in_use: &InUse) -> Outcome {
        let mut plan = Plan::new(self, wishes, in_use);
        for step in std::mem::take(&mut plan.steps) {
            plan.carry_out(step);
        }
        plan.outcome()
    }

    /// The drafts of these files that an agent of before left.
    fn drafts<'a>(&self, keys: impl Iterator<Item = &'a Key>) -> Vec<PathBuf> {
        let begins: Vec<String> = keys
            .map(|key| format!(".{}.tmp-", key.file_name()))
            .collect();
        let is_draft = |name: &String| begins.iter().any(|begin| name.starts_with(begin));
        let names = self.entries().filter(is_draft);
        names.map(|name| self.dir.join(name)).collect()
    }

    /// The names of what is in the folder; those that are no texts are not ours.
    fn entries(&self) -> impl Iterator<Item = String> {
        let entries = fs_err::read_dir(&self.dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    }
}

// === impl InUse ===

impl InUse {
    /// Returns true if a container may have been started with a name of the spec.
    pub fn has_any(&self, spec: &Spec) -> bool {
        match self {
            Self::Names(names) => spec.names().any(|name| names.contains(&name)),
            Self::Unknown => true,
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// The same, and a problem with all of it: the disk did not answer.
    #[must_use]
    pub fn with_problem(mut self, dir: &Path, wishes: &[(Key, Wanted)], problem: String) -> Self {
        if self.files.is_empty() {
            let first = wishes.first().map(|(key, _)| FileStatus {
                key: key.clone(),
                path: Store::new(dir).file(key),
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
    pub fn problem(&self, kind: &str) -> Option<&str> {
        let mut files = self.files.iter();
        let file = files.find(|file| file.key.kind() == kind || self.late)?;
        file.problem.as_deref()
    }
}

#[cfg(test)]
mod tests;
