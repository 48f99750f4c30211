//! Cgroup of a run, in each hierarchy of the machine: version 1 has many, version 2 one.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::name;

/// Cgroup of the harness itself in a version 2 hierarchy.
const HARNESS: &str = "harness";

/// Cgroup of a run, in all hierarchies.
#[derive(Debug)]
pub(super) struct Cgroups {
    folders: Vec<Folder>,
}

/// The cgroup in one hierarchy.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    unified: bool,
}

// === impl Cgroups ===

impl Cgroups {
    /// Cgroup of the run with this work folder.
    pub(super) fn of(work: &Path) -> Result<Self> {
        Self::named(&name(work))
    }

    /// Cgroup of this name.
    pub(super) fn named(id: &str) -> Result<Self> {
        let mounts = fs_err::read_to_string("/proc/self/mounts")?;
        let folders = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (point, kind) = (words.next()?, words.next()?);
            matches!(kind, "cgroup" | "cgroup2").then(|| Folder {
                path: Path::new(point).join(id),
                unified: kind == "cgroup2",
            })
        });
        let folders: Vec<_> = folders.collect();
        if folders.is_empty() {
            anyhow::bail!("no cgroup hierarchy is mounted; mount one at /sys/fs/cgroup");
        }
        Ok(Self { folders })
    }

    /// Creates the cgroup.
    pub(super) fn create(&self) -> Result<()> {
        for folder in &self.folders {
            fs_err::create_dir(&folder.path)?;
            folder.inherit()?;
            if folder.unified {
                fs_err::create_dir(folder.path.join(HARNESS))?;
            }
        }
        Ok(())
    }

    /// Moves this process into the cgroup.
    pub(super) fn join(&self) -> Result<()> {
        self.folders.iter().try_for_each(|f| enter(&f.path))
    }

    /// Moves this process from the top into a child.
    pub(super) fn settle(&self) -> Result<()> {
        let unified = self.folders.iter().filter(|f| f.unified);
        unified
            .map(|folder| folder.path.join(HARNESS))
            .try_for_each(|path| enter(&path))
    }

    /// Processes in the cgroup.
    pub(super) fn members(&self) -> Result<Vec<String>> {
        let mut members = Vec::new();
        for folder in &self.folders {
            for path in tree(&folder.path)? {
                let text = fs_err::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
                members.extend(text.lines().map(str::to_owned));
            }
        }
        members.sort();
        members.dedup();
        Ok(members)
    }

    /// Removes the cgroup and its children. Returns the folders that could not be removed.
    pub(super) fn remove(&self) -> Result<Vec<PathBuf>> {
        let mut left = Vec::new();
        for folder in &self.folders {
            for path in tree(&folder.path)? {
                if fs_err::remove_dir(&path).is_err() {
                    left.push(path);
                }
            }
        }
        Ok(left)
    }
}

// === impl Folder ===

impl Folder {
    /// Copies the parent's processors and memory nodes: a new cpuset of version 1 is empty, and no
    /// process can run in it.
    fn inherit(&self) -> Result<()> {
        let above = self.path.parent().context("a cgroup has a parent")?;
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let own = self.path.join(file);
            if !self.unified && own.exists() {
                fs_err::write(own, fs_err::read(above.join(file))?)?;
            }
        }
        Ok(())
    }
}

fn enter(path: &Path) -> Result<()> {
    Ok(fs_err::write(path.join("cgroup.procs"), "0")?)
}

/// A cgroup and its children, deepest first; empty if the cgroup does not exist.
fn tree(top: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !top.is_dir() {
        return Ok(found);
    }
    for entry in fs_err::read_dir(top)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(tree(&entry.path())?);
        }
    }
    found.push(top.to_owned());
    Ok(found)
}
