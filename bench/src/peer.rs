//! Programs side by side on the same simulated node: ours, and NVIDIA's, whose paths are fixed. Each
//! runs in a mount namespace of its own in which the node's files are where a real node has them,
//! so all are started the same way and with their own defaults.
//!
//! ```ignore
//! let site = Site::make("dgx-a100")?;
//! let desk = site.desk().await?;                       // a kubelet, up already
//! let launch = Launch::of(&programs, Program::NvidiaPlugin)?.arg("--pass-device-specs");
//! let process = desk.start(&launch).await?;            // desk.kubelet sees it register
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

mod namespace;
mod process;
mod site;

pub(crate) use self::{
    process::Process,
    site::{Desk, Site},
};

/// The kubelet's socket by a name with an `@`. grpc-go makes the path its `:authority`, with a `%` for
/// each slash; the real kubelet does not mind, Rust's `http` takes a `%` only in front of an `@`.
const KUBELET_SOCKET: &str = "@kubelet.sock";

/// A program that runs on a simulated node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Ours.
    Ostler,
    /// NVIDIA's device plugin.
    NvidiaPlugin,
    /// NVIDIA's feature discovery.
    NvidiaGfd,
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// Ours.
    pub(crate) ostler: PathBuf,
    /// Ours without the simulator, if it was built; it is weighed and not run.
    pub(crate) without_sim: Option<PathBuf>,
    /// The folder with NVIDIA's, if they are to be had.
    pub(crate) nvidia: Option<PathBuf>,
}

/// A program and what it is told.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The program's file.
    pub(crate) binary: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Its environment, besides `PATH` and the way to the driver library.
    pub(crate) env: Vec<(String, String)>,
}

// === impl Program ===

impl Program {
    /// What it is called in the results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ostler => "ostler",
            Self::NvidiaPlugin => "nvidia-device-plugin",
            Self::NvidiaGfd => "gpu-feature-discovery",
        }
    }
}

// === impl Programs ===

impl Programs {
    /// A program's file.
    ///
    /// # Errors
    /// If it is not there.
    pub(crate) fn find(&self, program: Program) -> anyhow::Result<PathBuf> {
        let file = match program {
            Program::Ostler => self.ostler.clone(),
            Program::NvidiaPlugin | Program::NvidiaGfd => {
                let folder = self.nvidia.as_deref();
                let folder = folder.context(
                    "NVIDIA's programs are not here; bench/compare builds them, --nvidia DIR \
                     names their folder",
                )?;
                folder.join(program.name())
            }
        };
        ensure!(file.is_file(), "{} is not there", file.display());
        Ok(fs_err::canonicalize(file)?)
    }
}

// === impl Launch ===

impl Launch {
    /// A program with nothing but what makes it serve here.
    ///
    /// # Errors
    /// If its file is not there.
    pub(crate) fn of(programs: &Programs, program: Program) -> anyhow::Result<Self> {
        let args = match program {
            Program::Ostler => vec!["run".to_owned()],
            Program::NvidiaPlugin => vec![format!(
                "--kubelet-socket=/var/lib/kubelet/device-plugins/{KUBELET_SOCKET}"
            )],
            Program::NvidiaGfd => Vec::new(),
        };
        Ok(Self {
            binary: programs.find(program)?,
            args,
            env: Vec::new(),
        })
    }

    /// The same with one more argument.
    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The same with a file named by a flag.
    pub(crate) fn file(self, flag: &str, file: &Path) -> Self {
        self.arg(flag).arg(file.display().to_string())
    }

    /// The same with one more variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }
}
