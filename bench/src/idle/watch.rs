//! One agent that is left alone: what it has done before and after, and what it used meanwhile.

use std::{collections::BTreeMap, ffi::OsString, io, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::{
    peer::{Launch, Site},
    running::{RESOURCE, Running},
    tree::{Tree, Usage},
};

/// Logs plans, and what is logged anyway.
const LOG: &str = "--log=info,ostler::run::offers=debug";
/// The line of a plan in the log.
const PLAN: &str = "planned what to offer";

/// The config of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// None.
    Defaults,
    /// CDI specs are written.
    Cdi,
}

/// An agent at work.
#[derive(Debug)]
pub(super) struct Watched {
    running: Running,
    begun: Option<Begun>,
}

/// The moment from which an agent is watched.
#[derive(Debug)]
struct Begun {
    did: Did,
    tree: Tree,
    usage: Usage,
}

/// All that an agent has done since it started.
#[derive(Debug)]
struct Did {
    generation: u64,
    plans: usize,
    specs: BTreeMap<OsString, Stamp>,
}

/// A file as it was written: another one in its place has another inode or another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    changed: (i64, i64),
}

/// What an agent did and used while it was watched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Snapshots that it published.
    pub(super) snapshots: usize,
    /// Plans that it made; none if its log does not tell.
    pub(super) plans: Option<usize>,
    /// Specs that are there.
    pub(super) specs: usize,
    /// Specs that came, went or were written again.
    pub(super) rewritten: usize,
    /// Lists that it sent after the first one, which was complete.
    pub(super) lists: usize,
    /// CPU time of all its processes, in seconds.
    pub(super) cpu: f64,
    /// How often their threads woke up.
    pub(super) wakes: f64,
    /// Their anonymous memory at the end, in bytes.
    pub(super) anonymous: f64,
}

// === impl Mode ===

impl Mode {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Defaults, Self::Cdi];

    /// What it is called in the results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Defaults => "defaults",
            Self::Cdi => "cdi-cri",
        }
    }

    /// Whether there are specs.
    pub(super) fn has_specs(self) -> bool {
        self == Self::Cdi
    }

    fn config(self) -> Option<&'static str> {
        match self {
            Self::Defaults => None,
            Self::Cdi => Some("handover: {lists: [cdi-cri]}\n"),
        }
    }
}

// === impl Watched ===

impl Watched {
    /// Starts an agent; its first list has all cards.
    ///
    /// # Errors
    /// If it does not.
    pub(super) async fn start(site: &Site, agent: &Launch, mode: Mode) -> anyhow::Result<Self> {
        let desk = site.desk().await?;
        let mut agent = agent.clone().arg(LOG);
        if let Some(config) = mode.config() {
            let file = desk.folder().join("ostler.yaml");
            fs_err::write(&file, config)?;
            agent = agent.file("--config", &file);
        }
        let running = Running::at(desk, &agent, site.node.list_gpus()?.len()).await?;
        let begun = None;
        Ok(Self { running, begun })
    }

    /// Watches it from now on.
    ///
    /// # Errors
    /// If it does not show what it did.
    pub(super) async fn begin(&mut self) -> anyhow::Result<()> {
        let did = self.did().await?;
        let tree = Tree::of(self.running.pid())?;
        // Last, so that no question of ours is in it.
        let usage = Usage::of(&tree)?;
        self.begun = Some(Begun { did, tree, usage });
        Ok(())
    }

    /// Ends it; what it did and used since [`Self::begin`].
    ///
    /// # Errors
    /// If a process of it came or went: what that one used would not be counted.
    pub(super) async fn end(self) -> anyhow::Result<Seen> {
        let begun = self.begun.as_ref().context("it was not watched")?;
        let tree = Tree::of(self.running.pid())?;
        ensure!(
            tree == begun.tree,
            "a process of the agent came or went; it said:\n{}",
            self.running.log()
        );
        // First, so that no question of ours is in it.
        let used = Usage::of(&tree)?.since(&begun.usage);
        let anonymous = tree.memory()?.total().anonymous;
        let did = self.did().await?;
        let before = &begun.did;
        let snapshots = did.generation.saturating_sub(before.generation);
        let lists = self.running.kubelet().device_lists(RESOURCE).len();
        let seen = Seen {
            snapshots: usize::try_from(snapshots)?,
            plans: (before.plans > 0).then(|| did.plans.saturating_sub(before.plans)),
            specs: did.specs.len(),
            rewritten: rewritten(&before.specs, &did.specs),
            lists: lists.saturating_sub(1),
            cpu: used.cpu_seconds(),
            wakes: used.switches(),
            anonymous,
        };
        self.running.stop().await?;
        Ok(seen)
    }

    async fn did(&self) -> anyhow::Result<Did> {
        let run = self.running.run();
        let page = web::client::read_page(&run.join("ostler/control.sock"), "/v1/devices").await?;
        // As plain JSON: an older agent has the page, perhaps in another form.
        let page: Value = serde_json::from_slice(&page)?;
        let log = self.running.log();
        Ok(Did {
            generation: page["generation"].as_u64().context("no generation")?,
            plans: log.lines().filter(|line| line.contains(PLAN)).count(),
            specs: stamps(&run.join("cdi"))?,
        })
    }
}

/// The files of a folder; none if there is no folder.
fn stamps(folder: &Path) -> anyhow::Result<BTreeMap<OsString, Stamp>> {
    let entries = match fs_err::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries?,
    };
    let mut stamps = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        let file = entry.metadata()?;
        let stamp = Stamp {
            inode: file.ino(),
            changed: (file.mtime(), file.mtime_nsec()),
        };
        stamps.insert(entry.file_name(), stamp);
    }
    Ok(stamps)
}

/// How many files are not as they were, or not there on one side.
fn rewritten(before: &BTreeMap<OsString, Stamp>, now: &BTreeMap<OsString, Stamp>) -> usize {
    let changed = now
        .iter()
        .filter(|(name, stamp)| before.get(*name) != Some(stamp));
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    changed.count() + gone.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_replaced_by_the_same_text_was_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let (one, draft) = (folder.path().join("one"), folder.path().join("draft"));
        assert_eq!(stamps(&folder.path().join("none")).unwrap().len(), 0);
        fs_err::write(&one, "text").unwrap();
        let before = stamps(folder.path()).unwrap();
        assert_eq!(rewritten(&before, &stamps(folder.path()).unwrap()), 0);
        fs_err::write(&draft, "text").unwrap();
        fs_err::rename(&draft, &one).unwrap();
        assert_eq!(rewritten(&before, &stamps(folder.path()).unwrap()), 1);
        fs_err::remove_file(&one).unwrap();
        assert_eq!(rewritten(&before, &stamps(folder.path()).unwrap()), 1);
    }
}
