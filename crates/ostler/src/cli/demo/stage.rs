//! Everything the demo needs in one temporary folder: node, kubelet, agent.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::PathBuf};

use anyhow::{Context, anyhow};
use sim::{
    Node, Profile,
    kubelet::{Kubelet, Settings},
};
use tempfile::TempDir;

use super::agent::{Agent, Files};

/// A longer path to the temporary folder leaves no room for the names of sockets.
const FOLDER_LIMIT: usize = 40;

/// How often the agent looks at the cards in the demo, so that nobody has to wait for it.
const CONFIG: &str = "probe:\n  period: 1s\nhealth:\n  holdDown: 3s\n";

/// The running node.
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
    /// Makes the node, starts the kubelet, then the agent.
    pub(super) async fn build(profile: &Profile) -> anyhow::Result<Self> {
        let folder = folder()?;
        let path = |name: &str| folder.path().join(name);
        let node = Node::create(&path("node"), profile)?;
        let pod_resources = path("pods.sock");
        let mut settings = Settings::new(path("kubelet"));
        settings.pod_resources = Some(pod_resources.clone());
        let kubelet = Kubelet::start(settings).await?;
        fs_err::write(path("ostler.yaml"), CONFIG)?;
        let agent = Agent::start(Files {
            node: &node,
            kubelet: kubelet.dir(),
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

    /// Ends everything and removes the folder.
    pub(super) async fn strike(mut self) -> anyhow::Result<()> {
        self.agent.stop().await?;
        self.kubelet.stop().await;
        self.folder
            .close()
            .context("cannot remove the temporary folder")
    }

    /// Ends everything after an error and keeps the folder, for the agent's log.
    pub(super) async fn keep(mut self, error: anyhow::Error) -> anyhow::Error {
        let stopped = self.agent.stop().await;
        self.kubelet.stop().await;
        self.folder.disable_cleanup(true);
        let log = self.agent.log();
        match stopped {
            Ok(()) => anyhow!("{error:#}; {log}"),
            Err(other) => anyhow!("{error:#}; {other:#}; {log}"),
        }
    }
}

/// A folder of our own with a short path.
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
