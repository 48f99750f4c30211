//! Commands that renew cards: a reset, a reload of the driver, a reboot of the machine. Also finds
//! the processes that have a card open, which would block a reset.

use std::{
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sim_node::{
    state::{Gpu, NodeState, Sensors},
    store,
};

use super::{Node, Result};
use crate::target::DeviceTarget;

/// Folder that keeps the module folders of earlier loadings of the driver. They keep their inodes
/// in use: the kernel does not reuse an inode number of sysfs for a later loading either.
const MODULES: &str = "modules";

/// Processes that have a card's device node open.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CardHolders {
    /// UUID of the card.
    pub gpu: String,
    /// Index in the driver's order.
    pub index: usize,
    /// Device node of the card, e.g. `/dev/nvidia0`.
    pub node: String,
    /// Process ids, ascending.
    pub pids: Vec<u32>,
}

// === impl Node ===

impl Node {
    /// Resets cards. Each is lost for `away` and comes back without MIG devices and processes.
    /// Pending changes are applied, and counters that count from a reset are zero. Processes that
    /// have a card open are ignored: see [`Node::holders`].
    ///
    /// # Errors
    /// If the target does not exist, or is a MIG device.
    pub fn reset_cards(&self, target: &DeviceTarget, away: Duration) -> Result<()> {
        // Lost for the whole of `away`, so that polling programs can notice.
        self.lose_cards(target)?;
        thread::sleep(away);
        self.change_node(|state| {
            for (place, _) in target.find_places(state)? {
                renew_card(state, place);
            }
            Ok(())
        })
    }

    /// Unloads the driver and loads it again. Every card is as after a reset, and
    /// `/sys/module/nvidia` is a new folder.
    ///
    /// # Errors
    /// If the node's files cannot be changed.
    pub fn reload_driver(&self) -> Result<()> {
        self.change_node(|state| {
            (0..state.gpus.len()).for_each(|place| renew_card(state, place));
            Ok(())
        })?;
        self.new_module()
    }

    /// Reboots the machine: reloads the driver and changes the boot id.
    ///
    /// # Errors
    /// If the node's files cannot be changed.
    pub fn reboot(&self) -> Result<()> {
        self.change_node(|state| {
            state.reboots = state.reboots.saturating_add(1);
            (0..state.gpus.len()).for_each(|place| renew_card(state, place));
            Ok(())
        })?;
        self.new_module()
    }

    /// Finds the processes that have each card open, by the file descriptors of this machine's
    /// processes. The driver library opens a card's device node when a program asks for the card,
    /// and closes it at the last `nvmlShutdown`. Processes whose descriptors may not be read are
    /// left out.
    ///
    /// # Errors
    /// If the state or `/proc` cannot be read.
    pub fn holders(&self) -> Result<Vec<CardHolders>> {
        let mut cards = Vec::new();
        let mut files = Vec::new();
        for gpu in self.list_gpus()? {
            let node = format!("/dev/nvidia{}", gpu.minor);
            files.push(file_identity(
                &self.host_root().join(node.trim_start_matches('/')),
            ));
            cards.push(CardHolders {
                gpu: gpu.uuid,
                index: gpu.index,
                node,
                pids: Vec::new(),
            });
        }
        for pid in list_pids()? {
            let open = open_files(pid);
            for (card, file) in cards.iter_mut().zip(&files) {
                if file.is_some_and(|file| open.contains(&file)) {
                    card.pids.push(pid);
                }
            }
        }
        Ok(cards)
    }

    /// Replaces the driver's module folder by another one. The exchange is atomic, so the path
    /// exists all the time.
    fn new_module(&self) -> Result<()> {
        let _lock = store::StoreLock::take_lock(self.node_dir())?;
        let current = self.host_root().join("sys/module/nvidia");
        if !current.exists() {
            return Ok(());
        }
        let kept = self.node_dir().join(MODULES);
        fs_err::create_dir_all(&kept)?;
        // Numbered copies stay in the folder and keep their inodes in use.
        let other = kept.join(fs_err::read_dir(&kept)?.count().to_string());
        copy(&current, &other)?;
        renameat_with(CWD, &other, CWD, &current, RenameFlags::EXCHANGE)
            .map_err(io::Error::from)?;
        Ok(())
    }
}

/// Resets the state of a card. Lifetime counters stay.
fn renew_card(state: &mut NodeState, place: usize) {
    let gpu = &mut state.gpus[place];
    let idle = state.models.get(&gpu.model).map(|model| model.idle.clone());
    let old = std::mem::replace(&mut gpu.sensors, idle.unwrap_or_default());
    gpu.sensors = Sensors {
        ecc_corrected_past: old.ever_corrected(),
        ecc_uncorrected_past: old.ever_uncorrected(),
        remapped_corrected: old.remapped_corrected,
        remapped_uncorrected: old.remapped_uncorrected,
        // A row that could not be remapped once cannot be remapped at all.
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

/// Identity of a file: device and inode.
fn file_identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs_err::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

fn list_pids() -> io::Result<Vec<u32>> {
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
        .filter_map(|entry| file_identity(&entry.path()))
        .collect()
}

/// Copies a folder of plain files; folders in it are left out.
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
