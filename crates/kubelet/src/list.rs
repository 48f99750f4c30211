//! Device list of `ListAndWatch`, made from an offer.

use kubelet_api::{
    HEALTHY, MESSAGE_LIMIT, UNHEALTHY,
    deviceplugin::{Device, ListAndWatchResponse, NumaNode, TopologyInfo},
};
use model::ResourceName;
use pool::{Offer, Unit};
use prost::Message;

// The kubelet sets no gRPC option for messages, so grpc-go's receive limit of 4 MiB holds
// (pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go, `dial`). It would end the stream, and all
// devices would be unhealthy. A part of a list would take devices away from running pods.
/// Error for a device list over the kubelet's message limit. Such a list is not sent at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the list of {units} units of {resource} has {bytes} bytes and the kubelet takes at most \
     {MESSAGE_LIMIT}: offer fewer, with fewer replicas or more resource names"
)]
pub struct ListTooLarge {
    resource: ResourceName,
    units: usize,
    bytes: usize,
}

/// Makes the complete list of an offer: sorted by id, each id once, unhealthy units included,
/// topology only if the NUMA node is known.
///
/// # Errors
/// The message would be larger than the kubelet accepts.
pub fn build_list(offer: &Offer) -> Result<ListAndWatchResponse, ListTooLarge> {
    // Unhealthy units stay listed: capacity is the sum of healthy and unhealthy devices, and a
    // device that is not listed is removed from both
    // (pkg/kubelet/cm/devicemanager/manager.go, `GetCapacity`).
    let mut devices: Vec<Device> = offer.units.iter().map(to_list_device).collect();
    devices.sort_by(|a, b| a.id.cmp(&b.id));
    devices.dedup_by(|later, first| {
        let same = later.id == first.id;
        if same && later.health == UNHEALTHY {
            UNHEALTHY.clone_into(&mut first.health);
        }
        same
    });
    let list = ListAndWatchResponse { devices };
    match list.encoded_len() {
        bytes if bytes > MESSAGE_LIMIT => Err(ListTooLarge {
            resource: offer.resource.clone(),
            units: offer.units.len(),
            bytes,
        }),
        _ => Ok(list),
    }
}

fn to_list_device(unit: &Unit) -> Device {
    // An unknown node is no topology at all. The kernel writes -1 for it, and the kubelet drops
    // nodes that it does not know.
    Device {
        id: unit.id.to_string(),
        health: if unit.healthy { HEALTHY } else { UNHEALTHY }.to_owned(),
        topology: unit.numa.map(|node| TopologyInfo {
            nodes: vec![NumaNode {
                id: i64::from(node),
            }],
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use jiff::Timestamp;
    use model::{DeviceId, Snapshot};
    use pool::UnitId;
    use proptest::prelude::*;

    use super::*;

    fn make_offer(units: Vec<Unit>) -> Offer {
        Offer {
            resource: "nvidia.com/gpu".parse().unwrap(),
            units,
            snapshot: Arc::new(Snapshot::empty_at(Timestamp::UNIX_EPOCH)),
            pool: Arc::new(config::Pool::of_all_devices("gpu", "nvidia.com/gpu")),
            lists: rules::resolve_lists(&config::Handover::default(), rules::CdiSupport::default()),
            vendors: rules::Vendors::default(),
        }
    }

    fn unit(id: impl Into<String>, healthy: bool, numa: Option<u32>) -> Unit {
        let id = id.into();
        Unit {
            device: DeviceId::new(id.as_str()),
            id: UnitId::new(id),
            healthy,
            reason: String::new(),
            numa,
        }
    }

    fn any_units() -> impl Strategy<Value = Vec<Unit>> {
        let unit = ("[a-c]{0,3}", any::<bool>(), any::<Option<u32>>())
            .prop_map(|(id, healthy, numa)| unit(id, healthy, numa));
        prop::collection::vec(unit, 0..40)
    }

    proptest! {
        #[test]
        fn any_offer_becomes_a_list_that_the_kubelet_can_use(units in any_units()) {
            let list = build_list(&make_offer(units.clone())).unwrap();
            let sent: Vec<&str> = list.devices.iter().map(|d| d.id.as_str()).collect();
            prop_assert!(sent.is_sorted_by(|a, b| a < b), "{:?}", sent);
            let mut healthy: BTreeMap<&str, bool> = BTreeMap::new();
            for unit in &units {
                *healthy.entry(unit.id.as_str()).or_insert(true) &= unit.healthy;
            }
            prop_assert_eq!(sent, healthy.keys().copied().collect::<Vec<_>>());
            for device in &list.devices {
                let expected = if healthy[device.id.as_str()] { HEALTHY } else { UNHEALTHY };
                prop_assert_eq!(&device.health, expected);
                let Some(topology) = &device.topology else { continue };
                prop_assert!(!topology.nodes.is_empty());
                prop_assert!(topology.nodes.iter().all(|node| node.id >= 0));
            }
        }
    }

    /// A zero takes no bytes in protobuf 3. So node 0 is an empty `NUMANode` message, and an unknown
    /// node is no message.
    #[test]
    fn node_0_is_on_the_wire_and_no_node_is_not() {
        let units = vec![unit("a", true, Some(0)), unit("b", true, None)];
        let bytes = build_list(&make_offer(units)).unwrap().encode_to_vec();
        let decoded = ListAndWatchResponse::decode(bytes.as_slice()).unwrap();
        let nodes = |at: usize| {
            let topology = decoded.devices[at].topology.as_ref();
            topology.map(|topology| {
                topology
                    .nodes
                    .iter()
                    .map(|node| node.id)
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!((nodes(0), nodes(1)), (Some(vec![0]), None));
        let (topology, one_empty_node) = (0x1a, [0x0a, 0x00]);
        let wire = [topology, 2, one_empty_node[0], one_empty_node[1]];
        assert!(bytes.windows(4).any(|part| part == wire), "{bytes:x?}");
    }

    #[test]
    fn takes_every_message_that_the_kubelet_takes_and_no_larger_one() {
        // Each device is 64 bytes of id with 4 of framing, and 9 of health.
        let units = |count: usize, last: usize| -> Vec<Unit> {
            let ids = (0..count).map(|n| format!("{n:064}"));
            let last = format!("z{}", "z".repeat(last));
            ids.chain([last]).map(|id| unit(id, true, None)).collect()
        };
        let count = 50_000;
        let room = MESSAGE_LIMIT
            - build_list(&make_offer(units(count, 127)))
                .unwrap()
                .encoded_len();
        // Lengths of this size need two or three bytes; find the exact fit by trying.
        let exact = (room..room + 140)
            .rev()
            .find(|last| build_list(&make_offer(units(count, *last))).is_ok())
            .unwrap();
        let fits = build_list(&make_offer(units(count, exact))).unwrap();
        assert_eq!(fits.encoded_len(), MESSAGE_LIMIT);
        let error = build_list(&make_offer(units(count, exact + 1)))
            .unwrap_err()
            .to_string();
        assert!(error.contains("4194305 bytes"), "{error}");
        assert!(error.contains("50001 units of nvidia.com/gpu"), "{error}");
    }
}
