//! Broken v1 files: each problem names file, line, column and key, and has a remedy.

use rstest::rstest;

use crate::{
    ConfigProblem, Error, Overrides,
    file::broken::the_problem,
    nvidia::{GivenFlags, load_v1, translate_file},
};

/// Reads a file and translates it without flags. Returns the warnings.
fn translate_problems(path: &std::path::Path) -> Result<Vec<ConfigProblem>, Error> {
    let file = load_v1(path)?;
    let resolved = translate_file(
        &GivenFlags::default(),
        &file,
        Overrides::default(),
        &crate::ValueOrigin::of_flag,
    )?;
    Ok(resolved.warnings)
}

const GPU: &str = "sharing:\n  timeSlicing:\n    resources:\n    - ";

#[rstest]
#[case("version: «v2\n", "version", "`v2`", "version: v1")]
#[case(
    "version: «[v1]\n",
    "version",
    "expected a text, found a list",
    "one value"
)]
#[case("«- a\n", "", "expected a map, found a list", "key: value")]
#[case("flags: «on\n", "flags", "expected a map, found `on`", "key: value")]
#[case(
    "flags:\n  failOnInitError: «\"true\"\n",
    "flags.failOnInitError",
    "true or false",
    "without quotes"
)]
#[case(
    "flags:\n  gdsEnabled: «2\n",
    "flags.gdsEnabled",
    "true or false",
    "true or false"
)]
#[case(
    "flags:\n  migStrategy: «many\n",
    "flags.migStrategy",
    "none, single, mixed",
    "one of them"
)]
#[case(
    "flags:\n  deviceDiscoveryStrategy: «nvlm\n",
    "flags.deviceDiscoveryStrategy",
    "`nvlm`",
    "`nvml`"
)]
#[case(
    "flags:\n  plugin:\n    deviceListStrategy: «envvar,cdi-cri\n",
    "flags.plugin.deviceListStrategy",
    "`envvar,cdi-cri`",
    "write a list"
)]
#[case(
    "flags:\n  plugin:\n    deviceListStrategy: «[envvar, cdi]\n",
    "flags.plugin.deviceListStrategy",
    "`cdi`",
    "write one of them"
)]
#[case(
    "flags:\n  plugin:\n    deviceListStrategy: [«{a: b}]\n",
    "flags.plugin.deviceListStrategy[0]",
    "found a map",
    "one value"
)]
#[case(
    "flags:\n  plugin:\n    deviceIDStrategy: «uid\n",
    "flags.plugin.deviceIDStrategy",
    "`uid`",
    "`uuid`"
)]
#[case(
    "flags:\n  plugin:\n    sharedDevicesAllocationPolicy: «pack\n",
    "flags.plugin.sharedDevicesAllocationPolicy",
    "`pack`",
    "`packed`"
)]
#[case(
    "flags:\n  gfd:\n    sleepInterval: «soon\n",
    "flags.gfd.sleepInterval",
    "`soon`",
    "infinite"
)]
#[case(
    "imex:\n  channelIDs: «[1]\n",
    "imex.channelIDs",
    "[1] cannot be had",
    "[] or [0]"
)]
#[case(
    "imex:\n  channelIDs: «[0, 0]\n",
    "imex.channelIDs",
    "[0, 0]",
    "[] or [0]"
)]
#[case(
    "imex:\n  channelIDs: [«zero]\n",
    "imex.channelIDs[0]",
    "whole number",
    "0"
)]
#[case("imex:\n  channelIDs: «0\n", "imex.channelIDs", "expected a list", "[")]
#[case(
    "resources:\n  gpus:\n  - «name: gpu\n",
    "resources.gpus[0].pattern",
    "missing",
    "pattern:"
)]
#[case(
    "resources:\n  mig:\n  - «pattern: \"*\"\n",
    "resources.mig[0].name",
    "missing",
    "name the"
)]
#[case(
    "resources:\n  gpus:\n  - {pattern: \"*\", name: «GPU}\n",
    "resources.gpus[0].name",
    "`nvidia.com/GPU`",
    "lower-case"
)]
#[case(
    "sharing:\n  timeSlicing:\n    «renameByDefault: true\n",
    "sharing.timeSlicing.resources",
    "no resource is shared",
    "at least one"
)]
#[case(
    "sharing:\n  mps:\n    «resources: []\n",
    "sharing.mps.resources",
    "no resource",
    "at least one"
)]
#[case(&format!("{GPU}«name: gpu\n"), "sharing.timeSlicing.resources[0].replicas", "missing", "2 or more")]
#[case(&format!("{GPU}«replicas: 2\n"), "sharing.timeSlicing.resources[0].name", "missing", "nvidia.com/gpu")]
#[case(&format!("{GPU}{{name: gpu, replicas: «1}}\n"), "sharing.timeSlicing.resources[0].replicas",
    "1 is out of range", "from 2")]
#[case(&format!("{GPU}{{name: gpu, replicas: «2.0}}\n"), "sharing.timeSlicing.resources[0].replicas",
    "whole number", "from 2")]
#[case(&format!("{GPU}{{name: «g/p/u, replicas: 2}}\n"), "sharing.timeSlicing.resources[0].name",
    "`nvidia.com/g/p/u`", "lower-case")]
