//! A device plugin at work on a simulated node, from the first list that its kubelet has.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use kubelet_api::HEALTHY;
use rustix::process::Pid;
use sim::kubelet::Kubelet;

use crate::peer::{Desk, Launch, Process, Site};

/// What the cards are offered as.
pub(crate) const RESOURCE: &str = "nvidia.com/gpu";

/// How long a start or an end may take before the measurement is given up.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A device plugin at work. It is killed when this goes.
#[derive(Debug)]
pub(crate) struct Running {
    process: Process,
    desk: Desk,
    /// How long its start took.
    pub(crate) start: Start,
    /// The socket it registered.
    pub(crate) socket: PathBuf,
    /// The ids it listed first, all of them healthy.
    pub(crate) devices: Vec<String>,
}

/// How long a start took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Until the kubelet had the registration.
    pub(crate) registered: Duration,
    /// Until the kubelet had the first list.
    pub(crate) listed: Duration,
}

// === impl Running ===

impl Running {
    /// Starts a program on a node whose kubelet is up, and waits for the first list.
    ///
    /// # Errors
    /// If there is none, or not all cards are in it and healthy.
    pub(crate) async fn start(site: &Site, launch: &Launch) -> anyhow::Result<Self> {
        let desk = site.desk().await?;
        Self::at(desk, launch, site.node.list_gpus()?.len()).await
    }

    /// Starts a program that will list that many units at this kubelet.
    ///
    /// # Errors
    /// If it does not list exactly these.
    pub(crate) async fn at(desk: Desk, launch: &Launch, units: usize) -> anyhow::Result<Self> {
        let mut process = desk.start(launch).await?;
        let name = launch.binary.display();
        let heard = |kubelet: &Kubelet| !kubelet.device_lists(RESOURCE).is_empty();
        let failed = tokio::select! {
            waited = desk.kubelet.wait_until("a first list", heard, LIMIT) => {
                waited.err().map(|error| error.to_string())
            }
            ended = process.ended(LIMIT) => Some(format!("it ended: {}", ended?)),
        };
        if let Some(error) = failed {
            bail!("{error}\n{name} said:\n{}", process.log());
        }
        let registrations = desk.kubelet.registrations();
        let registration = registrations.iter().find(|r| r.resource == RESOURCE);
        let registration = registration.context("listed and not registered")?;
        let lists = desk.kubelet.device_lists(RESOURCE);
        let list = lists.first().context("the first list is gone")?;
        let healthy = list.devices.iter().filter(|d| d.health == HEALTHY);
        let devices: Vec<String> = healthy.map(|device| device.id.clone()).collect();
        if devices.len() != units {
            let found = devices.len();
            bail!("the first list of {name} has {found} healthy units of {units}");
        }
        Ok(Self {
            start: Start {
                registered: registration.at.duration_since(process.began),
                listed: list.at.duration_since(process.began),
            },
            socket: desk.socket(&registration.endpoint),
            devices,
            process,
            desk,
        })
    }

    /// Restarts its kubelet; says how long it took until it was registered there again.
    ///
    /// # Errors
    /// If the kubelet cannot start, or is not told of it again.
    pub(crate) async fn restart_kubelet(&self) -> anyhow::Result<Duration> {
        let before = self.kubelet().registrations().len();
        let began = self.desk.restart().await?;
        let again = |kubelet: &Kubelet| kubelet.registrations().len() > before;
        let waited = self
            .kubelet()
            .wait_until("a second registration", again, LIMIT);
        waited.await.with_context(|| self.log())?;
        let registrations = self.kubelet().registrations();
        let registration = registrations.get(before);
        let registration = registration.context("the second registration is gone")?;
        Ok(registration.at.duration_since(began))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        self.process.pid
    }

    /// Its kubelet.
    pub(crate) fn kubelet(&self) -> &Kubelet {
        &self.desk.kubelet
    }

    /// What it sees as `/run`.
    pub(crate) fn run(&self) -> PathBuf {
        self.desk.run()
    }

    /// What it wrote so far.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// Stops it as a kubelet stops a pod; says how long that took.
    ///
    /// # Errors
    /// If it does not end.
    pub(crate) async fn stop(self) -> anyhow::Result<Duration> {
        self.process.stop(LIMIT).await
    }
}
