//! Kubelet without an API server: configuration, start and stop, and its answers about pods and
//! devices.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ::kubelet::pod_resources::PodResourcesClient;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    process::Command,
};

use crate::{
    numa::{self, Halves},
    place,
    process::{self, Process},
    wait,
};

/// Name of the node, which ends the names of static pods.
pub const NODE: &str = "node";
/// Resource that the tests request.
pub const RESOURCE: &str = "nvidia.com/gpu";

/// Address of the kubelet's read-only API with its pods.
const PODS: &str = "127.0.0.1:10255";
/// Address of the kubelet's health check.
const HEALTH: &str = "127.0.0.1:10248";

/// Devices of each container, by pod and container.
pub type Held = BTreeMap<(String, String), BTreeSet<String>>;

/// A kubelet, running or stopped.
#[derive(Debug, Default)]
pub struct Kubelet {
    process: Option<Process>,
    /// Processors of the two NUMA nodes that the kubelet is shown; `None` unless it aligns.
    halves: Option<Halves>,
}

/// Allocation policy of a kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Default policies.
    Usual,
    /// One NUMA node for all processors and devices of a container (`single-numa-node`). There are
    /// two nodes; the processors of the first are reserved for the system.
    Aligned,
}

// === impl Kubelet ===

impl Kubelet {
    /// Starts the kubelet and waits until it is healthy and its pod resources socket answers.
    ///
    /// # Errors
    /// If the kubelet does not get healthy.
    pub async fn start(&mut self) -> Result<()> {
        self.launch()?;
        self.ready().await
    }

    /// Starts the kubelet without waiting.
    ///
    /// # Errors
    /// If the kubelet cannot be started.
    pub fn launch(&mut self) -> Result<()> {
        let file = format!("{}/kubelet.json", place::CONFIG);
        fs_err::write(&file, self.config().to_string())?;
        let mut command = Command::new(place::program("kubelet"));
        command.args(["--config", &file, "--hostname-override", NODE]);
        self.process = Some(Process::start("kubelet", &mut command)?);
        Ok(())
    }

