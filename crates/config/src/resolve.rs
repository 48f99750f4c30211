//! The config that the agent runs with: flags and variables over the file, the file over the
//! defaults.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    BackendOverrides, Backends, Cdi, Error, Handover, Health, Kubelet, Origin, Origins, Pools,
    Probe, Problem, Problems, Severity,
    source::{At, Section},
};

/// Values of flags and variables, which win over the file. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The device plugin folder.
    pub kubelet_dir: Option<PathBuf>,
    /// The pod resources socket.
    pub pod_resources_socket: Option<PathBuf>,
    /// The folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: Option<PathBuf>,
    /// The socket on which commands reach the agent.
    pub control_socket: Option<PathBuf>,
    /// The folder of the CDI specs.
    pub cdi_dir: Option<PathBuf>,
    /// Values about the drivers of each vendor.
    pub backends: BackendOverrides,
}

/// A config, the origin of each value, and warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The config.
    pub config: Config,
    /// The origins of its values.
    pub origins: Origins,
    /// Warnings: what is probably not meant so.
    pub warnings: Vec<Problem>,
}

/// Everything the agent needs to know, with every default filled in, in the shape of `ostler.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: PathBuf,
    /// The socket on which commands reach the agent.
    pub control_socket: PathBuf,
    /// Paths of the kubelet.
    pub kubelet: Kubelet,
    /// Times of every probe.
    pub probe: Probe,
    /// Settings of each vendor's probe, and rules for its devices.
    pub backends: Backends,
    /// Rules by which verdicts are made.
    pub health: Health,
    /// Settings of CDI specs.
    pub cdi: Cdi,
    /// The parts that a container is given, for every pool that does not say otherwise.
    pub handover: Handover,
    /// The devices that are offered, and how.
    #[serde(flatten)]
    pub pools: Pools,
}

// === impl Overrides ===

impl Overrides {
    /// Puts every value in its place, and calls `said` with its key, its flag and the value.
    fn apply(self, config: &mut Config, mut said: impl FnMut(&str, &str, &Path)) {
        let (kubelet, said) = (&mut config.kubelet, &mut said);
        let names = ("kubelet.dir", "kubelet-dir");
        put(names, self.kubelet_dir, &mut kubelet.dir, said);
        let names = ("kubelet.podResourcesSocket", "pod-resources-socket");
        let target = &mut kubelet.pod_resources_socket;
        put(names, self.pod_resources_socket, target, said);
        let names = ("hostRoot", "host-root");
        put(names, self.host_root, &mut config.host_root, said);
        self.backends.apply(&mut config.backends, said);
        let names = ("controlSocket", "control-socket");
        put(names, self.control_socket, &mut config.control_socket, said);
        let names = ("cdi.dir", "cdi-dir");
        put(names, self.cdi_dir, &mut config.cdi.dir, said);
    }
}

// === impl Resolved ===

impl Resolved {
    /// Lays flags and variables over the config, and checks them. The error names each flag or
    /// variable that is wrong.
    pub fn lay_over(
        &mut self,
        overrides: Overrides,
        from: &dyn Fn(&str) -> Origin,
    ) -> Result<(), Error> {
        let mut problems = Vec::new();
        let mut wrong = |at, key: &str, (message, help): (String, String)| {
            problems.push(Problem {
                severity: Severity::Error,
                at,
                key: key.to_owned(),
                message,
                help,
                snippet: None,
            });
        };
        overrides.apply(&mut self.config, |key, flag, path| {
            self.origins.set(key, from(flag));
            if path.to_str().is_none() {
                let message = "the path is not a text in UTF-8".to_owned();
                let help = "use a path that is: it is handed on and shown as a text".to_owned();
                wrong(from(flag), key, (message, help));
            }
        });
        if let Some(words) = self.config.kubelet.lacks_room() {
            wrong(self.origins.of("kubelet.dir"), "kubelet.dir", words);
        }
        self.settle();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(Problems(problems))),
        }
    }

    /// Fills in what follows from other values.
    pub(crate) fn settle(&mut self) {
        let health = &mut self.config.health;
        if self.origins.of("health.stateFile") == Origin::Default {
            health.state_file = Some(self.config.kubelet.dir.join(Health::STATE_FILE));
        }
        health.hold_down_limit = health.hold_down_limit.max(health.hold_down);
    }
}

// === impl Config ===

impl Section for Config {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("hostRoot", &mut self.host_root);
        at.set("controlSocket", &mut self.control_socket);
        at.section("kubelet", &mut self.kubelet);
        at.section("probe", &mut self.probe);
        at.section("backends", &mut self.backends);
        at.section("health", &mut self.health);
        at.section("cdi", &mut self.cdi);
        at.section("handover", &mut self.handover);
        self.pools.read(&self.backends, &self.handover, at);
    }
}

impl Config {
    /// The kubelet's device plugin folder.
    pub const KUBELET_DIR: &str = "/var/lib/kubelet/device-plugins";
    /// The longest path of the device plugin folder in which every socket fits.
    pub const KUBELET_DIR_LIMIT: usize = Kubelet::DIR_LIMIT;
    /// The socket on which the kubelet serves the pod resources API.
    pub const POD_RESOURCES_SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
    /// The socket on which commands reach the agent.
    pub const CONTROL_SOCKET: &str = "/run/ostler/control.sock";
    /// The folder of CDI specs that are made at run time.
    pub const CDI_DIR: &str = "/var/run/cdi";
}

impl Default for Config {
    fn default() -> Self {
        Self {
            host_root: "/".into(),
            control_socket: Self::CONTROL_SOCKET.into(),
            kubelet: Kubelet::default(),
            probe: Probe::default(),
            backends: Backends::default(),
            health: Health::default(),
            cdi: Cdi::default(),
            handover: Handover::default(),
            pools: Pools::default(),
        }
    }
}

/// Puts a value of a flag in its place, and calls `said` with its key, its flag and the value.
pub(crate) fn put<T: From<PathBuf>>(
    (key, flag): (&str, &str),
    value: Option<PathBuf>,
    target: &mut T,
    said: &mut impl FnMut(&str, &str, &Path),
) {
    if let Some(value) = value {
        said(key, flag, &value);
        *target = value.into();
    }
}

/// Reads the config file, if there is one, and lays flags and variables over it. `from` tells
/// for a flag's name whether the flag or its variable said it.
pub fn native(
    path: Option<&Path>,
    overrides: Overrides,
    from: &dyn Fn(&str) -> Origin,
) -> Result<Resolved, Error> {
    let mut resolved = match path {
        Some(path) => crate::load(path)?,
        None => Resolved::default(),
    };
    resolved.lay_over(overrides, from)?;
    Ok(resolved)
}

#[cfg(test)]
mod tests;
