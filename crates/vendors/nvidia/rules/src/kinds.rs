//! CDI kinds of NVIDIA's devices, and their qualified names. They are those of NVIDIA's device
//! plugin, because other components depend on them.

/// Vendor of every CDI kind for the device plugin.
pub(crate) const VENDOR: &str = "k8s.device-plugin.nvidia.com";

/// Class of cards and MIG devices.
pub(crate) const GPU: &str = "gpu";

/// Kinds, in the order of the names that a container is given.
pub(crate) const KINDS: [&str; 5] = [
    "k8s.device-plugin.nvidia.com/gpu",
    "k8s.device-plugin.nvidia.com/imex-channel",
    "k8s.device-plugin.nvidia.com/gdrcopy",
    "k8s.device-plugin.nvidia.com/gds",
    "k8s.device-plugin.nvidia.com/mofed",
];

/// Device name for everything of a class.
pub(crate) const ALL: &str = "all";

/// Text between the prefix of an annotation's key and its unique part.
pub(crate) const PLUGIN: &str = "nvidia-device-plugin_";

/// Returns a fully qualified CDI name.
pub(crate) fn qualified(class: &str, name: impl std::fmt::Display) -> String {
    format!("{VENDOR}/{class}={name}")
}
