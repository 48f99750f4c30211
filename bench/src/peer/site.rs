//! A simulated node, and on it kubelets with what they need to meet a program.

use std::path::{Path, PathBuf};

use sim::{
    Node, NodeProfile,
    kubelet::{Kubelet, KubeletSettings},
};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{KUBELET_SOCKET, Launch, Process, namespace::Namespace};

/// A simulated node. Its folder goes with it.
#[derive(Debug)]
pub(crate) struct Site {
    folder: TempDir,
    /// The node, to be read and changed.
    pub(crate) node: Node,
}

/// A kubelet of the node, and where a program meets it. Its folder goes with it.
#[derive(Debug)]
pub(crate) struct Desk {
    /// The kubelet. It serves outside the namespace, on the folder that is seen inside.
    pub(crate) kubelet: Kubelet,
    namespace: Namespace,
    folder: TempDir,
}

// === impl Site ===

impl Site {
    /// Makes a node of that profile.
    ///
    /// # Errors
    /// If there is no such profile, or a file cannot be written.
    pub(crate) fn make(profile: &str) -> anyhow::Result<Self> {
        Self::of(&NodeProfile::find_profile(profile)?)
    }

    /// Makes a node of a profile that may have no name.
    ///
    /// # Errors
    /// If the profile contradicts itself, or a file cannot be written.
    pub(crate) fn of(profile: &NodeProfile) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("bench-").tempdir()?;
        let node = Node::create_node(&folder.path().join("node"), profile)?;
        Ok(Self { folder, node })
    }

    /// Starts a kubelet that has met nobody yet.
    ///
    /// # Errors
    /// If it cannot start.
    pub(crate) async fn desk(&self) -> anyhow::Result<Desk> {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("k-").tempdir_in(self.folder.path())?;
        let namespace = Namespace::of(self.node.node_dir(), folder.path())?;
        let mut settings = KubeletSettings::new(folder.path().join("plugins"));
        settings.pod_resources = Some(folder.path().join("pods/kubelet.sock"));
        let kubelet = Kubelet::start_kubelet(settings).await?;
        let desk = Desk {
            kubelet,
            namespace,
            folder,
        };
        desk.link()?;
        Ok(desk)
    }
}

// === impl Desk ===

impl Desk {
    /// Starts a program. The clock starts when it is let go, in its namespace.
    ///
    /// # Errors
    /// If the namespace cannot be made.
    pub(crate) async fn start(&self, launch: &Launch) -> anyhow::Result<Process> {
        self.namespace.enter(launch).await?.go().await
    }

    /// Restarts the kubelet; since when it is up.
    ///
    /// # Errors
    /// If it cannot start.
    pub(crate) async fn restart(&self) -> anyhow::Result<Instant> {
        fs_err::remove_file(self.kubelet.plugin_dir().join(KUBELET_SOCKET))?;
        self.kubelet.restart_kubelet().await?;
        let began = Instant::now();
        self.link()?;
        Ok(began)
    }

    /// Makes the other name of the kubelet's socket, which appears when the socket does.
    fn link(&self) -> anyhow::Result<()> {
        fs_err::os::unix::fs::symlink(
            "kubelet.sock",
            self.kubelet.plugin_dir().join(KUBELET_SOCKET),
        )?;
        Ok(())
    }

    /// The folder of this kubelet, for files that a program is told of: the program sees it under
    /// the same name.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What a program sees as `/run`.
    pub(crate) fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// The socket of a registration, as seen from here.
    pub(crate) fn socket(&self, endpoint: &str) -> PathBuf {
        self.kubelet.plugin_dir().join(endpoint)
    }
}
