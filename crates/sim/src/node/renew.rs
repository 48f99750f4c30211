//! What makes a card new: a reset, a new loading of the driver, a start of the machine; and who has
//! a card open and stands in the way.

use std::{
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sim_node::{
    state::{Gpu, Sensors, State},
    store,
};

use super::{Node, Result};
use crate::target::Target;

/// Where the folders of earlier loadings of the driver are kept, so that none of their numbers is
/// given to a later one: the kernel gives no number twice either.
const MODULES: &str = "modules";

/// Who has a card's device node open.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Holders {
    /// The card's UUID.
    pub gpu: String,
    /// The driver's index.
    pub index: usize,
    /// The card's device node, e.g. `/dev/nvidia0`.
    pub node: String,
    /// The processes, in order.
    pub pids: Vec<u32>,
}

// === impl Node ===

impl Node {
    /// Resets cards: each is lost for a time and comes back without MIG devices and processes, with
    /// what waited for a reset done and what is counted from a reset on at zero. Whoever has a card
    /// open is not asked: see [`Node::holders`].
    ///
    /// # Errors
    /// If the target is not there, or is a MIG device.
    pub fn reset(&self, target: &Target, away: Duration) -> Result<()> {
        self.lose(target)?;
        thread::sleep(away);
        self.change(|state| {
            for (place, _) in target.find(state)? {
                renew(state, place);
            }
            Ok(())
        })
    }

    /// Unloads the driver and loads it again: every card is as after a reset, and the driver's
    /// folder in `/sys/module` is another one.
    ///
    /// # Errors
    /// If the node's files cannot be changed.
    pub fn reload_driver(&self) -> Result<()> {
        self.change(|state| {
            (0..state.gpus.len()).for_each(|place| renew(state, place));
            Ok(())
        })?;
        self.new_module()
    }

    /// Starts the machine again: as a new loading of the driver, with another boot id.
    ///
    /// # Errors
    /// If the node's files cannot be changed.
    pub fn reboot(&self) -> Result<()> {
        self.change(|state| {
            state.reboots = state.reboots.saturating_add(1);
            (0..state.gpus.len()).for_each(|place| renew(state, place));
            Ok(())
        })?;
        self.new_module()
    }

    /// Who has which card open, by the files that processes of this machine hold: the driver library
    /// opens a card's device node when a program asks for the card and closes it at the last
    /// `nvmlShutdown`. Processes that may not be looked at are left out.
    ///
    /// # Errors
    /// If the state or `/proc` cannot be read.
    pub fn holders(&self) -> Result<Vec<Holders>> {
        let mut cards = Vec::new();
        let mut files = Vec::new();
        for gpu in self.gpus()? {
            let node = format!("/dev/nvidia{}", gpu.minor);
            files.push(identity(&self.root().join(node.trim_start_matches('/'))));
            cards.push(Holders {
                gpu: gpu.uuid,
                index: gpu.index,
                node,
                pids: Vec::new(),
            });
        }
        for pid in processes()? {
            let open = open_files(pid);
            for (card, file) in cards.iter_mut().zip(&files) {
                if file.is_some_and(|file| open.contains(&file)) {
                    card.pids.push(pid);
                }
            }
        }
        Ok(cards)
    }

    /// Puts another folder in the place of the driver's, which was there the whole time.
    fn new_module(&self) -> Result<()> {
        let _lock = store::Lock::take(self.dir())?;
        let current = self.root().join("sys/module/nvidia");
        if !current.exists() {
            return Ok(());
        }
        let kept = self.dir().join(MODULES);
        fs_err::create_dir_all(&kept)?;
        let other = kept.join(fs_err::read_dir(&kept)?.count().to_string());
        copy(&current, &other)?;
        renameat_with(CWD, &other, CWD, &current, RenameFlags::EXCHANGE)
            .map_err(io::Error::from)?;
        Ok(())
    }
}

/// Makes a card new.
fn renew(state: &mut State, place: usize) {
    let gpu = &mut state.gpus[place];
    let idle = state.models.get(&gpu.model).map(|model| model.idle.clone());
    let old = std::mem::replace(&mut gpu.sensors, idle.unwrap_or_default());
    gpu.sensors = Sensors {
        ecc_corrected_past: old.ever_corrected(),
        ecc_uncorrected_past: old.ever_uncorrected(),
        remapped_corrected: old.remapped_corrected,
        remapped_uncorrected: old.remapped_uncorrected,
        // What could not be replaced once cannot be replaced at all.
        remap_failed: old.remap_failed,
        retired_pages: old.retired_pages.saturating_add(old.retired_pending),
        ..gpu.sensors.clone()
    };
    gpu.count_anew();
    let Gpu {
        lost,
        migs,
        instances,
        processes,
        ..
    } = gpu;
    *lost = false;
    migs.clear();
    instances.clear();
    processes.clear();
}

/// Which file on which disk.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs_err::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

fn processes() -> io::Result<Vec<u32>> {
    let names = fs_err::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> = names.collect();
    pids.sort_unstable();
    Ok(pids)
}

fn open_files(pid: u32) -> Vec<(u64, u64)> {
    let folder = PathBuf::from(format!("/proc/{pid}/fd"));
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| identity(&entry.path()))
        .collect()
}

/// Copies a folder of plain files.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs_err::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
