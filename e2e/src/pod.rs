//! Pods of the tests: their manifests, and what their containers printed.

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

/// A pod of witnesses.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Its name in the manifest.
    pub name: String,
    restart: &'static str,
    inits: Vec<Container>,
    containers: Vec<Container>,
}

/// A container of a pod.
#[derive(Clone, Debug)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// How many GPUs it asks for, or units of its resource.
    pub gpus: u32,
    resource: String,
    /// How many processors it has for itself; without any it takes what is there.
    cpus: u32,
    /// The minor numbers of the nodes that it makes for itself and tries to open.
    tries: BTreeSet<u32>,
    /// Ends after so many seconds with this status.
    ends: Option<(u64, u8)>,
    sidecar: bool,
}

// === impl Pod ===

impl Pod {
    /// A pod without containers, which are never restarted.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            restart: "Never",
            inits: Vec::new(),
            containers: Vec::new(),
        }
    }

    /// A pod with one container, `main`, that asks for so many GPUs.
    pub fn with(name: impl Into<String>, gpus: u32) -> Self {
        Self::new(name).container(Container::new("main", gpus))
    }

    /// A pod with one container, `main`, that asks for so many units of a resource.
    pub fn of(name: impl Into<String>, resource: &str, units: u32) -> Self {
        Self::new(name).container(Container::new("main", units).of(resource))
    }

    /// Its containers are started again when they end.
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

    /// The containers that run side by side: sidecars and ordinary ones.
    pub fn lasting(&self) -> impl Iterator<Item = &Container> {
        let sidecars = self.inits.iter().filter(|container| container.sidecar);
        sidecars.chain(&self.containers)
    }

    /// The name that the kubelet gives it.
    pub fn full_name(&self) -> String {
        format!("{}-{NODE}", self.name)
    }

    /// The manifest for a kubelet; `major` is the number of the device nodes.
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

    /// The process of a container.
    ///
    /// # Errors
    /// If there is none, or more than one.
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

    /// The processes of a container, however many.
    ///
    /// # Errors
    /// If they cannot be looked for.
    pub fn processes(&self, container: &str) -> Result<Vec<Id>> {
        let name = format!("{}/{container}", self.name);
        process::find(|words| {
            words.first().is_some_and(|word| word == "/witness") && words.contains(&name)
        })
    }

    /// What a container printed at its latest start.
    ///
    /// # Errors
    /// If it printed nothing yet.
    pub fn report(&self, container: &str) -> Result<Report> {
        let files = self.logs(container)?;
        let latest = files.last().context("it has no log yet")?;
        parse(&fs_err::read_to_string(latest)?)
            .with_context(|| format!("{}/{container} printed no report yet", self.name))
    }

    /// How often a container was started, by its logs.
    ///
    /// # Errors
    /// If there are none.
    pub fn starts(&self, container: &str) -> Result<usize> {
        Ok(self.logs(container)?.len())
    }

    /// The logs of a container, the latest start last.
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
    /// A container that sleeps until it is told to end.
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

    /// It asks for another resource than whole GPUs.
    #[must_use]
    pub fn of(self, resource: &str) -> Self {
        let resource = resource.to_owned();
        Self { resource, ..self }
    }

    /// It asks for so many processors, and gets them for itself where the kubelet does that.
    #[must_use]
    pub fn cpus(self, cpus: u32) -> Self {
        Self { cpus, ..self }
    }

    /// It tries to open nodes with these minor numbers too.
    #[must_use]
    pub fn tries(mut self, minors: impl IntoIterator<Item = u32>) -> Self {
        self.tries.extend(minors);
        self
    }

    /// It ends by itself.
    #[must_use]
    pub fn ends(self, seconds: u64, status: u8) -> Self {
        let ends = Some((seconds, status));
        Self { ends, ..self }
    }

    /// As an init container, it goes on beside the others.
    #[must_use]
    pub fn sidecar(self) -> Self {
        Self {
            sidecar: true,
            ..self
        }
    }

    fn manifest(&self, pod: &str, major: u32) -> Value {
        let minors: Vec<String> = self.tries.iter().map(u32::to_string).collect();
        // `--name` and its value are two words, so that the process can be found by the value.
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
            // Only who says how much of both it needs has processors for itself.
            manifest["resources"]["limits"]["cpu"] = json!(self.cpus.to_string());
            manifest["resources"]["limits"]["memory"] = json!("64Mi");
        }
        if self.sidecar {
            manifest["restartPolicy"] = json!("Always");
        }
        manifest
    }
}

/// Finds the report in a log of the runtime, whose lines begin with time, stream and a tag that
/// says whether the line goes on.
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
