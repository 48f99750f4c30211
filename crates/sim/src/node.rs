//! Folder of a node: creating it, reading it, and the commands that change it.
//!
//! Any process may run a command at any time. Each command takes the node's lock, so no change is
//! lost.

use std::{
    io,
    path::{Path, PathBuf},
};

use sim_node::{
    BusId, HostTree, NodeFolder, mig,
    state::{Gpu, GpuModel, MigDevice, NodePlatform, NodeState},
    store,
};

use crate::{
    library,
    profile::{self, NodeProfile},
    target,
};

mod card;
mod change;
mod renew;

pub use card::NewGpu;
pub use change::EccKind;
pub use renew::CardHolders;

/// A simulated node: a handle to its folder. Clones share the folder.
#[derive(Clone, Debug)]
pub struct Node {
    folder: NodeFolder,
}

/// A card, as commands show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// `GPU-…`.
    pub uuid: String,
    /// Index in the driver's order.
    pub index: usize,
    /// Minor number of the device node.
    pub minor: u32,
    /// PCI address.
    pub pci: BusId,
    /// The product name.
    pub name: String,
    /// NUMA node of the card.
    pub numa: Option<u32>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// True if the card has fallen off the bus.
    pub lost: bool,
    /// True if MIG mode is on.
    pub mig_enabled: bool,
}

