//! Folder of a node: the paths of its files, and changes of its state.

use std::path::{Path, PathBuf};

use crate::{
    state::State,
    store::{self, Error},
    tree::Tree,
};

/// Folder of a simulated node.
#[derive(Clone, Debug)]
pub struct Folder {
    dir: PathBuf,
}

// === impl Folder ===

impl Folder {
    /// Handle to the folder at this path. The path is not checked.
    pub fn at(dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { dir }
    }

    /// Path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Path of the driver library, which programs load in place of the real one.
    pub fn library(&self) -> PathBuf {
        self.dir.join(store::LIBRARY)
    }

    /// Path of the driver library while the driver is removed.
    pub fn unplugged(&self) -> PathBuf {
        self.dir.join(format!("unplugged-{}", store::LIBRARY))
    }

    /// Folder that stands for the host's `/`.
    pub fn root(&self) -> PathBuf {
        self.dir.join(store::ROOT)
    }

    /// Files of the host, with the driver's files if the driver is installed.
    pub fn tree(&self, state: &State) -> Tree {
        let tree = Tree::of(state);
        match self.unplugged().symlink_metadata() {
            Ok(_) => tree,
            Err(_) => tree.with(Tree::installation(state, &self.library())),
        }
    }

    /// Changes the state under the lock. New files are written before the state, old files removed
    /// after it.
    ///
    /// # Errors
    /// If the edit fails, or a file cannot be read or written. The state is unchanged then.
    pub fn revise<T, E: From<Error>>(
        &self,
        edit: impl FnOnce(&mut State) -> Result<T, E>,
    ) -> Result<T, E> {
        let _lock = store::Lock::take(&self.dir).map_err(Error::from)?;
        let mut state = store::load(&self.dir)?;
        let before = self.tree(&state);
        let answer = edit(&mut state)?;
        state.generation = state.generation.wrapping_add(1);
        let tree = self.tree(&state);
        // Most changes are of sensors and settings, and touch no file of the host.
        if tree == before {
            store::save(&self.dir, &state).map_err(Error::from)?;
            return Ok(answer);
        }
        tree.write(&self.root()).map_err(Error::from)?;
        store::save(&self.dir, &state).map_err(Error::from)?;
        tree.prune(&self.root()).map_err(Error::from)?;
        Ok(answer)
    }
}
