//! Broken configs: each error names file, line, column and key, and says what to do.

use rstest::rstest;

use crate::{Error, Origin, Problem};

/// The place that `«` marks, and the text without it.
pub(crate) fn marked(text: &str) -> (String, usize, usize) {
    let before = text.split('«').next().unwrap();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (text.replace('«', ""), line, column)
}

/// The one problem of a config, with file, line and column checked.
pub(crate) fn the_problem(
    text: &str,
    load: impl Fn(&std::path::Path) -> Result<Vec<Problem>, Error>,
) -> Problem {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.yaml");
    let (text, line, column) = marked(text);
    fs_err::write(&path, &text).unwrap();
    let problems = match load(&path) {
        Ok(warnings) => warnings,
        Err(error) => error.problems().to_vec(),
    };
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 1, "{all:#?}");
    let problem = problems.into_iter().next().unwrap();
    let expected = Origin::File { path, line, column };
    assert_eq!(problem.at, expected, "{problem}");
    assert!(!problem.help.is_empty(), "{problem}");
    problem
}

fn load(path: &std::path::Path) -> Result<Vec<Problem>, Error> {
    crate::load(path).map(|file| file.warnings)
}

#[rstest]
#[case(
    "«kublet:\n  dir: /a\n",
    "kublet",
    "unknown key",
    "did you mean `kubelet`?"
)]
#[case("probe:\n  «perod: 3s\n", "probe.perod", "unknown key", "`period`")]
#[case(
    "probe:\n  «zzz: 3s\n",
    "probe.zzz",
    "unknown key",
    "period, callLimit, driverCallLimit"
)]
#[case("probe:\n  period: «soon\n", "probe.period", "`soon`", "500ms")]
#[case(
    "probe:\n  period: «48h\n",
    "probe.period",
    "between 1ms and 24h",
    "10s"
)]
#[case(
    "probe: «[1, 2]\n",
    "probe",
    "expected a map, found a list",
    "key: value"
)]
#[case(
    "hostRoot: /a\n«hostRoot: /b\n",
    "hostRoot",
    "line 1 already",
    "remove one"
)]
#[case("hostRoot: «\"\"\n", "hostRoot", "empty", "leave the key out")]
#[case(
    "kubelet:\n  register: «\"yes\"\n",
    "kubelet.register",
    "true or false",
    "without quotes"
)]
#[case(
    "mig: «mixd\n",
    "mig",
    "`mixd` is not one of none, single, mixed",
    "`mixed`"
)]
#[case(
    "kubelet:\n  dir: «/a/very/long/path/that/leaves/no/room/for/the/names/of/any/sockets/in/it\n",
    "kubelet.dir",
    "limit of 107",
    "at most 66 bytes"
)]
#[case(
    "driverPath: /a\nbackends:\n  nvidia:\n    driverPath: «/b\n",
    "backends.nvidia.driverPath",
    "line 1 already",
    "remove one"
)]
#[case("exclude: «[{}]\n", "exclude", "excludes every device", "pools: []")]
#[case(
    "exclude:\n  - {«pci: 3b}\n",
    "exclude[0].pci",
    "not a PCI address",
    "0000:3b:00.0"
)]
#[case(
    "include:\n  - {«index: 1:2:3}\n",
    "include[0].index",
    "not an index",
    "`3:0`"
)]
#[case(
    "include:\n  - {«minMemory: 80Gi, maxMemory: 40Gi}\n",
    "include[0].minMemory",
    "at least 80Gi",
    "exchange"
)]
#[case(
    "include:\n  - {maxMemory: «40GB}\n",
    "include[0].maxMemory",
    "`40GB`",
    "Gi"
)]
#[case(
    "include:\n  - {kind: card, «migProfile: 1g.5gb}\n",
    "include[0].migProfile",
    "never matches",
    "partition"
)]
#[case(
    "include: [{«model: \"\"}]\n",
    "include[0].model",
    "matches nothing",
    "pattern"
)]
#[case("pools: «3\n", "pools", "expected a list", "- ")]
#[case(
    "pools:\n  - «resource: nvidia.com/gpu\n",
    "pools[0].name",
    "`name` is missing",
    "name of its own"
)]
#[case(
    "pools:\n  - «name: a\n",
    "pools[0].resource",
    "`resource` is missing",
    "nvidia.com/gpu"
)]
#[case(
    "pools:\n  - {name: a, select: {index: 1}, resource: nvidia.com/a}\n  - {name: «a, select: {index: 0}, resource: nvidia.com/b}\n",
    "pools[1].name",
    "pool of line 2",
    "name of its own"
)]
#[case(
    "pools:\n  - {name: a, resource: «gpu}\n",
    "pools[0].resource",
    "needs a domain",
    "nvidia.com/gpu"
)]
#[case(
    "pools:\n  - {name: a, resource: «\"nvidia.com/{modl}\"}\n",
    "pools[0].resource",
    "`{modl}`",
    "`model`"
)]
#[case(
    "pools:\n  - {name: a, resource: «\"nvidia.com/{model\"}\n",
    "pools[0].resource",
    "not closed",
    "{model}"
)]
#[case(
    "pools:\n  - {name: a, resource: «nvidia.com/abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl}\n",
    "pools[0].resource",
    "longer than 63",
    "at most 63"
)]
#[case(
    "pools:\n  - {name: a, select: {kind: card}, resource: «\"nvidia.com/mig-{profile}\"}\n",
    "pools[0].resource",
    "have no `{profile}`",
    "kind: partition"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {replicas: «0}\n",
    "pools[0].sharing.replicas",
    "0 is out of range",
    "from 1 to 1024"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {replicas: «four}\n",
    "pools[0].sharing.replicas",
    "expected a whole number, found `four`",
    "1024"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: «timeslicing\n",
    "pools[0].sharing",
    "is not one of",
    "`time-slicing`"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: «auto\n",
    "pools[0].sharing.replicas",
    "at least 2 units",
    "2 or more"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {method: none, replicas: «4}\n",
    "pools[0].sharing.replicas",
    "not shared",
    "time-slicing"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {method: «mps, replicas: 4}\n",
    "pools[0].sharing.method",
    "mpsRoot",
    "/run/nvidia/mps"
)]
#[case(
    "handover: {mpsRoot: /m}\npools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {method: mps, replicas: «64}\n",
    "pools[0].sharing.replicas",
    "at most 48 clients",
    "time-slicing"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    placement: «pakced\n",
    "pools[0].placement",
    "is not one of",
    "`packed`"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    placement: {policy: packed, weights: «{link: 1}}\n",
    "pools[0].placement.weights",
    "only the policy weighted",
    "weighted"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    placement: «weighted\n",
    "pools[0].placement.policy",
    "needs `weights`",
    "weights: {link: 2"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    reserved: «{}\n",
    "pools[0].reserved",
    "every device of the pool",
    "index: 0"
)]
#[case(
    "pools:\n  - {name: a, select: {index: 0}, resource: nvidia.com/gpu}\n  - {name: b, resource: «nvidia.com/gpu, sharing: {replicas: 4}}\n",
    "pools[1].resource",
    "same resource name",
    "another name"
)]
#[case(
    "handover:\n  lists: [envvar, «cdi]\n",
    "handover.lists[1]",
    "is not one of",
    "write one"
)]
#[case(
    "handover: {imex: [«-1]}\n",
    "handover.imex[0]",
    "whole number",
    "0 to 2047"
)]
#[case(
    "handover:\n  devRoot: «run/nvidia/driver\n",
    "handover.devRoot",
    "does not begin with `/`",
    "/run/nvidia/driver"
)]
#[case(
    "handover: {mpsRoot: «mps}\n",
    "handover.mpsRoot",
    "does not begin with `/`",
    "/run/nvidia/mps"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    handover: {annotationPrefix: «cdi}\n",
    "pools[0].handover.annotationPrefix",
    "does not begin the key",
    "cdi.k8s.io/"
)]
#[case(
    "handover: {capabilities: «\"\"}\n",
    "handover.capabilities",
    "no part of the driver",
    "compute, utility"
)]
#[case(
    "handover: {imex: «[0, 3, 0]}\n",
    "handover.imex",
    "channel 0 is there twice",
    "each channel once"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {replicas: «5000}\n",
    "pools[0].sharing.replicas",
    "5000 is out of range",
    "from 1 to 1024"
)]
#[case(
    "health: {working: «never}\n",
    "health.working",
    "`never` is not a length of time",
    "or off"
)]
#[case(
    "health: {weights: {trend: «heavy}}\n",
    "health.weights.trend",
    "not one of out, warn, off",
    "write one of them"
)]
#[case(
    "health: {xids: {«all: reset}}\n",
    "health.xids.all",
    "not the number of an XID",
    "{94: reset}"
)]
#[case(
    "health: {xids: {94: «rest}}\n",
    "health.xids.94",
    "not one of ignore",
    "did you mean `reset`?"
)]
#[case(
    "health: {holdDown: 5m, holdDownLimit: «1m}\n",
    "health.holdDownLimit",
    "shorter than `holdDown`",
    "longer"
)]
#[case(
    "health: {deep: «10m}\n",
    "health.deep",
    "none is named",
    "deepCommand"
)]
#[case(
    "health: {deepCommand: «\"\"}\n",
    "health.deepCommand",
    "the command is empty",
    "/bin/sh -c"
)]
#[case(
    "health: {thresholds: {meanWatts: «lots}}\n",
    "health.thresholds.meanWatts",
    "neither a whole number nor off",
    "or off"
)]
#[case(
    "health: {passes: «0}\n",
    "health.passes",
    "0 is out of range",
    "from 1 to 100"
)]
#[case(
    "pools:\n  - {name: a, resource: a.io/b, sharing: {replicas: 2}, preStart: «check}\n",
    "pools[0].preStart",
    "are shared",
    "remove `preStart`, or `sharing`"
)]
#[case(
    "pools:\n  - {name: a, resource: a.io/b, preStart: «exec}\n",
    "pools[0].preStart",
    "`preStartCommand` is missing",
    "OSTLER_DEVICE_PCI"
)]
#[case(
    "pools:\n  - {name: a, resource: a.io/b, preStart: wait, preStartCommand: «x}\n",
    "pools[0].preStartCommand",
    "no command is run",
    "preStart: exec"
)]
#[case(
    "pools:\n  - {name: a, resource: a.io/b, preStart: wait, preStartLimit: «26s}\n",
    "pools[0].preStartLimit",
    "waits for 30 s",
    "at most 25s"
)]
#[case(
    "pools:\n  - {name: a, resource: a.io/b, preStartLimit: «20s}\n",
    "pools[0].preStartLimit",
    "nothing is done",
    "preStart: wait"
)]
#[case("a: [1\nb«: 2\n", "", "not valid YAML", "brackets")]
#[case(
    "hostRoot: /a\n«---\nhostRoot: /b\n",
    "",
    "second YAML document",
    "remove"
)]
#[case("«just a text\n", "", "expected a map", "key: value")]
fn a_broken_file_is_refused_at_its_place(
    #[case] text: &str,
    #[case] key: &str,
    #[case] message: &str,
    #[case] help: &str,
) {
    let problem = the_problem(text, load);
    assert!(problem.is_error(), "{problem}");
    assert_eq!(problem.key, key);
    assert!(problem.message.contains(message), "{problem}");
    assert!(problem.help.contains(help), "{problem}");
}

#[test]
fn a_pool_that_can_get_nothing_is_a_warning() {
    let text =
        "pools:\n  - {name: a, resource: nvidia.com/a}\n  - {name: «b, resource: nvidia.com/b}\n";
    let problem = the_problem(text, load);
    assert!(!problem.is_error());
    assert_eq!(problem.key, "pools[1]");
    assert!(
        problem.message.contains("pool `a` takes every device"),
        "{problem}"
    );
}

#[test]
fn everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
    let text = "probe:\n  perod: 3s\n  callLimit: soon\nmig: mixd\npools:\n  - name: a\n    \
                resource: gpu\n    sharing: {replicas: 4, methd: mps}\n  - resource: x\n";
    let error = crate::parse("ostler.yaml", text).unwrap_err();
    insta::assert_snapshot!(error);
}
