//! Store of spec files. A container runtime may read every `*.json` of the folder at any moment, so a file is
//! replaced atomically. A spec is on the disk before anything refers to its names. It stays while a container
//! was started with one of them, and is removed when nothing needs it. A file with our name that is not ours
//! is left alone.
//!
//! Calls block on the disk: make them on a thread of their own.

mod key;
mod plan;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use self::key::SpecKey;
use self::plan::{FoundFile, StorePlan};
use crate::{CdiSpec, TEXT_LIMIT};

/// Spec files in one folder.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
}

/// Wanted state of the file of each key. The rows of the outcome have the same order.
pub type WantedFiles = Vec<(SpecKey, WantedFile)>;

/// Wanted state of the file of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedFile {
    /// The file has this spec.
    Spec(Arc<CdiSpec>),
    /// The file has this spec, only for containers that run already. A spec of the kind that another program
    /// wrote is kept as it is.
    Held(Arc<CdiSpec>),
    /// The file is removed, unless a container was started with a name of it.
    Absent,
    /// The file stays as it is.
    Unchanged,
}

/// Names that containers were started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InUse {
    /// These qualified names, and no others.
    Names(BTreeSet<String>),
    /// The names are unknown: any name may be in use.
    Unknown,
}

/// State of the files after [`Store::settle_files`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreOutcome {
    /// Qualified names in the specs on the disk.
    pub names: BTreeSet<String>,
    /// One row for each file that exists or is wanted.
    pub files: Vec<FileStatus>,
    /// True if the disk did not answer in time. Names and files are then those of the last outcome.
    pub late: bool,
}

/// State of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Key of the file.
    pub key: SpecKey,
    /// Path of the file.
    pub path: PathBuf,
    /// Number of names in the file.
    pub names: usize,
    /// Reason why the file is not in the wanted state.
    pub problem: Option<String>,
}

// === impl Store ===

impl Store {
    /// Makes a store for a folder, which need not exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Path of the file of a key.
    pub fn file_path(&self, key: &SpecKey) -> PathBuf {
        self.dir.join(key.file_name())
    }

    /// Lists the keys of these kinds that have a file, sorted. Keys of claims are among them.
    pub fn keys(&self, kinds: &[&str]) -> Vec<SpecKey> {
        let names = self.list_file_names();
        let keys = names.filter_map(|name| SpecKey::from_file_name(&name, kinds));
        let keys: BTreeSet<SpecKey> = keys.collect();
        keys.into_iter().collect()
    }

    /// Reads the specs of these kinds from the disk. Files that are not specs are skipped.
    pub fn read_specs(&self, kinds: &[&str]) -> Vec<CdiSpec> {
        let keys = self.keys(kinds).into_iter();
        let found = keys.map(|key| FoundFile::inspect_file(&self.file_path(&key), key.cdi_kind()));
        let ours = found.filter_map(|found| match found {
            FoundFile::Ours { spec, .. } => Some(Arc::unwrap_or_clone(spec)),
            FoundFile::Nothing | FoundFile::Foreign(_) => None,
        });
        ours.collect()
    }

    /// Brings the files into the wanted state. A spec with a name that a container was started with is never
    /// removed. An agent that is killed during the call leaves complete files, and the next call continues.
    pub fn settle_files(&self, wishes: &[(SpecKey, WantedFile)], in_use: &InUse) -> StoreOutcome {
        let mut plan = StorePlan::new(self, wishes, in_use);
        for step in std::mem::take(&mut plan.steps) {
            plan.carry_out(step);
        }
        plan.outcome()
    }

    /// Lists the temporary files that an earlier agent left for these keys.
    fn drafts<'a>(&self, keys: impl Iterator<Item = &'a SpecKey>) -> Vec<PathBuf> {
        let begins: Vec<String> = keys
            .map(|key| format!(".{}.tmp-", key.file_name()))
            .collect();
        let is_draft = |name: &String| begins.iter().any(|begin| name.starts_with(begin));
        let names = self.list_file_names().filter(is_draft);
        names.map(|name| self.dir.join(name)).collect()
    }

    /// File names in the folder. Names that are not UTF-8 are skipped: ours are.
    fn list_file_names(&self) -> impl Iterator<Item = String> {
        let entries = fs_err::read_dir(&self.dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    }
}

// === impl InUse ===

impl InUse {
    /// True if a container may have been started with a name of the spec.
    pub fn has_any(&self, spec: &CdiSpec) -> bool {
        match self {
            Self::Names(names) => spec.qualified_names().any(|name| names.contains(&name)),
            Self::Unknown => true,
        }
    }
}

// === impl StoreOutcome ===

impl StoreOutcome {
    /// Returns the outcome with the problem that the disk did not answer. All other facts stay.
    #[must_use]
    pub fn with_problem(
        mut self,
        dir: &Path,
        wishes: &[(SpecKey, WantedFile)],
        problem: String,
    ) -> Self {
        // The problem is in the row of the first file only, so that it is reported once.
        if self.files.is_empty() {
            let first = wishes.first().map(|(key, _)| FileStatus {
                key: key.clone(),
                path: Store::new(dir).file_path(key),
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

    /// Reason why the file of a kind is not in the wanted state.
    pub fn find_problem(&self, kind: &str) -> Option<&str> {
        let mut files = self.files.iter();
        let file = files.find(|file| file.key.cdi_kind() == kind || self.late)?;
        file.problem.as_deref()
    }
}

#[cfg(test)]
mod tests;
