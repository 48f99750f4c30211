//! A node's folder: making it, reading it, and the commands that change it.
//!
//! Commands may come from any process at any time; each takes the node's lock, so none is lost.

use std::{
    io,
    path::{Path, PathBuf},
};

use sim_node::{
    BusId, Folder, Tree, mig,
    state::{Gpu, Mig, Model, Platform, State},
    store,
};

use crate::{
    library,
    profile::{self, Profile},
    target,
};

mod card;
mod change;
mod renew;

pub use card::NewGpu;
pub use change::EccKind;
pub use renew::Holders;

/// A simulated node.
#[derive(Clone, Debug)]
pub struct Node {
    folder: Folder,
}

/// A card as the commands show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// `GPU-…`.
    pub uuid: String,
    /// The driver's index.
    pub index: usize,
    /// The number of its device node.
    pub minor: u32,
    /// Where it sits.
    pub pci: BusId,
    /// The product name.
    pub name: String,
    /// The NUMA node it is attached to.
    pub numa: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Whether it has fallen off the bus.
    pub lost: bool,
    /// Whether MIG mode is on.
    pub mig_enabled: bool,
}

/// A MIG device as the commands show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigInfo {
    /// `MIG-…`.
    pub uuid: String,
    /// The UUID of its card.
    pub gpu: String,
    /// The driver's index: `3:1`.
    pub index: String,
    /// Its profile, e.g. `1g.5gb`.
    pub profile: String,
    /// The GPU instance.
    pub gpu_instance: u32,
    /// The compute instance.
    pub compute_instance: u32,
}

/// What a command could not do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The node's files.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file; the error names it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The profile.
    #[error(transparent)]
    Profile(#[from] profile::Error),
    /// The device is not there.
    #[error(transparent)]
    Missing(#[from] target::Missing),
    /// The card cannot be cut like this.
    #[error(transparent)]
    Mig(#[from] mig::Error),
    /// There is a node in the folder already.
    #[error("there is a node in {dir} already")]
    Exists {
        /// The folder.
        dir: PathBuf,
    },
    /// The sensor is not known.
    #[error("{device} has no sensor `{name}`; it has: {known}")]
    Sensor {
        /// The device.
        device: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The command is not for such a device.
    #[error("{device} is a {kind}; {wanted}")]
    Kind {
        /// The device.
        device: String,
        /// What it is.
        kind: &'static str,
        /// What the command takes.
        wanted: &'static str,
    },
    /// The address is taken.
    #[error("there is a card at {pci} already")]
    Taken {
        /// The address.
        pci: BusId,
    },
    /// The model is not known.
    #[error("there is no model `{name}`; there are: {known}")]
    Model {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The name of a call in a fault is no NVML function.
    #[error("`{call}` is no NVML function; give a name such as nvmlDeviceGetMemoryInfo, or `*`")]
    Call {
        /// What was asked for.
        call: String,
    },
}

/// What a command gives.
pub(crate) type Result<T> = std::result::Result<T, Error>;

// === impl Node ===

impl Node {
    /// Makes a node in a folder, which is made too if it is not there.
    ///
    /// # Errors
    /// If there is a node already, or if a file cannot be written.
    pub fn create(dir: &Path, profile: &Profile) -> Result<Self> {
        let state = profile.state()?;
        fs_err::create_dir_all(dir)?;
        let folder = Folder::at(&fs_err::canonicalize(dir)?);
        let dir = folder.dir();
        let _lock = store::Lock::take(dir)?;
        if dir.join(store::STATE).exists() {
            let dir = dir.to_owned();
            return Err(Error::Exists { dir });
        }
        folder.tree(&state).write(&folder.root())?;
        fs_err::write(dir.join(store::EVENTS), "")?;
        for name in libraries(state.machine.platform) {
            library::write(&dir.join(name))?;
        }
        store::save(dir, &state)?;
        Ok(Self { folder })
    }

    /// The node in a folder.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn open(dir: &Path) -> Result<Self> {
        let folder = Folder::at(&fs_err::canonicalize(dir)?);
        store::load(folder.dir())?;
        Ok(Self { folder })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        self.folder.dir()
    }

    /// The driver library, to be loaded in place of the real one.
    pub fn library(&self) -> PathBuf {
        self.folder.library()
    }

    /// Puts the driver library there anew, as an update of the driver does: the same content in
    /// another file. Processes that have loaded the old one keep it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn replace_library(&self) -> Result<()> {
        Ok(library::write(&self.library())?)
    }

    /// The folder that stands for the host's `/`.
    pub fn root(&self) -> PathBuf {
        self.folder.root()
    }

    /// The whole state as it is now.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn state(&self) -> Result<State> {
        Ok(store::load(self.dir())?)
    }

    /// The cards in the driver's order.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn gpus(&self) -> Result<Vec<GpuInfo>> {
        let state = self.state()?;
        let cards = state.gpus.iter().enumerate();
        Ok(cards.map(|(index, gpu)| info(&state, index, gpu)).collect())
    }

    /// The MIG devices in the driver's order.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn migs(&self) -> Result<Vec<MigInfo>> {
        let state = self.state()?;
        let mut found = Vec::new();
        for (index, gpu) in state.gpus.iter().enumerate() {
            let model = state.models.get(&gpu.model);
            for (position, mig) in gpu.migs.iter().enumerate() {
                let index = format!("{index}:{position}");
                found.push(mig_info(gpu, model, index, mig));
            }
        }
        Ok(found)
    }

    /// Starts to record each NVML call, from here on.
    ///
    /// # Errors
    /// If the log cannot be made.
    pub fn trace(&self) -> Result<()> {
        Ok(fs_err::write(self.dir().join(store::CALLS), "")?)
    }

    /// The calls since [`Node::trace`], each as `nvmlName target`; none if they are not recorded.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn calls(&self) -> Result<Vec<String>> {
        match fs_err::read_to_string(self.dir().join(store::CALLS)) {
            Ok(log) => Ok(log.lines().map(str::to_owned).collect()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e.into()),
        }
    }

    /// Takes the driver away, as on a machine without one: its library, and its files in the root.
    /// Processes that have loaded the library keep it.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn unplug_driver(&self) -> Result<()> {
        let _lock = store::Lock::take(self.dir())?;
        let installation = Tree::installation(&self.state()?, &self.library());
        rename(&self.library(), &self.folder.unplugged())?;
        Ok(installation.remove(&self.root())?)
    }

    /// Puts the driver back.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn plug_driver(&self) -> Result<()> {
        let _lock = store::Lock::take(self.dir())?;
        let installation = Tree::installation(&self.state()?, &self.library());
        installation.write(&self.root())?;
        rename(&self.folder.unplugged(), &self.library())
    }

    /// Changes the state, see [`Folder::revise`].
    fn change<T>(&self, edit: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.folder.revise(edit)
    }
}

