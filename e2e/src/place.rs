//! Paths inside the node's own root.

/// Programs: Kubernetes, containerd, the agent and this program.
pub const PROGRAMS: &str = "/opt/e2e";
/// `PATH` of the node's programs; containerd finds its shim by it.
pub const PATH: &str = "/opt/e2e:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Logs of all long-running programs.
pub const LOGS: &str = "/logs";
/// Folder of static pod manifests.
pub const MANIFESTS: &str = "/run/e2e/manifests";
/// Configuration files of containerd, the kubelet and the agent.
pub const CONFIG: &str = "/run/e2e/config";
/// Configuration file of containerd.
pub const CONTAINERD_CONFIG: &str = "/run/e2e/config/containerd.toml";
/// Stand-in for NVIDIA's CDI hooks, which logs its calls.
pub const HOOK: &str = "/run/e2e/config/hook";
/// Log of the hook's calls.
pub const HOOK_CALLS: &str = "/run/e2e/config/hook-calls";
/// Image archives for containerd.
pub const IMAGES: &str = "/run/e2e/images";
/// NUMA nodes that the kubelet is shown.
pub const NUMA: &str = "/run/e2e/numa";
/// Folder of the simulated driver.
pub const DRIVER: &str = "/run/e2e/driver";
/// Host root with the simulated driver's files and real device nodes.
pub const HOST: &str = "/run/e2e/host";
/// Folder of the agents' control sockets.
pub const CONTROL: &str = "/run/ostler";
/// Folder of CDI specs that containerd reads.
pub const CDI: &str = "/run/cdi";
/// Socket of containerd.
pub const CONTAINERD: &str = "/run/containerd/containerd.sock";
/// State of containerd, which a reboot loses.
pub const CONTAINERD_STATE: &str = "/run/containerd";
/// Store of containerd, which a reboot keeps.
pub const CONTAINERD_STORE: &str = "/var/lib/containerd";
/// Device plugin folder; the kubelet has no option for another one.
pub const DEVICE_PLUGINS: &str = "/var/lib/kubelet/device-plugins";
/// Checkpoint of the kubelet's device manager.
pub const DEVICE_STATE: &str = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
/// State of the kubelet's CPU manager.
pub const CPU_STATE: &str = "/var/lib/kubelet/cpu_manager_state";
/// Pod resources socket of the kubelet.
pub const POD_RESOURCES: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
/// Logs of pods.
pub const POD_LOGS: &str = "/var/log/pods";

/// Path of a program of the node.
pub fn program(name: &str) -> String {
    format!("{PROGRAMS}/{name}")
}

/// Path of a program's log.
pub fn log(name: &str) -> String {
    format!("{LOGS}/{name}.log")
}
