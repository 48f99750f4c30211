//! The folder of a node: where its files are, and how its state is changed.

use std::path::{Path, PathBuf};

use crate::{
    state::State,
    store::{self, Error},
    tree::Tree,
};

/// The folder of a simulated node.
#[derive(Clone, Debug)]
pub struct Folder {
    dir: PathBuf,
}

// === impl Folder ===

impl Folder {
    /// The folder at this path, which is not looked at.
    pub fn at(dir: &Path) -> Self {
        let dir = dir.to_owned();
        Self { dir }
    }

    /// The path of the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The driver library, to be loaded in place of the real one.
    pub fn library(&self) -> PathBuf {
        self.dir.join(store::LIBRARY)
    }

    /// Where the driver library is while the driver is taken away.
    pub fn unplugged(&self) -> PathBuf {
        self.dir.join(format!("unplugged-{}", store::LIBRARY))
    }

    /// The folder that stands for the host's `/`.
    pub fn root(&self) -> PathBuf {
        self.dir.join(store::ROOT)
    }

    /// The host's files, with the driver's where it is there.
    pub fn tree(&self, state: &State) -> Tree {
        let tree = Tree::of(state);
        match self.unplugged().symlink_metadata() {
            Ok(_) => tree,
            Err(_) => tree.with(Tree::installation(state, &self.library())),
        }
    }

    /// Changes the state under the lock: new files first, then the state, then old files.
    ///
    /// # Errors
    /// If the edit fails, or a file cannot be read or written. The state is as before then.
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
