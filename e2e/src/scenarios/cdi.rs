//! Devices by CDI: containerd looks their names up in the agent's specs.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use sim::DeviceTarget;

use super::{
    length, logged,
    reboot::{ATTEMPTS, was_late},
};
use crate::{
    agent::{Agent, configure},
    cdi,
    kubelet::{self, RESOURCE},
    node::Node,
    place,
    pod::{Container, Pod},
    process,
    report::Report,
    wait,
};

mod given;

use given::{
    List, PART, SLICE, calls, forget_calls, handed_over, make_hook, plain, restart, verify,
};

pub(super) async fn pods_have_what_the_spec_says_by_cdi_names(node: &mut Node) -> Result<()> {
    node.replace_agent(|| List::Cri.agent()).await?;
    have_what_the_spec_says(node, List::Cri).await
}

pub(super) async fn pods_have_what_the_spec_says_by_annotations(node: &mut Node) -> Result<()> {
    node.replace_agent(|| List::Annotations.agent()).await?;
    have_what_the_spec_says(node, List::Annotations).await
}

/// One card, two cards, a MIG device, and two units of one card.
async fn have_what_the_spec_says(node: &mut Node, list: List) -> Result<()> {
    let plain = plain(node).await?;
    let card = DeviceTarget::Uuid(node.driver.list_gpus()?[1].uuid.clone());
    node.driver.set_mig(&card, true)?;
    for _ in 0..2 {
        node.driver.add_mig(&card, "1g.5gb")?;
    }
    for (resource, units) in [(SLICE, 2), (PART, 2), (RESOURCE, 6)] {
        node.offers(resource, units).await?;
    }
    let tries: BTreeSet<u32> = node
        .devices()?
        .into_values()
        .flatten()
        .map(|n| n.1)
        .collect();
    for (resource, units) in [
        (RESOURCE, 1),
        (RESOURCE, 2),
        (PART, 1),
        (SLICE, 1),
        (SLICE, 1),
    ] {
        let container = Container::new("main", units).of(resource);
        let container = container.tries(tries.iter().copied());
        let pod = Pod::new(node.name("guest")).container(container);
        forget_calls()?;
        node.place(&pod)?;
        node.running(&pod).await?;
        let devices = verify(node, &pod, &plain).await?;
        handed_over(&pod, &devices, list).await?;
        let edits = cdi::edits(&devices)?;
        ensure!(edits.is_full(), "the spec has little: {edits:?}");
        ensure!(calls()? == edits.calls()?, "the hooks were {:?}", calls()?);
    }
    Ok(())
}

/// containerd's config enables CDI, and the kubelet's DRA state files show that the kubelet passes
/// CDI names on. Without either, device nodes go through the kubelet.
pub(super) async fn auto_hands_over_by_cdi_where_the_runtime_can(node: &mut Node) -> Result<()> {
    let plain = plain(node).await?;
    let from = length("agent");
    node.replace_agent(|| List::Auto.agent()).await?;
    node.offers(RESOURCE, 7).await?;
    let pod = Pod::with(node.name("named"), 2);
    node.place(&pod)?;
    node.running(&pod).await?;
    let devices = verify(node, &pod, &plain).await?;
    handed_over(&pod, &devices, List::Cri).await?;
    logged(from, "which pass CDI names on").await?;
    let config = List::Auto.config("runtime: unsupported");
    node.replace_agent(|| Agent::on_host(&config)).await?;
    node.offers(RESOURCE, 7).await?;
    let other = Pod::with(node.name("given"), 2);
    node.run(&other).await.map(drop)
}

pub(super) async fn the_plugin_of_nvidias_name_hands_over_by_cdi(node: &mut Node) -> Result<()> {
    let plain = plain(node).await?;
    make_hook()?;
    let root = format!("{}/root", place::DRIVER);
    // The device nodes of the simulated driver are plain files; the host's are real nodes, and are
    // used.
    let config = format!(
        "version: v1
flags:
  nvidiaDriverRoot: {root}
  nvidiaDevRoot: /
  plugin:
    containerDriverRoot: {root}
    deviceListStrategy: [cdi-cri, cdi-annotations]
"
    );
    node.replace_agent(|| Agent::nvidia(&config)).await?;
    node.all_allocatable().await?;
    let pod = Pod::with(node.name("guest"), 2);
    node.place(&pod)?;
    node.running(&pod).await?;
    let devices = verify(node, &pod, &plain).await?;
    ensure!(cdi::edits(&devices)?.is_full(), "the spec has little");
    handed_over(&pod, &devices, List::Annotations).await
}

/// The kubelet's message has the CDI name that containerd cannot find. A restart of the agent
/// restores the spec.
pub(super) async fn a_container_whose_device_lost_its_spec_says_which(
    node: &mut Node,
) -> Result<()> {
    let plain = plain(node).await?;
    node.replace_agent(|| List::Cri.agent()).await?;
    node.offers(RESOURCE, 7).await?;
    let pod = Pod::with(node.name("orphan"), 1).restarting();
    node.place(&pod)?;
    node.running(&pod).await?;
    let devices = verify(node, &pod, &plain).await?;
    let device = devices.first().context("it has one card")?;
    node.stop_agent().await?;
    fs_err::remove_file(cdi::file())?;
    process::send(pod.process("main")?.pid, Signal::KILL)?;
    wait::until("the container to be refused", wait::LONG, async || {
        let seen = kubelet::pod(&pod.full_name()).await?;
        let waiting = &seen["status"]["containerStatuses"][0]["state"]["waiting"];
        let said = waiting["message"].as_str().unwrap_or_default();
        for words in ["unresolvable CDI devices", &cdi::name(device)] {
            ensure!(said.contains(words), "no `{words}` in {waiting}");
        }
        ensure!(waiting["reason"] == "CreateContainerError", "{waiting}");
        Ok(())
    })
    .await?;
    node.agent = Some(List::Cri.agent()?);
    node.running(&pod).await?;
    let now = verify(node, &pod, &plain).await?;
    ensure!(now == devices, "it had {devices:?} and has {now:?}");
    Ok(())
}

