//! Broken pools, selectors and handovers.

use rstest::rstest;

use super::{load_warnings, the_problem};

#[rstest]
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
    "include:\n  - {kind: card, «profile: 1g.5gb}\n",
    "include[0].profile",
    "never matches",
    "partition"
)]
#[case(
    "include: [{«model: \"\"}]\n",
    "include[0].model",
    "matches nothing",
    "pattern"
)]
#[case(
    "handover:\n  lists: [envvar, «cdi]\n",
    "handover.lists[1]",
    "is not one of",
    "write one"
)]
#[case(
    "handover: {env: {«2CARDS: x}}\n",
    "handover.env.2CARDS",
    "not the name of a variable",
    "CRYPTO_CARD"
)]
#[case(
    "handover: {env: {CARD: «\"{id\"}}\n",
    "handover.env.CARD",
    "without its other one",
    "`{id}`"
)]
#[case(
    "handover: {mounts: [{hostPath: «opt}]}\n",
    "handover.mounts[0].hostPath",
    "does not begin with `/`",
    "/opt/company"
)]
#[case(
    "handover: {nvidia: {imex: [«-1]}}\n",
    "handover.nvidia.imex[0]",
    "whole number",
    "0 to 2047"
)]
#[case(
    "handover:\n  nvidia:\n    devRoot: «run/nvidia/driver\n",
    "handover.nvidia.devRoot",
    "does not begin with `/`",
    "/run/nvidia/driver"
)]
#[case(
    "handover: {nvidia: {mpsRoot: «mps}}\n",
    "handover.nvidia.mpsRoot",
    "does not begin with `/`",
    "/run/nvidia/mps"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    handover: {nvidia: {annotationPrefix: «cdi}}\n",
    "pools[0].handover.nvidia.annotationPrefix",
    "does not begin the key",
    "cdi.k8s.io/"
)]
#[case(
    "handover: {nvidia: {capabilities: «\"\"}}\n",
    "handover.nvidia.capabilities",
    "no part of the driver",
    "compute, utility"
)]
#[case(
    "handover: {nvidia: {imex: «[0, 3, 0]}}\n",
    "handover.nvidia.imex",
    "channel 0 is there twice",
    "each channel once"
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
    "example.com/gpu"
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
    "example.com/gpu"
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
    "from 1 to 4096"
)]
#[case(
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {replicas: «four}\n",
    "pools[0].sharing.replicas",
    "expected a whole number, found `four`",
    "4096"
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
    "handover.nvidia.mpsRoot",
    "/run/nvidia/mps"
)]
#[case(
    "handover: {nvidia: {mpsRoot: /m}}\npools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {method: mps, replicas: «64}\n",
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
    "pools:\n  - name: a\n    resource: nvidia.com/gpu\n    sharing: {replicas: «5000}\n",
    "pools[0].sharing.replicas",
    "5000 is out of range",
    "from 1 to 4096"
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
fn a_broken_pool_selector_or_handover_is_refused_at_its_place(
    #[case] text: &str,
    #[case] key: &str,
    #[case] message: &str,
    #[case] help: &str,
) {
    let problem = the_problem(text, load_warnings, [key, message, help]);
    assert!(problem.is_error(), "{problem}");
}

#[test]
fn a_pool_that_can_get_nothing_is_a_warning() {
    let text =
        "pools:\n  - {name: a, resource: nvidia.com/a}\n  - {name: «b, resource: nvidia.com/b}\n";
    let words = ["pools[1]", "pool `a` takes every device", "last"];
    let problem = the_problem(text, load_warnings, words);
    assert!(!problem.is_error(), "{problem}");
}