/// A MIG device, as commands show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigInfo {
    /// `MIG-…`.
    pub uuid: String,
    /// UUID of the card.
    pub gpu: String,
    /// Index as the driver shows it: `3:1`.
    pub index: String,
    /// MIG profile, e.g. `1g.5gb`.
    pub profile: String,
    /// Id of the GPU instance.
    pub gpu_instance: u32,
    /// Id of the compute instance.
    pub compute_instance: u32,
}

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The node's files cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Another file cannot be read or written; the error names it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The profile is unknown or invalid.
    #[error(transparent)]
    Profile(#[from] profile::Error),
    /// The target does not exist.
    #[error(transparent)]
    Missing(#[from] target::MissingTarget),
    /// The card cannot be partitioned as requested.
    #[error(transparent)]
    Mig(#[from] mig::Error),
    /// The folder has a node already.
    #[error("there is a node in {dir} already")]
    Exists {
        /// The folder.
        dir: PathBuf,
    },
    /// The sensor is unknown.
    #[error("{device} has no sensor `{name}`; it has: {known}")]
    Sensor {
        /// UUID of the device.
        device: String,
        /// Requested sensor.
        name: String,
        /// All sensors of the device, separated by commas.
        known: String,
    },
    /// The command does not apply to this kind of device.
    #[error("{device} is a {kind}; {wanted}")]
    Kind {
        /// UUID of the device.
        device: String,
        /// Kind of the device.
        kind: &'static str,
        /// Kind that the command applies to.
        wanted: &'static str,
    },
    /// The PCI address is in use.
    #[error("there is a card at {pci} already")]
    Taken {
        /// The address.
        pci: BusId,
    },
    /// The model is unknown.
    #[error("there is no model `{name}`; there are: {known}")]
    Model {
        /// Requested model.
        name: String,
        /// All known models, separated by commas.
        known: String,
    },
    /// The function name in a fault is no NVML function.
    #[error("`{call}` is no NVML function; give a name such as nvmlDeviceGetMemoryInfo, or `*`")]
    Call {
        /// Requested function name.
        call: String,
    },
}

/// Result of a command.
pub(crate) type Result<T> = std::result::Result<T, Error>;

// === impl Node ===

impl Node {
    /// Creates a node in a folder. The folder is created if it is missing.
    ///
    /// # Errors
    /// If the folder has a node already, or if a file cannot be written.
    pub fn create_node(dir: &Path, profile: &NodeProfile) -> Result<Self> {
        let state = profile.to_state()?;
        fs_err::create_dir_all(dir)?;
        let folder = NodeFolder::at_path(&fs_err::canonicalize(dir)?);
        let dir = folder.folder_path();
        let _lock = store::StoreLock::take_lock(dir)?;
        if dir.join(store::STATE).exists() {
            let dir = dir.to_owned();
            return Err(Error::Exists { dir });
        }
        folder.host_tree(&state).write_tree(&folder.root_path())?;
        fs_err::write(dir.join(store::EVENTS), "")?;
        for name in library_names(state.machine.platform) {
            library::write_library(&dir.join(name))?;
        }
        // The state comes last: a folder with a state file is a complete node.
        store::save_state(dir, &state)?;
        Ok(Self { folder })
    }

    /// Opens the node in a folder.
    ///
    /// # Errors
    /// If the folder has no node, or the node cannot be read.
    pub fn open_node(dir: &Path) -> Result<Self> {
        let folder = NodeFolder::at_path(&fs_err::canonicalize(dir)?);
        store::load_state(folder.folder_path())?;
        Ok(Self { folder })
    }

    /// Folder of the node.
    pub fn node_dir(&self) -> &Path {
        self.folder.folder_path()
    }

    /// Path of the driver library, which programs load in place of the real one.
    pub fn driver_library(&self) -> PathBuf {
        self.folder.library_path()
    }

    /// Replaces the driver library by a copy, as an update of the driver does: the same content in
    /// another file. Processes that have loaded the old one keep it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn replace_library(&self) -> Result<()> {
        Ok(library::write_library(&self.driver_library())?)
    }

    /// Folder that stands for the host's `/`.
    pub fn host_root(&self) -> PathBuf {
        self.folder.root_path()
    }

    /// Reads the whole state.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn node_state(&self) -> Result<NodeState> {
        Ok(store::load_state(self.node_dir())?)
    }

    /// Lists the cards in the driver's order.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn list_gpus(&self) -> Result<Vec<GpuInfo>> {
        let state = self.node_state()?;
        let cards = state.gpus.iter().enumerate();
        Ok(cards
            .map(|(index, gpu)| describe_gpu(&state, index, gpu))
            .collect())
    }

    /// Lists the MIG devices in the driver's order.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn list_migs(&self) -> Result<Vec<MigInfo>> {
        let state = self.node_state()?;
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

    /// Starts to record every NVML call.
    ///
    /// # Errors
    /// If the log cannot be created.
    pub fn trace(&self) -> Result<()> {
        Ok(fs_err::write(self.node_dir().join(store::CALLS), "")?)
    }

    /// Calls since [`Node::trace`], each as `nvmlName target`; empty if calls are not recorded.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn traced_calls(&self) -> Result<Vec<String>> {
        match fs_err::read_to_string(self.node_dir().join(store::CALLS)) {
            Ok(log) => Ok(log.lines().map(str::to_owned).collect()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes the driver, as on a machine without one: its library and its files in the root.
    /// Processes that have loaded the library keep it.
    ///
    /// # Errors
    /// If the library cannot be moved.
    pub fn unplug_driver(&self) -> Result<()> {
        let _lock = store::StoreLock::take_lock(self.node_dir())?;
        let installation = HostTree::installation(&self.node_state()?, &self.driver_library());
        rename(&self.driver_library(), &self.folder.unplugged())?;
        Ok(installation.remove_entries(&self.host_root())?)
    }

    /// Puts the driver back after [`Node::unplug_driver`].
    ///
    /// # Errors
    /// If the library cannot be moved.
    pub fn plug_driver(&self) -> Result<()> {
        let _lock = store::StoreLock::take_lock(self.node_dir())?;
        let installation = HostTree::installation(&self.node_state()?, &self.driver_library());
        installation.write_tree(&self.host_root())?;
        rename(&self.folder.unplugged(), &self.driver_library())
    }

    /// Changes the state under the node's lock; see [`NodeFolder::revise`].
    fn change_node<T>(&self, edit: impl FnOnce(&mut NodeState) -> Result<T>) -> Result<T> {
        self.folder.revise(edit)
    }
}

/// File names of the driver's library on a platform.
fn library_names(platform: NodePlatform) -> &'static [&'static str] {
    match platform {
        NodePlatform::BareMetal | NodePlatform::Vgpu => &[store::LIBRARY],
        NodePlatform::Wsl => &[store::LIBRARY, store::DXCORE],
        NodePlatform::Tegra => &[],
    }
}

/// Moves a file. A file that has been moved already is no error.
fn rename(from: &Path, to: &Path) -> Result<()> {
    // The source is missing and the target exists: an earlier call has moved the file.
    if from.symlink_metadata().is_err() && to.symlink_metadata().is_ok() {
        return Ok(());
    }
    Ok(fs_err::rename(from, to)?)
}

fn describe_gpu(state: &NodeState, index: usize, gpu: &Gpu) -> GpuInfo {
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

fn mig_info(gpu: &Gpu, model: Option<&GpuModel>, index: String, mig: &MigDevice) -> MigInfo {
    let shape = model.and_then(|model| model.find_shape(&mig.profile));
    MigInfo {
        uuid: mig.uuid.clone(),
        gpu: gpu.uuid.clone(),
        index,
        profile: shape.map(|shape| mig.mig_name(shape)).unwrap_or_default(),
        gpu_instance: mig.gi,
        compute_instance: mig.ci,
    }
}
