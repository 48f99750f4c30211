//! Agent in a pod with exactly the mounts, user and capabilities of NVIDIA's static manifest: the
//! device plugin folder, root, no capabilities. Only the host's network is added, because the node
//! has no other network.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{
    image, kubelet,
    node::{self, Node},
    place,
    pod::Pod,
    wait,
};

/// Name of the pod and of its container.
const NAME: &str = "nvidia-device-plugin";

pub(super) async fn the_agent_works_in_a_pod_like_nvidias(node: &mut Node) -> Result<()> {
    node.stop_agent().await?;
    node::place_manifest(NAME, &manifest(&[]))?;
    let outcome = works(node).await;
    remove().await?;
    outcome
}

async fn works(node: &mut Node) -> Result<()> {
    node.all_allocatable().await.with_context(shown)?;
    let pod = Pod::with(node.name("served"), 2);
    node.run(&pod).await.with_context(shown)?;
    node.kubelet.stop().await?;
    node.kubelet.start().await?;
    node.all_allocatable().await.with_context(shown)?;
    says("pod-resources/kubelet.sock", "which socket it cannot reach").await?;
    says(
        "mount the folder of the pod resources socket",
        "what to do about it",
    )
    .await
}

/// Without NVIDIA's runtime the pod has neither library nor device nodes. The agent keeps running
/// and logs the problem with its remedy.
pub(super) async fn a_pod_without_a_driver_says_so(node: &mut Node) -> Result<()> {
    node.stop_agent().await?;
    let env = [json!({ "name": "NVIDIA_VISIBLE_DEVICES", "value": "void" })];
    node::place_manifest(NAME, &manifest(&env))?;
    let outcome = async {
        says("libnvidia-ml.so.1", "which library it does not find").await?;
        says("--driver-path", "what to do about it").await?;
        wait::until("the agent's pod to run", wait::LONG, runs).await?;
        wait::throughout("the agent", Duration::from_secs(5), runs).await
    }
    .await;
    remove().await?;
    outcome
}

/// Fails unless the agent's container runs without a restart.
async fn runs() -> Result<()> {
    let seen = kubelet::pod(&format!("{NAME}-{}", kubelet::NODE)).await?;
    let status = &seen["status"]["containerStatuses"][0];
    ensure!(status["restartCount"] == 0, "it was restarted: {status}");
    let is_running = status["state"]["running"].is_object();
    ensure!(is_running, "it does not run: {status}");
    Ok(())
}

/// Waits until the agent's log has these words.
async fn says(words: &str, what: &str) -> Result<()> {
    wait::until(
        format_args!("the agent to say {what}"),
        wait::LONG,
        async || {
            let log = log()?;
            ensure!(log.contains(words), "`{words}` is not in its log:\n{log}");
            Ok(())
        },
    )
    .await
}

/// End of the agent's log for an error message.
fn shown() -> String {
    let log = log().unwrap_or_else(|error| format!("{error:#}"));
    format!("the agent's log:\n{log}")
}

/// Output of the agent in the pod.
fn log() -> Result<String> {
    let prefix = format!("kube-system_{NAME}-");
    let mut text = String::new();
    for entry in fs_err::read_dir(place::POD_LOGS)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            for file in fs_err::read_dir(entry.path().join(NAME))? {
                text += &fs_err::read_to_string(file?.path())?;
            }
        }
    }
    Ok(text)
}

/// Deletes the pod and keeps its log with the others.
async fn remove() -> Result<()> {
    fs_err::write(place::log("agent-in-pod"), log()?)?;
    fs_err::remove_file(format!("{}/{NAME}.json", place::MANIFESTS))?;
    wait::until("the agent's pod to be gone", wait::LONG, async || {
        let name = format!("{NAME}-{}", kubelet::NODE);
        ensure!(
            kubelet::pod(&name).await.is_err(),
            "the kubelet still lists it"
        );
        Ok(())
    })
    .await
}

fn manifest(env: &[Value]) -> Value {
    let variable = json!({ "name": "FAIL_ON_INIT_ERROR", "value": "false" });
    let env = [&[variable], env].concat();
    let folder = "kubelet-device-plugins-dir";
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": NAME,
            "namespace": "kube-system",
            "labels": { "name": "nvidia-device-plugin-ds" },
        },
        "spec": {
            "hostNetwork": true,
            "priorityClassName": "system-node-critical",
            "tolerations": [
                { "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" },
            ],
            "containers": [{
                "name": NAME,
                "image": image::AGENT,
                "imagePullPolicy": "Never",
                "env": env,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                },
                "volumeMounts": [{ "name": folder, "mountPath": place::DEVICE_PLUGINS }],
            }],
            "volumes": [{
                "name": folder,
                "hostPath": { "path": place::DEVICE_PLUGINS, "type": "Directory" },
            }],
        },
    })
}