    /// Sets the allocation policy for the next start. The kubelet must not run.
    ///
    /// # Errors
    /// If the NUMA nodes cannot be shown, or the state of the earlier policy cannot be removed.
    pub fn set(&mut self, manner: Manner) -> Result<()> {
        ensure!(self.process.is_none(), "the kubelet runs");
        self.halves = match manner {
            Manner::Usual => numa::hide().map(|()| None)?,
            Manner::Aligned => Some(numa::show()?),
        };
        // The kubelet refuses to start with the CPU manager state of another policy.
        match fs_err::remove_file(place::CPU_STATE) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Allocation policy.
    pub fn manner(&self) -> Manner {
        match self.halves {
            None => Manner::Usual,
            Some(_) => Manner::Aligned,
        }
    }

    /// Processors of the two NUMA nodes that the kubelet is shown; `None` unless it aligns.
    pub fn halves(&self) -> Option<&Halves> {
        self.halves.as_ref()
    }

    fn config(&self) -> Value {
        let mut config = config();
        if let Some([first, _]) = &self.halves {
            config["topologyManagerPolicy"] = json!("single-numa-node");
            config["topologyManagerScope"] = json!("container");
            config["cpuManagerPolicy"] = json!("static");
            config["reservedSystemCPUs"] = json!(numa::list(first));
        }
        config
    }

    /// Waits until the kubelet is healthy.
    ///
    /// # Errors
    /// If the kubelet ends, or does not get healthy.
    pub async fn ready(&mut self) -> Result<()> {
        let process = self
            .process
            .as_mut()
            .context("the kubelet is not started")?;
        wait::until("the kubelet to be well", wait::LONG, async || {
            process.check()?;
            get(HEALTH, "/healthz").await?;
            client().list_allocatable().await?;
            Ok(())
        })
        .await
    }

    /// Stops the kubelet; containers go on.
    ///
    /// # Errors
    /// If the kubelet does not end.
    pub async fn stop(&mut self) -> Result<()> {
        if let Some(process) = self.process.take() {
            process.stop().await?;
        }
        Ok(())
    }

    /// Kills the kubelet; containers go on.
    ///
    /// # Errors
    /// If the kubelet does not end.
    pub async fn kill(&mut self) -> Result<()> {
        if let Some(process) = self.process.take() {
            process.kill().await?;
        }
        Ok(())
    }
}

/// Minor version of the kubelet: 36 for 1.36.
///
/// # Errors
/// If the version cannot be read.
pub async fn minor() -> Result<u32> {
    let text = process::run(&place::program("kubelet"), &["--version"]).await?;
    let minor = text.trim().split('.').nth(1);
    minor
        .and_then(|minor| minor.parse().ok())
        .with_context(|| format!("the kubelet's version is {text}"))
}

/// Allocatable whole GPUs.
///
/// # Errors
/// If the kubelet does not answer.
pub async fn allocatable() -> Result<BTreeSet<String>> {
    allocatable_of(RESOURCE).await
}

/// Allocatable units of a resource.
///
/// # Errors
/// If the kubelet does not answer.
pub async fn allocatable_of(resource: &str) -> Result<BTreeSet<String>> {
    let answer = client().list_allocatable().await?;
    let ours = answer
        .devices
        .into_iter()
        .filter(|d| d.resource_name == resource);
    Ok(ours.flat_map(|device| device.device_ids).collect())
}

/// NUMA nodes of the allocatable units of a resource; without units that have none.
///
/// # Errors
/// If the kubelet does not answer.
pub async fn nodes(resource: &str) -> Result<BTreeMap<String, u32>> {
    let answer = client().list_allocatable().await?;
    let mut found = BTreeMap::new();
    for device in answer.devices {
        let nodes = device.topology.unwrap_or_default().nodes;
        if device.resource_name == resource
            && let [node] = nodes.as_slice()
        {
            let node = u32::try_from(node.id)?;
            found.extend(device.device_ids.into_iter().map(|id| (id, node)));
        }
    }
    Ok(found)
}

/// Units that each container holds. All resources are the agent's.
///
/// # Errors
/// If the kubelet does not answer.
pub async fn held() -> Result<Held> {
    let answer = client().list_pods().await?;
    let mut held = Held::new();
    for pod in answer.pod_resources {
        for container in pod.containers {
            let devices = container.devices.into_iter();
            let ids: BTreeSet<String> = devices.flat_map(|device| device.device_ids).collect();
            if !ids.is_empty() {
                held.insert((pod.name.clone(), container.name), ids);
            }
        }
    }
    Ok(held)
}

/// Pods with their status, as the kubelet knows them.
///
/// # Errors
/// If the kubelet does not answer.
pub async fn pods() -> Result<Vec<Value>> {
    let body = get(PODS, "/pods").await?;
    let mut list: Value = serde_json::from_str(&body).context("the kubelet's list of pods")?;
    match list["items"].take() {
        Value::Array(pods) => Ok(pods),
        _ => Ok(Vec::new()),
    }
}

/// One pod, as the kubelet knows it.
///
/// # Errors
/// If there is no such pod.
pub async fn pod(name: &str) -> Result<Value> {
    let is_it = |pod: &Value| pod["metadata"]["name"] == name;
    let found = pods().await?.into_iter().find(is_it);
    found.with_context(|| format!("the kubelet knows no pod {name}"))
}

/// Capacity and allocatable of a resource, as the kubelet last logged them. Without an API server
/// they are only in its log.
///
/// # Errors
/// If the kubelet has not logged them yet.
pub fn counted(resource: &str) -> Result<(u32, u32)> {
    let all = counts(resource, 0)?;
    all.last().copied().context("the kubelet counted no device")
}

/// Capacity and allocatable of a resource in the kubelet's log, starting at an offset.
///
/// # Errors
/// If a line of the log cannot be parsed.
pub fn counts(resource: &str, from: usize) -> Result<Vec<(u32, u32)>> {
    let log = fs_err::read_to_string(place::log("kubelet"))?;
    let name = format!("\"{resource}\"");
    let said = |line: &&str| line.contains("Processed device updates") && line.contains(&name);
    let lines = log.get(from..).unwrap_or_default().lines().filter(said);
    lines
        .map(|line| {
            number(line, "totalCount=")
                .zip(number(line, "healthyCount="))
                .with_context(|| format!("the kubelet's log has changed: {line}"))
        })
        .collect()
}

/// Length of the kubelet's log.
///
/// # Errors
/// If the log cannot be read.
pub fn log_length() -> Result<usize> {
    let meta = fs_err::metadata(place::log("kubelet"))?;
    Ok(usize::try_from(meta.len())?)
}

/// Number after a key.
fn number(line: &str, key: &str) -> Option<u32> {
    let rest = line.split_once(key)?.1;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn client() -> PodResourcesClient {
    PodResourcesClient::new(place::POD_RESOURCES, Duration::from_secs(10))
}

/// Sends an HTTP/1.0 request, whose answer ends with the connection.
async fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)
        .await
        .with_context(|| format!("nobody answers at {address}"))?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8(answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    let status = head.lines().next().unwrap_or_default();
    ensure!(
        status.contains(" 200 "),
        "{address}{path} answered {status}"
    );
    Ok(body.to_owned())
}

fn config() -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "readOnlyPort": 10255,
        "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
        "containerRuntimeEndpoint": format!("unix://{}", place::CONTAINERD),
        "staticPodPath": place::MANIFESTS,
        "fileCheckFrequency": "1s",
        "syncFrequency": "5s",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "failSwapOn": false,
        "resolvConf": "",
        "evictionHard": { "memory.available": "1Mi", "nodefs.available": "1Mi" },
        "imageGCHighThresholdPercent": 100,
        "featureGates": { "ResourceHealthStatus": true },
        "logging": { "verbosity": 4 },
    })
}