#[case(&format!("{GPU}{{name: gpu, replicas: 2, rename: «-a}}\n"), "sharing.timeSlicing.resources[0].rename",
    "`nvidia.com/-a`", "lower-case")]
#[case(&format!("{GPU}{{name: gpu, replicas: 2, devices: «none}}\n"), "sharing.timeSlicing.resources[0].devices",
    "`none`", "`all`")]
#[case(&format!("{GPU}{{name: gpu, replicas: 2, devices: [«GPU-1]}}\n"),
    "sharing.timeSlicing.resources[0].devices[0]", "`GPU-1`", "GPU-…")]
#[case(
    "sharing:\n  mps:\n    «resources: [{name: gpu, replicas: 2}]\n",
    "sharing.mps",
    "mps-root is empty",
    "MPS_ROOT"
)]
#[case(
    "flags: {migStrategy: mixed, mpsRoot: /m}\nsharing:\n  mps:\n    «resources: [{name: gpu, replicas: 2}]\n",
    "sharing.mps",
    "mig-strategy is mixed",
    "timeSlicing"
)]
#[case(
    "sharing:\n  timeSlicing:\n    resources:\n    - {name: gpu, replicas: 2, devices: [0], rename: a}\n    - {name: «gpu, replicas: 3, devices: [1], rename: a}\n",
    "sharing",
    "`nvidia.com/a` would be shared in two ways",
    "rename"
)]
#[case("version: v1\nflags: «{\n", "", "not valid YAML", "brackets")]
fn a_broken_file_is_refused_at_its_place(
    #[case] text: &str,
    #[case] key: &str,
    #[case] message: &str,
    #[case] help: &str,
) {
    let problem = the_problem(text, translate_problems, [key, message, help]);
    assert!(problem.is_error(), "{problem}");
}

#[rstest]
#[case(
    "flags:\n  «migStategy: mixed\n",
    "flags.migStategy",
    "unknown key",
    "`migStrategy`"
)]
#[case("«backends:\n  x: y\n", "backends", "unknown key", "version, flags")]
#[case(&format!("{GPU}{{name: gpu, replicas: 2, «device: all}}\n"),
    "sharing.timeSlicing.resources[0].device", "unknown key", "`devices`")]
#[case(
    "flags: {gdsEnabled: true}\n«flags: {gdsEnabled: false}\n",
    "flags",
    "line 1 already",
    "only the last"
)]
#[case(
    "flags: {mpsRoot: /m}\nsharing:\n  timeSlicing:\n    «resources: [{name: gpu, replicas: 2}]\n  mps:\n    resources: [{name: gpu, replicas: 3}]\n",
    "sharing.timeSlicing",
    "`mps` in line 6",
    "remove one"
)]
#[case(&format!("{GPU}{{name: gpu, replicas: 2, devices: «[0]}}\n"),
    "sharing.timeSlicing.resources[0].devices", "offered as `nvidia.com/gpu.shared`", "`rename`")]
#[case(&format!("{GPU}{{name: «mig-1g.5gb, replicas: 2}}\n"),
    "sharing.timeSlicing.resources[0].name", "no device is called", "MIG strategy")]
#[case(&format!("{GPU}{{name: gpu, replicas: 2}}\n    - {{name: «gpu, replicas: 3}}\n"),
    "sharing.timeSlicing.resources[1]", "nothing of `nvidia.com/gpu` is left", "further up")]
#[case(&format!("{GPU}{{name: gpu, replicas: «4097}}\n"),
    "sharing.timeSlicing.resources[0].replicas", "4097 are too many", "at most 4096")]
#[case(
    "flags: {mpsRoot: /m}\nsharing:\n  mps:\n    resources: [{name: gpu, replicas: «49}]\n",
    "sharing.mps.resources[0].replicas",
    "clients of MPS",
    "at most 48"
)]
#[case(
    "flags: {nvidiaDevRoot: «run/nvidia}\n",
    "flags.nvidiaDevRoot",
    "does not begin with `/`",
    "/run/nvidia/driver"
)]
#[case(
    "flags: {nvidiaDriverRoot: «driver}\n",
    "flags.nvidiaDriverRoot",
    "does not begin with `/`",
    "whole path"
)]
#[case(
    "flags: {mpsRoot: «mps}\n",
    "flags.mpsRoot",
    "does not begin with `/`",
    "/run/nvidia/mps"
)]
#[case(
    "flags:\n  plugin: {cdiAnnotationPrefix: «odd prefix/}\n",
    "flags.plugin.cdiAnnotationPrefix",
    "does not begin the key",
    "cdi.k8s.io/"
)]
#[case(
    "resources: {gpus: [{pattern: «'', name: a}]}\n",
    "resources.gpus[0].pattern",
    "matches nothing",
    "remove it"
)]
fn what_the_go_plugin_passes_over_is_a_warning(
    #[case] text: &str,
    #[case] key: &str,
    #[case] message: &str,
    #[case] help: &str,
) {
    let problem = the_problem(text, translate_problems, [key, message, help]);
    assert!(!problem.is_error(), "{problem}");
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let text = "version: v1\nflags:\n  migStategy: mixed\n  gdsEnabled: maybe\nsharing:\n  \
                timeSlicing:\n    resources:\n    - name: gpu\n      replicas: 1\n      \
                devices: [0, GPU-x]\n";
    insta::assert_snapshot!(crate::nvidia::parse_v1("config.yaml", text).unwrap_err());
}