/// What the driver's library is called on a platform, by all its names.
fn libraries(platform: Platform) -> &'static [&'static str] {
    match platform {
        Platform::BareMetal | Platform::Vgpu => &[store::LIBRARY],
        Platform::Wsl => &[store::LIBRARY, store::DXCORE],
        Platform::Tegra => &[],
    }
}

/// Moves a file that may have been moved already.
fn rename(from: &Path, to: &Path) -> Result<()> {
    if from.symlink_metadata().is_err() && to.symlink_metadata().is_ok() {
        return Ok(());
    }
    Ok(fs_err::rename(from, to)?)
}

fn info(state: &State, index: usize, gpu: &Gpu) -> GpuInfo {
    let model = state.models.get(&gpu.model);
    GpuInfo {
        uuid: gpu.uuid.clone(),
        index,
        minor: gpu.minor,
        pci: gpu.pci,
        name: model.map(|m| m.name.clone()).unwrap_or_default(),
        numa: gpu.numa,
        memory_bytes: model.map_or(0, |m| m.memory_mib.saturating_mul(1 << 20)),
        lost: gpu.lost,
        mig_enabled: gpu.mig_enabled,
    }
}

fn mig_info(gpu: &Gpu, model: Option<&Model>, index: String, mig: &Mig) -> MigInfo {
    let shape = model.and_then(|model| model.shape(&mig.profile));
    MigInfo {
        uuid: mig.uuid.clone(),
        gpu: gpu.uuid.clone(),
        index,
        profile: shape.map(|shape| mig.name(shape)).unwrap_or_default(),
        gpu_instance: mig.gi,
        compute_instance: mig.ci,
    }
}
