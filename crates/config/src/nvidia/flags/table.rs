//! Table of the flags: names, variables, types, defaults and help.

/// Type of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::nvidia) enum FlagKind {
    Text,
    Bool,
    Texts,
    Ints,
}

/// Flag of the plugin.
#[derive(Clone, Copy, Debug)]
pub(in crate::nvidia) struct FlagSpec {
    pub(in crate::nvidia) name: &'static str,
    pub(in crate::nvidia) alias: Option<&'static str>,
    pub(in crate::nvidia) env: &'static [&'static str],
    pub(in crate::nvidia) kind: FlagKind,
    pub(in crate::nvidia) default: &'static str,
    pub(in crate::nvidia) help: &'static str,
}

/// Returns the flag with a name or an alias.
pub(in crate::nvidia) fn find_spec(name: &str) -> Option<&'static FlagSpec> {
    let is = |spec: &&FlagSpec| spec.name == name || spec.alias == Some(name);
    FLAGS.iter().find(is)
}

macro_rules! flags {
    ($($name:literal $(/ $alias:literal)?, [$($env:literal),*], $kind:ident, $default:literal, $help:literal;)*) => {
        &[$(FlagSpec {
            name: $name,
            alias: flags!(@alias $($alias)?),
            env: &[$($env),*],
            kind: FlagKind::$kind,
            default: $default,
            help: $help,
        }),*]
    };
    (@alias) => { None };
    (@alias $alias:literal) => { Some($alias) };
}

/// Every flag of NVIDIA's plugin v0.20.0 (cmd/nvidia-device-plugin/main.go).
pub(in crate::nvidia) const FLAGS: &[FlagSpec] = flags! {
    "mig-strategy", ["MIG_STRATEGY"], Text, "none",
        "what becomes of cards in MIG mode: none, single or mixed";
    "fail-on-init-error", ["FAIL_ON_INIT_ERROR"], Bool, "",
        "exit where the driver does not start; where nobody says it, wait";
    "driver-root" / "nvidia-driver-root", ["NVIDIA_DRIVER_ROOT"], Text, "/",
        "the folder on the host under which the driver's files are";
    "dev-root" / "nvidia-dev-root", ["NVIDIA_DEV_ROOT"], Text, "",
        "the folder on the host under which /dev/nvidia* are; as --driver-root where nobody says it";
    "pass-device-specs", ["PASS_DEVICE_SPECS"], Bool, "",
        "hand device nodes over through the kubelet; only an explicit false does not";
    "device-list-strategy", ["DEVICE_LIST_STRATEGY"], Texts, "envvar",
        "how the runtime is told which devices: envvar, volume-mounts, cdi-annotations, cdi-cri";
    "device-id-strategy", ["DEVICE_ID_STRATEGY"], Text, "uuid",
        "by which ids: uuid or index";
    "gdrcopy-enabled", ["GDRCOPY_ENABLED"], Bool, "false", "GDRCopy";
    "gds-enabled", ["GDS_ENABLED"], Bool, "false", "GPUDirect Storage";
    "mofed-enabled", ["MOFED_ENABLED"], Bool, "false", "MOFED: RDMA devices";
    "cdi-annotation-prefix", ["CDI_ANNOTATION_PREFIX"], Text, "cdi.k8s.io/",
        "the beginning of the CDI annotation's key";
    "nvidia-cdi-hook-path" / "nvidia-ctk-path", ["NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"], Text,
        "/usr/bin/nvidia-ctk", "the program on the host that the hooks of CDI specs call";
    "driver-root-ctr-path" / "container-driver-root",
        ["DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"], Text, "/driver-root",
        "the driver's folder as this process sees it";
    "mps-root", ["MPS_ROOT"], Text, "", "the folder on the host with the MPS daemon's files";
    "shared-devices-allocation-policy", ["SHARED_DEVICES_ALLOCATION_POLICY"], Text, "distributed",
        "which units of shared cards are chosen: distributed or packed";
    "device-discovery-strategy", ["DEVICE_DISCOVERY_STRATEGY"], Text, "auto",
        "how cards are found: auto, nvml or tegra";
    "imex-channel-ids", ["IMEX_CHANNEL_IDS"], Ints, "", "IMEX channels: none, or 0";
    "imex-required", ["IMEX_REQUIRED"], Bool, "false", "whether a missing IMEX channel is an error";
    "kubelet-socket", ["KUBELET_SOCKET"], Text, "/var/lib/kubelet/device-plugins/kubelet.sock",
        "the kubelet's socket, beside which ours are; an empty text: never register";
    "config-file", ["CONFIG_FILE"], Text, "", "a config file of version v1";
    "cdi-feature-flags", ["CDI_FEATURE_FLAGS"], Texts, "", "switches for how CDI specs are made";
    "cdi-disable-hooks", ["CDI_DISABLE_HOOKS"], Texts, "", "hooks that CDI specs leave out, or all";
};
