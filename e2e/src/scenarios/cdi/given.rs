//! Set-up of tests with CDI, and checks of their containers.

use std::{collections::BTreeSet, fmt, os::unix::fs::PermissionsExt};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    agent::Agent,
    cdi,
    kubelet::{self, RESOURCE},
    node::{Node, behind},
    place,
    pod::Pod,
    process,
    report::Report,
    wait,
};

/// Resource of the card that is shared.
pub(super) const SLICE: &str = "nvidia.com/slice";
/// Resource of MIG devices.
pub(super) const PART: &str = "nvidia.com/mig-1g.5gb";

/// Channel by which the kubelet gets CDI names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Cri,
    Annotations,
    Auto,
    /// No channel: environment variables only.
    Envvar,
}

// === impl List ===

impl List {
    /// Starts an agent that uses this channel for all devices: the first card in two units, the
    /// others whole or as MIG devices.
    pub(super) fn agent(self) -> Result<Agent> {
        make_hook()?;
        Agent::on_host(&self.config(""))
    }

    /// Config of such an agent; `cdi` has further keys of the section `cdi`.
    pub(super) fn config(self, cdi: &str) -> String {
        let (driver, hook) = (place::DRIVER, place::HOOK);
        format!(
            "handover: {{lists: [{self}]}}
cdi: {{{cdi}}}
backends: {{nvidia: {{cdi: {{driverRoot: {driver}/root, hookPath: {hook}}}}}}}
pools:
  - {{name: shared, select: {{index: 0}}, resource: {SLICE}, sharing: {{replicas: 2}}}}
  - {{name: parts, select: {{kind: partition}}, resource: 'nvidia.com/mig-{{profile}}'}}
  - {{name: whole, resource: {RESOURCE}}}
"
        )
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cri => "cdi-cri",
            Self::Annotations => "cdi-annotations",
            Self::Auto => "auto",
            Self::Envvar => "envvar",
        })
    }
}

/// Report of a container without devices.
pub(super) async fn plain(node: &mut Node) -> Result<Report> {
    let pod = Pod::with(node.name("plain"), 0);
    node.run(&pod).await?;
    let report = pod.report("main")?;
    node.remove(&pod).await?;
    Ok(report)
}

/// Checks that the container has the nodes of the devices that the kubelet holds for it, the edits
/// of the specs, and nothing else. Returns the devices.
pub(super) async fn verify(node: &Node, pod: &Pod, plain: &Report) -> Result<BTreeSet<String>> {
    let held = kubelet::held().await?;
    let units = held.get(&(pod.full_name(), "main".to_owned()));
    let units = units.with_context(|| format!("{} holds nothing", pod.name))?;
    let devices = behind(units);
    let report = pod.report("main")?;
    let at = || format!("{} with {devices:?}", pod.name);
    report.has(&devices, &node.devices()?).with_context(at)?;
    let edits = cdi::edits(&devices)?;
    edits.check(&report, plain).with_context(at)?;
    Ok(devices)
}

/// Checks the channel of the CDI names by the kubelet's checkpoint.
pub(super) async fn handed_over(pod: &Pod, devices: &BTreeSet<String>, list: List) -> Result<()> {
    let seen = kubelet::pod(&pod.full_name()).await?;
    let uid = &seen["metadata"]["uid"];
    let state: Value = serde_json::from_slice(&fs_err::read(place::DEVICE_STATE)?)?;
    let entries = state["Data"]["PodDeviceEntries"].as_array();
    let mut entries = entries.into_iter().flatten();
    let entry = entries.find(|entry| entry["PodUID"] == *uid);
    let entry = entry.with_context(|| format!("the kubelet does not remember {}", pod.name))?;
    let text = entry["AllocResp"].as_str().unwrap_or_default();
    let script = "printf %s \"$1\" | base64 -d";
    let told = process::run("sh", &["-c", script, "sh", text]).await?;
    for device in devices {
        ensure!(told.contains(&cdi::name(device)), "{device} is not named");
    }
    let annotated = told.contains("cdi.k8s.io/");
    ensure!(
        annotated == (list == List::Annotations),
        "with {list} the kubelet was told {told}"
    );
    Ok(())
}

/// Kills the container and waits until the kubelet has restarted it.
pub(super) async fn restart(node: &Node, pod: &Pod) -> Result<()> {
    let old = pod.process("main")?;
    process::send(old.pid, Signal::KILL)?;
    wait::until("the container to restart", wait::LONG, async || {
        ensure!(pod.process("main")? != old, "it has not ended yet");
        Ok(())
    })
    .await?;
    node.running(pod).await
}

/// Creates the program that stands in for NVIDIA's hooks.
pub(super) fn make_hook() -> Result<()> {
    let script = format!(
        "#!/bin/sh\necho \"NVIDIA_CTK_DEBUG=$NVIDIA_CTK_DEBUG $*\" >>{}\n",
        place::HOOK_CALLS
    );
    if !fs_err::exists(place::HOOK)? {
        fs_err::write(place::HOOK, script)?;
        fs_err::set_permissions(place::HOOK, PermissionsExt::from_mode(0o755))?;
    }
    Ok(())
}

pub(super) fn forget_calls() -> Result<()> {
    Ok(fs_err::write(place::HOOK_CALLS, "")?)
}

/// Calls of the hooks so far.
pub(super) fn calls() -> Result<Vec<String>> {
    let text = fs_err::read_to_string(place::HOOK_CALLS)?;
    Ok(text.lines().map(str::to_owned).collect())
}
