//! Where a device plugin is measured: a simulated node with a kubelet that is up already.

use std::{path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context as _, bail};
use kubelet::api::HEALTHY;
use rustix::process::{Pid, Signal, kill_process};
use sim::{
    Node, Profile,
    kubelet::{Kubelet, Settings},
};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, timeout},
};

use crate::subject::Subject;

/// What the eight cards are offered as.
pub(crate) const RESOURCE: &str = "nvidia.com/gpu";

/// How long a start or an end may take before the measurement is given up.
const LIMIT: Duration = Duration::from_secs(30);

/// A simulated node. Its folder goes with it.
#[derive(Debug)]
pub(crate) struct Bed {
    folder: TempDir,
    node: Node,
    /// How many cards it has.
    pub(crate) gpus: usize,
}

/// What a device plugin has to be told of a node.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The folder that stands for `/`.
    pub(crate) root: PathBuf,
    /// The driver library.
    pub(crate) library: PathBuf,
    /// The kubelet's device plugin folder.
    pub(crate) kubelet: PathBuf,
    /// The kubelet's pod resources socket.
    pub(crate) pod_resources: PathBuf,
    /// A file name for whatever socket the plugin serves its own commands on.
    pub(crate) control: PathBuf,
}

/// How long a start took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Until the kubelet had the registration.
    pub(crate) registered: Duration,
    /// Until the kubelet had the first list.
    pub(crate) listed: Duration,
}

/// A device plugin at work. It is killed when this goes.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Its process.
    pub(crate) pid: Pid,
    /// How long its start took.
    pub(crate) start: Start,
    /// The socket it registered.
    pub(crate) socket: PathBuf,
    /// The ids it listed, all of them healthy.
    pub(crate) devices: Vec<String>,
    _kubelet: Kubelet,
    _folder: TempDir,
}

// === impl Bed ===

impl Bed {
    /// Makes a node of that profile.
    pub(crate) fn make(profile: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("bench-").tempdir()?;
        let node = Node::create(&folder.path().join("node"), &Profile::named(profile)?)?;
        let gpus = node.gpus()?.len();
        Ok(Self { folder, node, gpus })
    }

    /// The places of the node, for a kubelet in that folder.
    pub(crate) fn places(&self, kubelet: &std::path::Path) -> Places {
        Places {
            root: self.node.root(),
            library: self.node.library(),
            kubelet: kubelet.join("plugins"),
            pod_resources: kubelet.join("pods.sock"),
            control: kubelet.join("control.sock"),
        }
    }

    /// The places of the node, for programs that need no kubelet.
    pub(crate) fn alone(&self) -> Places {
        self.places(self.folder.path())
    }

    /// Starts a kubelet and, once it is up, the program; waits for the first list.
    pub(crate) async fn start(&self, subject: &Subject) -> anyhow::Result<Running> {
        let folder = tempfile::Builder::new()
            .prefix("k-")
            .tempdir_in(self.folder.path())?;
        let places = self.places(folder.path());
        let mut settings = Settings::new(&places.kubelet);
        settings.pod_resources = Some(places.pod_resources.clone());
        let kubelet = Kubelet::start(settings).await?;
        let mut command = Command::from(subject.command(&places));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs_err::File::create(folder.path().join("log"))?.into_file())
            .kill_on_drop(true);
        let began = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", subject.binary.display()))?;
        let heard = |kubelet: &Kubelet| !kubelet.lists(RESOURCE).is_empty();
        let waited = kubelet.wait_until("a first list", heard, LIMIT).await;
        if let Err(error) = waited {
            let log = fs_err::read_to_string(folder.path().join("log"))?;
            bail!("{error}\n{} said:\n{log}", subject.name);
        }
        self.running(child, began, kubelet, folder)
    }

    fn running(
        &self,
        child: Child,
        began: Instant,
        kubelet: Kubelet,
        folder: TempDir,
    ) -> anyhow::Result<Running> {
        let registrations = kubelet.registrations();
        let registration = registrations.first().context("listed and not registered")?;
        let lists = kubelet.lists(RESOURCE);
        let list = lists.first().context("the first list is gone")?;
        let healthy = list.devices.iter().filter(|d| d.health == HEALTHY);
        let devices: Vec<String> = healthy.map(|device| device.id.clone()).collect();
        if devices.len() != self.gpus {
            let (found, all) = (devices.len(), self.gpus);
            bail!("the first list has {found} healthy devices of {all}");
        }
        let pid = child
            .id()
            .and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        Ok(Running {
            pid: pid.context("the program ended at once")?,
            child,
            start: Start {
                registered: registration.at.duration_since(began),
                listed: list.at.duration_since(began),
            },
            socket: kubelet.dir().join(&registration.endpoint),
            devices,
            _kubelet: kubelet,
            _folder: folder,
        })
    }
}

// === impl Running ===

impl Running {
    /// Stops it as a kubelet stops a pod; says how long that took.
    pub(crate) async fn stop(mut self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        kill_process(self.pid, Signal::TERM)?;
        let ended = timeout(LIMIT, self.child.wait()).await;
        ended.context("the program does not end")??;
        Ok(began.elapsed())
    }
}
