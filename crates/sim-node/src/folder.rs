//! Folder of a node: the paths of its files, and changes of its state.

use std::path::{Path, PathBuf};

use crate::{
    state::NodeState,
    store::{self, Error},
    tree::HostTree,
};

/// Folder of a simulated node.
#[derive(Clone, Debug)]
pub struct NodeFolder {
    dir: PathBuf,
}

// === impl NodeFolder ===

impl NodeFolder {
    /// Handle to the folder at this path. The path is not checked.
    pub fn at_path(dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { dir }
    }

    /// Path of the folder.
    pub fn folder_path(&self) -> &Path {
        &self.dir
    }

    /// Path of the driver library, which programs load in place of the real one.
    pub fn library_path(&self) -> PathBuf {
        self.dir.join(store::LIBRARY)
    }

    /// Path of the driver library while the driver is removed.
    pub fn unplugged(&self) -> PathBuf {
        self.dir.join(format!("unplugged-{}", store::LIBRARY))
    }

    /// Folder that stands for the host's `/`.
    pub fn root_path(&self) -> PathBuf {
        self.dir.join(store::ROOT)
    }

    /// Files of the host, with the driver's files if the driver is installed.
    pub fn host_tree(&self, state: &NodeState) -> HostTree {
        let tree = HostTree::from_state(state);
        match self.unplugged().symlink_metadata() {
            Ok(_) => tree,
            Err(_) => tree.with_entries(HostTree::installation(state, &self.library_path())),
        }
    }

    /// Changes the state under the lock. New files are written before the state, old files removed
    /// after it.
    ///
    /// # Errors
    /// If the edit fails, or a file cannot be read or written. The state is unchanged then.
    pub fn revise<T, E: From<Error>>(
        &self,
        edit: impl FnOnce(&mut NodeState) -> Result<T, E>,
    ) -> Result<T, E> {
        let _lock = store::StoreLock::take_lock(&self.dir).map_err(Error::from)?;
        let mut state = store::load_state(&self.dir)?;
        let before = self.host_tree(&state);
        let answer = edit(&mut state)?;
        state.generation = state.generation.wrapping_add(1);
        let tree = self.host_tree(&state);
        // Most changes are of sensors and settings, and touch no file of the host.
        if tree == before {
            store::save_state(&self.dir, &state).map_err(Error::from)?;
            return Ok(answer);
        }
        tree.write_tree(&self.root_path()).map_err(Error::from)?;
        store::save_state(&self.dir, &state).map_err(Error::from)?;
        tree.prune_others(&self.root_path()).map_err(Error::from)?;
        Ok(answer)
    }
}
