//! Where things are inside the node's own root.

/// The programs: the parts, the agent and this program.
pub const PROGRAMS: &str = "/opt/e2e";
/// Where programs look for others: containerd for its shim, for one.
pub const PATH: &str = "/opt/e2e:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The logs of all long-running programs.
pub const LOGS: &str = "/logs";
/// The folder of static pod manifests.
pub const MANIFESTS: &str = "/run/e2e/manifests";
/// The configuration files of containerd, the kubelet and the agent.
pub const CONFIG: &str = "/run/e2e/config";
/// containerd's configuration file.
pub const CONTAINERD_CONFIG: &str = "/run/e2e/config/containerd.toml";
/// A program that stands in for NVIDIA's CDI hooks: it writes down how it is called.
pub const HOOK: &str = "/run/e2e/config/hook";
/// Where it writes.
pub const HOOK_CALLS: &str = "/run/e2e/config/hook-calls";
/// Images on their way to containerd.
pub const IMAGES: &str = "/run/e2e/images";
/// The NUMA nodes that the kubelet is shown.
pub const NUMA: &str = "/run/e2e/numa";
/// The simulated driver.
pub const DRIVER: &str = "/run/e2e/driver";
/// A host around the simulated driver with device nodes that are none of its making.
pub const HOST: &str = "/run/e2e/host";
/// The folder of the agents' control sockets.
pub const CONTROL: &str = "/run/ostler";
/// The folder of CDI specs that containerd reads.
pub const CDI: &str = "/run/cdi";
/// containerd's socket.
pub const CONTAINERD: &str = "/run/containerd/containerd.sock";
/// containerd's state, which a reboot loses.
pub const CONTAINERD_STATE: &str = "/run/containerd";
/// containerd's store, which a reboot keeps.
pub const CONTAINERD_STORE: &str = "/var/lib/containerd";
/// The device plugin folder; the kubelet knows no other.
pub const DEVICE_PLUGINS: &str = "/var/lib/kubelet/device-plugins";
/// What the kubelet remembers of the devices that it handed out.
pub const DEVICE_STATE: &str = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
/// What the kubelet remembers of its way to hand out processors.
pub const CPU_STATE: &str = "/var/lib/kubelet/cpu_manager_state";
/// The kubelet's pod resources socket.
pub const POD_RESOURCES: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
/// The logs of pods.
pub const POD_LOGS: &str = "/var/log/pods";

/// A program of the node.
pub fn program(name: &str) -> String {
    format!("{PROGRAMS}/{name}")
}

/// The log of a program.
pub fn log(name: &str) -> String {
    format!("{LOGS}/{name}.log")
}
