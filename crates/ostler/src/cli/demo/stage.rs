//! The node of the demo in one temporary folder: simulated driver, simulated kubelet, real agent.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::PathBuf};

use anyhow::{Context, anyhow};
use sim::{
    Node, NodeProfile,
    kubelet::{Kubelet, KubeletSettings},
};
use tempfile::TempDir;

use super::agent::{Agent, Files};

/// Longest path of the folder for temporary files. A unix socket's path has 107 bytes at most
/// (`sun_path`, unix(7)), and the names of our sockets need the rest.
const FOLDER_LIMIT: usize = 40;

/// Config of the agent: shorter times than the defaults, so that the demo does not wait.
const CONFIG: &str = "probe:\n  period: 1s\nhealth:\n  holdDown: 3s\n";

/// The running node of the demo.
#[derive(Debug)]
pub(super) struct Stage {
    /// The simulated node.
    pub(super) node: Node,
    /// The simulated kubelet.
    pub(super) kubelet: Kubelet,
    /// The real agent.
    pub(super) agent: Agent,
    folder: TempDir,
}

// === impl Stage ===

impl Stage {
    /// Makes the node, starts the kubelet, then starts the agent.
    ///
    /// # Errors
    /// There is no writable folder with a short path, or one of the three does not start.
    pub(super) async fn build(profile: &NodeProfile) -> anyhow::Result<Self> {
        let folder = folder()?;
        let path = |name: &str| folder.path().join(name);
        let node = Node::create_node(&path("node"), profile)?;
        let pod_resources = path("pods.sock");
        let mut settings = KubeletSettings::new(path("kubelet"));
        settings.pod_resources = Some(pod_resources.clone());
        let kubelet = Kubelet::start_kubelet(settings).await?;
        fs_err::write(path("ostler.yaml"), CONFIG)?;
        let agent = Agent::start(Files {
            node: &node,
            kubelet: kubelet.plugin_dir(),
            pod_resources: &pod_resources,
            config: &path("ostler.yaml"),
            control: path("control.sock"),
            log: path("agent.log"),
        })?;
        Ok(Self {
            node,
            kubelet,
            agent,
            folder,
        })
    }

    /// Stops everything and removes the folder.
    pub(super) async fn strike(mut self) -> anyhow::Result<()> {
        self.agent.stop().await?;
        self.kubelet.stop_kubelet().await;
        self.folder
            .close()
            .context("cannot remove the temporary folder")
    }

    /// Stops everything after an error, and keeps the folder with the agent's log. Adds the end of
    /// the log to the error.
    pub(super) async fn keep(mut self, error: anyhow::Error) -> anyhow::Error {
        let stopped = self.agent.stop().await;
        self.kubelet.stop_kubelet().await;
        self.folder.disable_cleanup(true);
        let log = self.agent.log();
        match stopped {
            Ok(()) => anyhow!("{error:#}; {log}"),
            Err(other) => anyhow!("{error:#}; {other:#}; {log}"),
        }
    }
}

/// Makes a temporary folder with a short path, for this user only.
fn folder() -> anyhow::Result<TempDir> {
    let usual = std::env::temp_dir();
    let parent = match usual.as_os_str().len() > FOLDER_LIMIT {
        true => PathBuf::from("/tmp"),
        false => usual,
    };
    let made = tempfile::Builder::new()
        .prefix("ostler-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(&parent);
    made.with_context(|| {
        let parent = parent.display();
        format!("cannot make a temporary folder in {parent}; set TMPDIR to a short path")
    })
}
