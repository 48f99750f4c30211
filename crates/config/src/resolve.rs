//! Config that the agent runs with: flags and variables over the file, the file over the defaults.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    BackendOverrides, Backends, Cdi, ConfigProblem, ConfigProblems, Error, Handover, Health,
    Kubelet, Origins, Pools, Probe, ProblemSeverity, ValueOrigin,
    source::{Section, SectionReader},
};

/// Values of flags and variables, which win over the file. `None` leaves the value of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Device plugin folder of the kubelet.
    pub kubelet_dir: Option<PathBuf>,
    /// Socket of the kubelet's pod resources API.
    pub pod_resources_socket: Option<PathBuf>,
    /// Folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: Option<PathBuf>,
    /// Socket on which the agent takes commands.
    pub control_socket: Option<PathBuf>,
    /// Folder of the CDI specs, as the agent sees it.
    pub cdi_dir: Option<PathBuf>,
    /// Values for the driver of each vendor.
    pub backends: BackendOverrides,
}

/// Config with the origin of each value, and warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Config with every default filled in.
    pub config: Config,
    /// Origins of the config's values.
    pub origins: Origins,
    /// Warnings: probable mistakes that do not prevent the use of the config.
    pub warnings: Vec<ConfigProblem>,
}

/// Config of the Ostler agent. Every key may be left out and then has its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Folder under which the host's `/sys`, `/proc` and `/dev` are.
    pub host_root: PathBuf,
    /// Socket on which the agent takes commands.
    pub control_socket: PathBuf,
    /// Paths of the kubelet.
    pub kubelet: Kubelet,
    /// Period and time limits of every probe.
    pub probe: Probe,
    /// Settings of each vendor's probe, and rules for its devices.
    pub backends: Backends,
    /// Rules for verdicts.
    pub health: Health,
    /// Settings of CDI specs.
    pub cdi: Cdi,
    /// Parts that a container is given, for every pool that does not set them itself.
    pub handover: Handover,
    /// Devices that are offered, as pools.
    #[serde(flatten)]
    pub pools: Pools,
}

// === impl Overrides ===

impl Overrides {
    /// Sets every value in the config, and calls `said` with its key, its flag and the value.
    fn apply_to_config(self, config: &mut Config, mut said: impl FnMut(&str, &str, &Path)) {
        let (kubelet, said) = (&mut config.kubelet, &mut said);
        let names = ("kubelet.dir", "kubelet-dir");
        set_override(names, self.kubelet_dir, &mut kubelet.dir, said);
        let names = ("kubelet.podResourcesSocket", "pod-resources-socket");
        let target = &mut kubelet.pod_resources_socket;
        set_override(names, self.pod_resources_socket, target, said);
        let names = ("hostRoot", "host-root");
        set_override(names, self.host_root, &mut config.host_root, said);
        self.backends.apply_to_backends(&mut config.backends, said);
        let names = ("controlSocket", "control-socket");
        set_override(names, self.control_socket, &mut config.control_socket, said);
        let names = ("cdi.dir", "cdi-dir");
        set_override(names, self.cdi_dir, &mut config.cdi.dir, said);
    }
}

// === impl Resolved ===

impl Resolved {
    /// Applies flags and variables to the config, and checks them. `from` returns, for the name of
    /// a flag, whether the flag or its variable was given.
    ///
    /// # Errors
    /// [`Error::Invalid`] names each flag or variable that is wrong.
    pub fn lay_over(
        &mut self,
        overrides: Overrides,
        from: &dyn Fn(&str) -> ValueOrigin,
    ) -> Result<(), Error> {
        let mut problems = Vec::new();
        let mut wrong = |at, key: &str, (message, help): (String, String)| {
            problems.push(ConfigProblem {
                severity: ProblemSeverity::Error,
                at,
                key: key.to_owned(),
                message,
                help,
                snippet: None,
            });
        };
        overrides.apply_to_config(&mut self.config, |key, flag, path| {
            self.origins.set_origin(key, from(flag));
            // serde refuses to write such a path, and messages could not show it.
            if path.to_str().is_none() {
                let message = "the path is not a text in UTF-8".to_owned();
                let help = "use a path that is: it is handed on and shown as a text".to_owned();
                wrong(from(flag), key, (message, help));
            }
        });
        if let Some(words) = self.config.kubelet.lacks_room() {
            wrong(
                self.origins.find_origin("kubelet.dir"),
                "kubelet.dir",
                words,
            );
        }
        self.derive_defaults();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(ConfigProblems(problems))),
        }
    }

    /// Sets the defaults that depend on other values.
    pub(crate) fn derive_defaults(&mut self) {
        let health = &mut self.config.health;
        // The kubelet's folder is mounted from the host in any case, so the file outlives the
        // agent's container.
        if self.origins.find_origin("health.stateFile") == ValueOrigin::Default {
            health.state_file = Some(self.config.kubelet.dir.join(Health::STATE_FILE));
        }
        health.hold_down_limit = health.hold_down_limit.max(health.hold_down);
    }
}

// === impl Config ===

impl Section for Config {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("hostRoot", &mut self.host_root);
        at.set_option("controlSocket", &mut self.control_socket);
        at.set_section("kubelet", &mut self.kubelet);
        at.set_section("probe", &mut self.probe);
        at.set_section("backends", &mut self.backends);
        at.set_section("health", &mut self.health);
        at.set_section("cdi", &mut self.cdi);
        at.set_section("handover", &mut self.handover);
        self.pools.read_pools(&self.backends, &self.handover, at);
    }
}

impl Config {
    /// Device plugin folder of the kubelet. Its place is a constant of the kubelet
    /// (`DevicePluginPath` in k8s.io/kubelet, pkg/apis/deviceplugin/v1beta1/constants.go).
    pub const KUBELET_DIR: &str = "/var/lib/kubelet/device-plugins";
    /// Longest path, in bytes, of a device plugin folder in which every socket of ours fits.
    pub const KUBELET_DIR_LIMIT: usize = Kubelet::DIR_LIMIT;
    /// Socket on which the kubelet serves the pod resources API.
    pub const POD_RESOURCES_SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
    /// Socket on which the agent takes commands.
    pub const CONTROL_SOCKET: &str = "/run/ostler/control.sock";
    /// Folder of CDI specs that are made at run time. `/etc/cdi` is for static ones.
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

/// Sets the value of a flag, and calls `said` with its key, its flag and the value.
pub(crate) fn set_override<T: From<PathBuf>>(
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

/// Reads the config file, if one is given, and applies flags and variables to it. `from` returns,
/// for the name of a flag, whether the flag or its variable was given.
///
/// # Errors
/// The errors of [`load_native`](crate::load_native), then those of [`Resolved::lay_over`].
pub fn native(
    path: Option<&Path>,
    overrides: Overrides,
    from: &dyn Fn(&str) -> ValueOrigin,
) -> Result<Resolved, Error> {
    let mut resolved = match path {
        Some(path) => crate::load_native(path)?,
        None => Resolved::default(),
    };
    resolved.lay_over(overrides, from)?;
    Ok(resolved)
}

#[cfg(test)]
mod tests;
