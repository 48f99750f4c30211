use std::sync::Arc;

use model::{Device, DeviceNode, Entry, Kind, NodeRole, Snapshot, State, Verdict};
use proptest::prelude::*;

use super::*;

fn entry(n: u32) -> Entry {
    let node = |path: String, role| DeviceNode { path, role };
    Entry {
        device: Device {
            id: format!("GPU-{n}").as_str().into(),
            vendor: "nvidia".to_owned(),
            kind: Kind::Card { partitioned: false },
            model: "A100".to_owned(),
            index: None,
            pci: None,
            numa: None,
            memory_bytes: None,
            compute_capability: None,
            nodes: vec![
                node("/dev/nvidiactl".to_owned(), NodeRole::Control),
                node("/dev/nvidia-uvm".to_owned(), NodeRole::Control),
                node(format!("/dev/nvidia{n}"), NodeRole::Own),
            ],
            links: Vec::new(),
            failures: Vec::new(),
        },
        verdict: Verdict::default(),
        telemetry: None,
    }
}

fn offer(devices: Vec<Entry>) -> Arc<Offer> {
    let snapshot = Snapshot {
        devices,
        ..Snapshot::empty(jiff::Timestamp::UNIX_EPOCH)
    };
    Arc::clone(&pool::offers(&Arc::new(snapshot))[0])
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn gives_the_variable_in_request_order_and_every_node_once() {
    let offer = offer((0..4).map(entry).collect());
    let edits = grant(&offer, &ids(&["GPU-3", "GPU-1"])).unwrap();
    insta::assert_json_snapshot!(edits, @r#"
    {
      "envs": {
        "NVIDIA_VISIBLE_DEVICES": "GPU-3,GPU-1"
      },
      "devices": [
        {
          "container_path": "/dev/nvidia-uvm",
          "host_path": "/dev/nvidia-uvm",
          "permissions": "rw"
        },
        {
          "container_path": "/dev/nvidia1",
          "host_path": "/dev/nvidia1",
          "permissions": "rw"
        },
        {
          "container_path": "/dev/nvidia3",
          "host_path": "/dev/nvidia3",
          "permissions": "rw"
        },
        {
          "container_path": "/dev/nvidiactl",
          "host_path": "/dev/nvidiactl",
          "permissions": "rw"
        }
      ]
    }
    "#);
}

#[test]
fn refuses_with_the_reason() {
    let mut sick = entry(1);
    sick.verdict.state = State::Unhealthy;
    let offer = offer(vec![entry(0), sick]);
    let refusal = |names: &[&str]| grant(&offer, &ids(names)).unwrap_err().to_string();
    insta::assert_snapshot!(refusal(&[]), @"a request for nvidia.com/gpu names no device");
    insta::assert_snapshot!(refusal(&["GPU-0", "GPU-1", "GPU-2"]), @"3 of nvidia.com/gpu requested, but this node has only 2");
    insta::assert_snapshot!(refusal(&["GPU-0", "GPU-0"]), @"GPU-0 is requested twice in one container");
    insta::assert_snapshot!(refusal(&["GPU-9"]), @"GPU-9 is not a device of nvidia.com/gpu on this node");
    assert!(refusal(&["GPU-1"]).starts_with("GPU-1 is unhealthy"));
}

#[test]
fn an_unknown_state_is_no_reason_to_refuse() {
    let mut unsure = entry(0);
    unsure.verdict = Verdict {
        state: State::Unknown,
        causes: Vec::new(),
    };
    assert!(grant(&offer(vec![unsure]), &ids(&["GPU-0"])).is_ok());
}

proptest! {
    #[test]
    fn hands_over_the_nodes_of_exactly_the_granted_devices(
        total in 1u32..9,
        picks in prop::collection::btree_set(0u32..8, 1..8),
    ) {
        let picks: Vec<u32> = picks.into_iter().filter(|p| *p < total).collect();
        prop_assume!(!picks.is_empty());
        let offer = offer((0..total).map(entry).collect());
        let names: Vec<String> = picks.iter().map(|p| format!("GPU-{p}")).collect();
        let edits = grant(&offer, &names).unwrap();
        for n in 0..total {
            let given = edits.devices.iter().any(|d| d.host_path == format!("/dev/nvidia{n}"));
            prop_assert_eq!(given, picks.contains(&n));
        }
        prop_assert!(edits.devices.is_sorted());
    }
}
