//! Pods of the tests: their manifests, and the output of their containers.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{
    image,
    kubelet::{NODE, RESOURCE},
    place,
    process::{self, Id},
    report::Report,
};

/// A pod with `witness` containers.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Name in the manifest.
    pub name: String,
    restart: &'static str,
    inits: Vec<Container>,
    containers: Vec<Container>,
}

/// A container of a pod.
#[derive(Clone, Debug)]
pub struct Container {
    /// Name of the container.
    pub name: String,
    /// Number of requested GPUs, or of units of the container's resource.
    pub gpus: u32,
    resource: String,
    /// Number of exclusive processors; zero makes no request.
    cpus: u32,
    /// Minor numbers of nodes that the container creates and tries to open.
    tries: BTreeSet<u32>,
    /// Seconds until the container ends, and its exit status.
    ends: Option<(u64, u8)>,
    sidecar: bool,
}

// === impl Pod ===

impl Pod {
    /// Creates a pod without containers. Its containers are never restarted.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            restart: "Never",
            inits: Vec::new(),
            containers: Vec::new(),
        }
    }

    /// Creates a pod with one container, `main`, that requests GPUs.
    pub fn with(name: impl Into<String>, gpus: u32) -> Self {
        Self::new(name).container(Container::new("main", gpus))
    }

    /// Creates a pod with one container, `main`, that requests units of a resource.
    pub fn of(name: impl Into<String>, resource: &str, units: u32) -> Self {
        Self::new(name).container(Container::new("main", units).of(resource))
    }

    /// Sets that containers are restarted when they end.
    #[must_use]
    pub fn restarting(self) -> Self {
        Self {
            restart: "Always",
            ..self
        }
    }

    /// Adds a container.
    #[must_use]
    pub fn container(mut self, container: Container) -> Self {
        self.containers.push(container);
        self
    }

    /// Adds an init container.
    #[must_use]
    pub fn init(mut self, container: Container) -> Self {
        self.inits.push(container);
        self
    }

    /// Containers that run side by side: sidecars and ordinary ones.
    pub fn lasting(&self) -> impl Iterator<Item = &Container> {
        let sidecars = self.inits.iter().filter(|container| container.sidecar);
        sidecars.chain(&self.containers)
    }

    /// Name that the kubelet gives the pod.
    pub fn full_name(&self) -> String {
        format!("{}-{NODE}", self.name)
    }

    /// Manifest for a kubelet; `major` is the major number of the device nodes.
    pub fn manifest(&self, major: u32) -> Value {
        let make = |c: &Container| c.manifest(&self.name, major);
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": self.name, "namespace": "default" },
            "spec": {
                "hostNetwork": true,
                "restartPolicy": self.restart,
                "terminationGracePeriodSeconds": 10,
                "initContainers": self.inits.iter().map(make).collect::<Vec<_>>(),
                "containers": self.containers.iter().map(make).collect::<Vec<_>>(),
            },
        })
    }

    /// Process of a container.
    ///
    /// # Errors
    /// If there is no process, or more than one.
    pub fn process(&self, container: &str) -> Result<Id> {
        let found = self.processes(container)?;
        ensure!(
            found.len() == 1,
            "{}/{container} has {} processes",
            self.name,
            found.len()
        );
        found.first().copied().context("there is one")
    }

    /// All processes of a container.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn processes(&self, container: &str) -> Result<Vec<Id>> {
        let name = format!("{}/{container}", self.name);
        process::find(|words| {
            words.first().is_some_and(|word| word == "/witness") && words.contains(&name)
        })
    }

    /// Report that a container printed at its latest start.
    ///
    /// # Errors
    /// If the container has not printed a report yet.
    pub fn report(&self, container: &str) -> Result<Report> {
        let files = self.logs(container)?;
        let latest = files.last().context("it has no log yet")?;
        parse(&fs_err::read_to_string(latest)?)
            .with_context(|| format!("{}/{container} printed no report yet", self.name))
    }

    /// Number of starts of a container, by its logs.
    ///
    /// # Errors
    /// If there are no logs.
    pub fn starts(&self, container: &str) -> Result<usize> {
        Ok(self.logs(container)?.len())
    }

    /// Logs of a container, the latest start last.
    fn logs(&self, container: &str) -> Result<Vec<PathBuf>> {
        let prefix = format!("default_{}_", self.full_name());
        let mut found = Vec::new();
        for entry in fs_err::read_dir(place::POD_LOGS)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                let folder = fs_err::read_dir(entry.path().join(container))?;
                found.extend(folder.flatten().map(|file| file.path()));
            }
        }
        found.sort_by_key(|file| {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            stem.parse::<u32>().unwrap_or(u32::MAX)
        });
        Ok(found)
    }
}

