//! The CDI kinds of NVIDIA's devices, and names of them.

/// The vendor of every CDI kind that is made for the device plugin.
pub(crate) const VENDOR: &str = "k8s.device-plugin.nvidia.com";

/// The class of cards and MIG devices.
pub(crate) const GPU: &str = "gpu";

/// Every kind, in the order of the names that a container is given.
pub(crate) const KINDS: [&str; 5] = [
    "k8s.device-plugin.nvidia.com/gpu",
    "k8s.device-plugin.nvidia.com/imex-channel",
    "k8s.device-plugin.nvidia.com/gdrcopy",
    "k8s.device-plugin.nvidia.com/gds",
    "k8s.device-plugin.nvidia.com/mofed",
];

/// The name that stands for everything of a class.
pub(crate) const ALL: &str = "all";

/// The text between an annotation's prefix and the part that makes it unique.
pub(crate) const PLUGIN: &str = "nvidia-device-plugin_";

/// A fully qualified CDI name.
pub(crate) fn qualified(class: &str, name: impl std::fmt::Display) -> String {
    format!("{VENDOR}/{class}={name}")
}
