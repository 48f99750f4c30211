use std::{collections::BTreeSet, fmt::Write as _};

use config::{
    ExtraMount, Handover, IdStrategy,
    ListStrategy::{Auto, CdiAnnotations, CdiCri, Envvar, VolumeMounts},
    Method, Pool,
};
use rstest::rstest;

use super::*;
use nvidia_rules::{NVIDIA, sample::*};

const VENDOR: &str = NVIDIA.name;
const VISIBLE_DEVICES: &str = "NVIDIA_VISIBLE_DEVICES";

mod cdi;
mod machines;
mod properties;

/// Edits as text, in the order in which the kubelet gets them.
fn show(grant: &Grant) -> String {
    let edits = &grant.edits;
    let mut text = String::new();
    for (name, value) in &edits.env {
        writeln!(text, "env {name}={value}").unwrap();
    }
    for mount in &edits.mounts {
        writeln!(
            text,
            "mount {} -> {}",
            mount.host_path, mount.container_path
        )
        .unwrap();
    }
    for node in &edits.device_nodes {
        let (outside, inside) = (node.outside(), &node.path);
        let permissions = node.permissions.as_deref().unwrap();
        match outside == inside {
            true => writeln!(text, "node {inside} {permissions}").unwrap(),
            false => writeln!(text, "node {outside} -> {inside} {permissions}").unwrap(),
        }
    }
    for (key, value) in &grant.annotations {
        writeln!(text, "annotation {key}={value}").unwrap();
    }
    for name in &grant.cdi_devices {
        writeln!(text, "cdi {name}").unwrap();
    }
    text
}

fn given(offer: &Offer, names: &[&str]) -> String {
    show(&grant_ids(offer, &to_ids(names)).unwrap())
}

/// Grants `names` of a pool with this handover, on a machine with `extras`.
fn asked(
    extras: Extras,
    lists: &[ListStrategy],
    names: &[&str],
    change: impl Fn(&mut Handover),
) -> Grant {
    let pool = handover_pool(|handover| {
        handover.lists = lists.to_vec();
        change(handover);
    });
    grant_ids(&with_extras(extras, four_cards(pool)), &to_ids(names)).unwrap()
}

/// Every set of strategies.
fn subsets() -> Vec<Vec<ListStrategy>> {
    let all = [Envvar, VolumeMounts, CdiAnnotations, CdiCri];
    (0..16u32)
        .map(|set| {
            let chosen = all.into_iter().enumerate();
            let chosen = chosen.filter(|(at, _)| set & (1 << at) != 0);
            chosen.map(|(_, strategy)| strategy).collect()
        })
        .collect()
}