/// Containers restart while the agent is down and the kubelet was restarted, and after the agent is
/// back.
pub(super) async fn cdi_pods_outlive_agent_and_kubelet_restarts(node: &mut Node) -> Result<()> {
    let plain = plain(node).await?;
    node.replace_agent(|| List::Cri.agent()).await?;
    node.offers(SLICE, 2).await?;
    let pods = [(RESOURCE, 2), (SLICE, 1)]
        .map(|(resource, units)| Pod::of(node.name("guest"), resource, units).restarting());
    let mut before = Vec::new();
    for pod in &pods {
        node.place(pod)?;
        node.running(pod).await?;
        before.push(verify(node, pod, &plain).await?);
    }
    let spec = fs_err::read_to_string(cdi::file())?;
    let check = async |node: &Node| {
        for (pod, devices) in pods.iter().zip(&before) {
            restart(node, pod).await?;
            let now = verify(node, pod, &plain).await?;
            ensure!(now == *devices, "it had {devices:?} and has {now:?}");
        }
        let now = fs_err::read_to_string(cdi::file())?;
        ensure!(now == spec, "the spec was\n{spec}\nand is\n{now}");
        Ok(())
    };
    node.kubelet.stop().await?;
    node.kubelet.start().await?;
    node.offers(SLICE, 2).await?;
    node.stop_agent().await?;
    check(node).await.context("without an agent")?;
    node.agent = Some(List::Cri.agent()?);
    node.offers(SLICE, 2).await?;
    check(node).await.context("with another agent")
}

/// Pods that were started by CDI restart by CDI, whatever new pods use. The spec is removed after
/// the last of them.
pub(super) async fn cdi_pods_restart_after_the_config_left_cdi(node: &mut Node) -> Result<()> {
    let plain = plain(node).await?;
    node.replace_agent(|| List::Cri.agent()).await?;
    node.offers(RESOURCE, 7).await?;
    let pod = Pod::with(node.name("before"), 2).restarting();
    node.place(&pod)?;
    node.running(&pod).await?;
    let devices = verify(node, &pod, &plain).await?;
    let from = length("agent");
    configure(&List::Envvar.config(""))?;
    logged(from, "the config was read again").await?;
    let after = Pod::with(node.name("after"), 2);
    node.run(&after).await?;
    restart(node, &pod).await?;
    let now = verify(node, &pod, &plain).await?;
    ensure!(now == devices, "it had {devices:?} and has {now:?}");
    node.remove(&pod).await?;
    // The kubelet drops the devices of a removed pod only at the next allocation.
    let later = Pod::with(node.name("later"), 1);
    node.run(&later).await?;
    wait::until("the spec to go", wait::LONG, async || {
        ensure!(!fs_err::exists(cdi::file())?, "it is there");
        Ok(())
    })
    .await
}

/// The folder of the specs is in memory, so a reboot clears it. The agent writes the specs before
/// it announces devices. If CDI was disabled in the meantime, the kubelet still starts containers
/// with the names in its checkpoint.
pub(super) async fn cdi_pods_come_back_after_a_reboot(node: &mut Node) -> Result<()> {
    for (before, after) in [
        (List::Cri, List::Cri),
        (List::Annotations, List::Annotations),
        (List::Cri, List::Envvar),
    ] {
        let plain = plain(node).await?;
        let mut attempts = 1;
        while !reboot(node, before, after, &plain).await? {
            if attempts == ATTEMPTS {
                bail!("{ATTEMPTS} times the kubelet admitted pods before it had the agent's list");
            }
            attempts += 1;
            node.clear().await?;
        }
        node.clear().await?;
    }
    Ok(())
}

/// Reboots under two pods; `false` if the agent was too late, see [`was_late`].
async fn reboot(node: &mut Node, list: List, after: List, plain: &Report) -> Result<bool> {
    node.replace_agent(|| list.agent()).await?;
    node.offers(SLICE, 2).await?;
    let pods = [(RESOURCE, 2), (SLICE, 1)]
        .map(|(resource, units)| Pod::of(node.name("reboot"), resource, units).restarting());
    let mut before = Vec::new();
    for pod in &pods {
        node.place(pod)?;
        node.running(pod).await?;
        before.push((verify(node, pod, plain).await?, pod.process("main")?));
    }
    node.power_cut().await?;
    ensure!(
        !fs_err::exists(place::CDI)?,
        "the specs outlived the power cut"
    );
    node.agent = Some(after.agent()?);
    node.kubelet.start().await?;
    node.offers(SLICE, 2).await?;
    node.offers(RESOURCE, 7).await?;
    for pod in &pods {
        if was_late(pod).await? {
            return Ok(false);
        }
    }
    for (pod, (devices, process)) in pods.iter().zip(&before) {
        node.running(pod).await?;
        ensure!(
            pod.process("main")? != *process,
            "{} was never cut off",
            pod.name
        );
        let now = verify(node, pod, plain).await?;
        ensure!(
            now == *devices,
            "{} had {devices:?} and has {now:?}",
            pod.name
        );
    }
    Ok(true)
}