// === impl Container ===

impl Container {
    /// Creates a container that sleeps until it is stopped.
    pub fn new(name: impl Into<String>, gpus: u32) -> Self {
        Self {
            name: name.into(),
            gpus,
            resource: RESOURCE.to_owned(),
            cpus: 0,
            tries: (0..16).collect(),
            ends: None,
            sidecar: false,
        }
    }

    /// Requests a resource other than whole GPUs.
    #[must_use]
    pub fn of(self, resource: &str) -> Self {
        let resource = resource.to_owned();
        Self { resource, ..self }
    }

    /// Requests processors, which are exclusive under the static CPU manager policy.
    #[must_use]
    pub fn cpus(self, cpus: u32) -> Self {
        Self { cpus, ..self }
    }

    /// Tries to open nodes with these minor numbers, too.
    #[must_use]
    pub fn tries(mut self, minors: impl IntoIterator<Item = u32>) -> Self {
        self.tries.extend(minors);
        self
    }

    /// Ends by itself.
    #[must_use]
    pub fn ends(self, seconds: u64, status: u8) -> Self {
        let ends = Some((seconds, status));
        Self { ends, ..self }
    }

    /// Makes an init container a sidecar, which runs beside the others.
    #[must_use]
    pub fn sidecar(self) -> Self {
        Self {
            sidecar: true,
            ..self
        }
    }

    fn manifest(&self, pod: &str, major: u32) -> Value {
        let minors: Vec<String> = self.tries.iter().map(u32::to_string).collect();
        // `--name` and its value are two arguments, so that the process can be found by the value.
        let mut args = vec![
            "--name".to_owned(),
            format!("{pod}/{}", self.name),
            format!("--major={major}"),
            format!("--minors={}", minors.join(",")),
        ];
        if let Some((seconds, status)) = self.ends {
            args.push(format!("--seconds={seconds}"));
            args.push(format!("--status={status}"));
        }
        let mut manifest = json!({
            "name": self.name,
            "image": image::WITNESS,
            "imagePullPolicy": "Never",
            "args": args,
        });
        if self.gpus > 0 {
            manifest["resources"]["limits"][&self.resource] = json!(self.gpus.to_string());
        }
        if self.cpus > 0 {
            // Exclusive processors need equal requests and limits of CPU and memory (QoS class
            // Guaranteed).
            manifest["resources"]["limits"]["cpu"] = json!(self.cpus.to_string());
            manifest["resources"]["limits"]["memory"] = json!("64Mi");
        }
        if self.sidecar {
            manifest["restartPolicy"] = json!("Always");
        }
        manifest
    }
}

/// Finds the report in a log of the container runtime (CRI format): each line begins with time,
/// stream and a tag for partial lines.
fn parse(log: &str) -> Option<Report> {
    let mut line = String::new();
    for entry in log.lines() {
        let mut words = entry.splitn(4, ' ');
        let (stream, tag, text) = (words.nth(1)?, words.next()?, words.next()?);
        if stream != "stdout" {
            continue;
        }
        line.push_str(text);
        if tag == "F" {
            if let Ok(report) = serde_json::from_str(&line) {
                return Some(report);
            }
            line.clear();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_a_report_that_the_runtime_split() {
        let log = "T stderr F noise\nT stdout P {\"env\":{},\"mounts\":{},\n\
                   T stdout F \"dev\":{},\"groups\":[],\"nodes\":{},\"tried\":{}}\n";
        assert_eq!(parse(log), Some(Report::default()));
    }

    #[test]
    fn a_half_written_report_is_none() {
        assert_eq!(parse("T stdout P {\"env\":"), None);
        assert_eq!(parse("T stdout"), None);
    }
}