#[test]
fn every_set_of_strategies_with_every_id_strategy() {
    let mut text = String::new();
    for lists in subsets() {
        for strategy in [IdStrategy::Uuid, IdStrategy::Index] {
            let pool = handover_pool(|handover| {
                handover.lists.clone_from(&lists);
                handover.ids = strategy;
                handover.nvidia.imex = vec![0];
                handover.nvidia.gds = true;
            });
            let offer = with_extras(all_extras(), four_cards(pool));
            let edits = given(&offer, &["GPU-b", "GPU-a", "GPU-d"]);
            writeln!(text, "== {lists:?} {strategy:?}\n{edits}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_default_is_the_variable_in_request_order_and_every_node_once() {
    let offer = four_cards(Pool::of_all_devices("all", "nvidia.com/gpu"));
    insta::assert_snapshot!(given(&offer, &["GPU-c", "GPU-a"]), @r"
    env NVIDIA_VISIBLE_DEVICES=GPU-c,GPU-a
    node /dev/nvidia-uvm rw
    node /dev/nvidia1 rw
    node /dev/nvidia3 rw
    node /dev/nvidiactl rw
    ");
}

#[test]
fn a_pool_adds_variables_and_mounts_of_its_own() {
    let pool = handover_pool(|handover| {
        for (name, template) in [
            ("CARD_IDS", "{id}"),
            ("VENDOR", "{vendor}"),
            ("COLOUR", "{colour}"),
            (VISIBLE_DEVICES, "all"),
        ] {
            handover
                .env
                .insert(name.to_owned(), template.parse().unwrap());
        }
        let mount = |path: &str, read_only| ExtraMount {
            host_path: path.parse().unwrap(),
            read_only,
            ..ExtraMount::default()
        };
        handover.mounts = vec![mount("/opt/tools", true), mount("/var/{id}", false)];
    });
    let granted = grant_ids(&four_cards(pool), &to_ids(&["GPU-c", "GPU-a"])).unwrap();
    insta::assert_snapshot!(show(&granted), @r"
    env CARD_IDS=GPU-c,GPU-a
    env NVIDIA_VISIBLE_DEVICES=GPU-c,GPU-a
    env VENDOR=nvidia
    mount /opt/tools -> /opt/tools
    mount /var/GPU-c -> /var/GPU-c
    mount /var/GPU-a -> /var/GPU-a
    node /dev/nvidia-uvm rw
    node /dev/nvidia1 rw
    node /dev/nvidia3 rw
    node /dev/nvidiactl rw
    ");
    assert!(granted.edits.mounts[0].is_read_only() && !granted.edits.mounts[1].is_read_only());
    let notes: Vec<&str> = granted
        .notes
        .iter()
        .map(|note| note.text.as_str())
        .collect();
    assert_eq!(
        notes,
        [
            "COLOUR is left out: GPU-c does not have colour",
            "NVIDIA_VISIBLE_DEVICES is set by the vendor of the device, not by handover.env",
        ]
    );
}

#[test]
fn auto_is_the_variable_and_the_nodes() {
    let auto = given(&four_cards(listed_pool(&[Auto])), &["GPU-c"]);
    assert_eq!(auto, given(&four_cards(listed_pool(&[Envvar])), &["GPU-c"]));
    let beside = given(&four_cards(listed_pool(&[Auto, CdiCri])), &["GPU-c"]);
    assert_eq!(
        beside,
        given(&four_cards(listed_pool(&[Envvar, CdiCri])), &["GPU-c"])
    );
}

#[test]
fn only_an_explicit_no_leaves_the_nodes_out() {
    for lists in subsets() {
        let offer = |device_nodes| {
            four_cards(handover_pool(|handover| {
                handover.lists.clone_from(&lists);
                handover.device_nodes = device_nodes;
            }))
        };
        let mut given = grant_ids(&offer(true), &to_ids(&["GPU-a"])).unwrap();
        let cdi = [CdiAnnotations, CdiCri].iter().any(|s| lists.contains(s));
        let other = [Envvar, VolumeMounts].iter().any(|s| lists.contains(s));
        assert_eq!(
            given.edits.device_nodes.is_empty(),
            cdi && !other,
            "{lists:?}"
        );
        assert_eq!(
            given.annotations.is_empty() && given.cdi_devices.is_empty(),
            !cdi,
            "{lists:?}"
        );
        let bare = grant_ids(&offer(false), &to_ids(&["GPU-a"])).unwrap();
        given.edits.device_nodes.clear();
        assert_eq!(bare, given);
    }
}

#[test]
fn the_dev_root_stands_before_every_node_outside() {
    let pool = handover_pool(|handover| {
        handover.nvidia.dev_root = "/run/nvidia/driver".into();
        handover.nvidia.imex = vec![1];
        handover.nvidia.gdrcopy = true;
    });
    let offer = with_extras(all_extras(), four_cards(pool));
    insta::assert_snapshot!(given(&offer, &["GPU-c"]), @r"
    env NVIDIA_GDRCOPY=enabled
    env NVIDIA_IMEX_CHANNELS=1
    env NVIDIA_VISIBLE_DEVICES=GPU-c
    node /run/nvidia/driver/dev/gdrdrv -> /dev/gdrdrv rw
    node /run/nvidia/driver/dev/nvidia-caps-imex-channels/channel1 -> /dev/nvidia-caps-imex-channels/channel1 rw
    node /run/nvidia/driver/dev/nvidia-uvm -> /dev/nvidia-uvm rw
    node /run/nvidia/driver/dev/nvidia1 -> /dev/nvidia1 rw
    node /run/nvidia/driver/dev/nvidiactl -> /dev/nvidiactl rw
    ");
}

#[test]
fn a_node_that_only_the_host_has_is_at_home() {
    let pool = handover_pool(|handover| {
        handover.nvidia.dev_root = "/run/nvidia/driver".into();
        handover.nvidia.gdrcopy = true;
    });
    let extras = Extras {
        host_nodes: ["/dev/gdrdrv", "/dev/nvidia-uvm"].map(str::to_owned).into(),
        ..all_extras()
    };
    insta::assert_snapshot!(given(&with_extras(extras, four_cards(pool)), &["GPU-c"]), @r"
    env NVIDIA_GDRCOPY=enabled
    env NVIDIA_VISIBLE_DEVICES=GPU-c
    node /dev/gdrdrv rw
    node /dev/nvidia-uvm rw
    node /run/nvidia/driver/dev/nvidia1 -> /dev/nvidia1 rw
    node /run/nvidia/driver/dev/nvidiactl -> /dev/nvidiactl rw
    ");
}

/// Channels are handed over by every strategy, in the form of that strategy.
#[rstest]
#[case(&[Envvar], &["env NVIDIA_IMEX_CHANNELS=0,1", "node /dev/nvidia-caps-imex-channels/channel0 rw"])]
#[case(&[VolumeMounts], &["mount /dev/null -> /var/run/nvidia-container-devices/imex/1", "node /dev/nvidia-caps-imex-channels/channel1 rw"])]
#[case(&[CdiCri], &["cdi k8s.device-plugin.nvidia.com/imex-channel=1"])]
#[case(&[CdiAnnotations], &["k8s.device-plugin.nvidia.com/imex-channel=0,k8s.device-plugin.nvidia.com/imex-channel=1\n"])]
#[case(&[], &["node /dev/nvidia-caps-imex-channels/channel1 rw"])]
fn channels_are_handed_over_in_every_mode(#[case] lists: &[ListStrategy], #[case] parts: &[&str]) {
    let edits = show(&asked(all_extras(), lists, &["GPU-a"], |h| {
        h.nvidia.imex = vec![0, 1, 2]
    }));
    for part in parts {
        assert!(edits.contains(part), "{part} in\n{edits}");
    }
    assert!(
        !edits.contains("channel2") && !edits.contains("channel=2"),
        "{edits}"
    );
}

#[test]
fn capabilities_are_the_pools() {
    for lists in subsets() {
        let given = asked(Extras::default(), &lists, &["GPU-a"], |handover| {
            handover.nvidia.capabilities = Some("compute,utility".to_owned());
        });
        assert_eq!(
            given.edits.env["NVIDIA_DRIVER_CAPABILITIES"],
            "compute,utility"
        );
        let given = asked(Extras::default(), &lists, &["GPU-a"], |_| ());
        assert!(!given.edits.env.contains_key("NVIDIA_DRIVER_CAPABILITIES"));
    }
}
