//! Actions of tests on the node's pods.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::Node;
use crate::{kubelet, place, pod::Pod, wait};

/// Devices of each container of a pod.
pub type Given = BTreeMap<String, BTreeSet<String>>;

// === impl Node ===

impl Node {
    /// Creates a static pod by writing its manifest.
    ///
    /// # Errors
    /// If the manifest cannot be written.
    pub fn place(&self, pod: &Pod) -> Result<()> {
        place_manifest(&pod.name, &pod.manifest(self.major))
    }

    /// Deletes a static pod's manifest, without waiting.
    ///
    /// # Errors
    /// If the manifest cannot be removed.
    pub fn withdraw(&self, pod: &Pod) -> Result<()> {
        Ok(fs_err::remove_file(manifest_file(&pod.name))?)
    }

    /// Deletes a pod and waits until it holds no devices.
    ///
    /// # Errors
    /// If the pod does not end.
    pub async fn remove(&self, pod: &Pod) -> Result<()> {
        self.withdraw(pod)?;
        wait::until(
            format_args!("{} to be gone", pod.name),
            wait::LONG,
            async || {
                for container in pod.lasting() {
                    let left = pod.processes(&container.name)?;
                    ensure!(left.is_empty(), "{} still runs", container.name);
                }
                let name = pod.full_name();
                let held = kubelet::held().await?;
                ensure!(
                    held.keys().all(|(pod, _)| *pod != name),
                    "it still holds devices"
                );
                ensure!(
                    kubelet::pod(&name).await.is_err(),
                    "the kubelet still lists it"
                );
                Ok(())
            },
        )
        .await
    }

    /// Starts a pod, waits until its containers run, and checks the devices of each.
    ///
    /// # Errors
    /// If the pod does not run, or has wrong devices.
    pub async fn run(&self, pod: &Pod) -> Result<Given> {
        self.place(pod)?;
        self.running(pod).await?;
        self.verify(pod).await
    }

    /// Waits until all long-running containers of a pod run and have reported.
    ///
    /// # Errors
    /// If they do not within the timeout.
    pub async fn running(&self, pod: &Pod) -> Result<()> {
        wait::until(
            format_args!("{} to run", pod.name),
            wait::LONG,
            async || {
                for container in pod.lasting() {
                    let seen = pod.process(&container.name).map(drop);
                    let seen = seen.and_then(|()| pod.report(&container.name).map(drop));
                    if let Err(error) = seen {
                        let status = status(pod).await;
                        return Err(error.context(format!("{}: {status}", container.name)));
                    }
                }
                Ok(())
            },
        )
        .await
    }

    /// Checks that each container's report, the kubelet's record and the pod's requests agree.
    /// Returns the devices of each container.
    ///
    /// # Errors
    /// With the first difference.
    pub async fn verify(&self, pod: &Pod) -> Result<Given> {
        let held = kubelet::held().await?;
        let devices = self.devices()?;
        let mut all = BTreeMap::new();
        for container in pod.lasting() {
            let name = &container.name;
            let at = || format!("{}/{name}", pod.name);
            let ids = pod.report(name)?.devices(&devices).with_context(at)?;
            let count = usize::try_from(container.gpus)?;
            let key = (pod.full_name(), name.clone());
            let units = held.get(&key).cloned().unwrap_or_default();
            ensure!(
                units.len() == count,
                "{} asked for {count} units and holds {units:?}",
                at()
            );
            let behind = behind(&units);
            ensure!(
                behind == ids,
                "{} has {ids:?}, pod resources says {units:?}",
                at()
            );
            all.insert(name.clone(), ids);
        }
        Ok(all)
    }

    /// Waits until a pod has failed. Returns the kubelet's reason and message.
    ///
    /// # Errors
    /// If the pod does not fail.
    pub async fn refused(&self, pod: &Pod) -> Result<(String, String)> {
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        wait::until(
            format_args!("{} to be refused", pod.name),
            wait::LONG,
            async || {
                let seen = kubelet::pod(&pod.full_name()).await?;
                let status = &seen["status"];
                ensure!(status["phase"] == "Failed", "it is {}", status["phase"]);
                Ok((words(&status["reason"]), words(&status["message"])))
            },
        )
        .await
    }
}

/// Devices of units: the id of a share is its device's id and a number.
pub fn behind(units: &BTreeSet<String>) -> BTreeSet<String> {
    let device = |unit: &String| match unit.split_once("::") {
        Some((device, _)) => device.to_owned(),
        None => unit.clone(),
    };
    units.iter().map(device).collect()
}

/// Creates a static pod from a manifest. The kubelet would read a half-written file, so the file is
/// renamed into place.
///
/// # Errors
/// If the manifest cannot be written.
pub fn place_manifest(name: &str, manifest: &Value) -> Result<()> {
    let draft = format!("{}/.{name}", place::MANIFESTS);
    fs_err::write(&draft, manifest.to_string())?;
    Ok(fs_err::rename(draft, manifest_file(name))?)
}

fn manifest_file(name: &str) -> String {
    format!("{}/{name}.json", place::MANIFESTS)
}

/// Status of a pod as the kubelet reports it, for an error message.
async fn status(pod: &Pod) -> String {
    match kubelet::pod(&pod.full_name()).await {
        Ok(seen) => seen["status"].to_string(),
        Err(error) => error.to_string(),
    }
}

/// Fails if two of the sets have an element in common.
///
/// # Errors
/// With the element.
pub fn ensure_distinct<'a>(sets: impl IntoIterator<Item = &'a BTreeSet<String>>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for id in sets.into_iter().flatten() {
        if !seen.insert(id) {
            bail!("{id} is held twice");
        }
    }
    Ok(())
}
