use std::sync::Arc;

use model::{Entry, Kind, Link, Snapshot, State, Verdict};
use proptest::prelude::*;

use super::*;

/// The NVLink lanes of a DGX-1 with V100s, each pair once.
const VOLTA: [(usize, usize, u32); 16] = [
    (0, 1, 1),
    (0, 2, 1),
    (0, 3, 2),
    (0, 4, 2),
    (1, 2, 2),
    (1, 3, 1),
    (1, 5, 2),
    (2, 3, 2),
    (2, 6, 1),
    (3, 7, 1),
    (4, 5, 1),
    (4, 6, 1),
    (4, 7, 2),
    (5, 6, 2),
    (5, 7, 1),
    (6, 7, 2),
];

fn device(n: usize) -> Device {
    Device {
        id: format!("GPU-{n}").as_str().into(),
        vendor: "nvidia".to_owned(),
        kind: Kind::Card { partitioned: false },
        model: "V100".to_owned(),
        index: None,
        pci: None,
        numa: None,
        memory_bytes: None,
        compute_capability: None,
        nodes: Vec::new(),
        links: Vec::new(),
        failures: Vec::new(),
    }
}

fn offer(devices: impl IntoIterator<Item = (Device, State)>) -> Arc<Offer> {
    let entry = |(device, state)| Entry {
        device,
        verdict: Verdict {
            state,
            causes: Vec::new(),
        },
        telemetry: None,
    };
    let snapshot = Snapshot {
        devices: devices.into_iter().map(entry).collect(),
        ..Snapshot::empty(jiff::Timestamp::UNIX_EPOCH)
    };
    Arc::clone(&pool::offers(&Arc::new(snapshot))[0])
}

fn volta() -> Arc<Offer> {
    let ancestor = |a: usize, b: usize| match (a / 2 == b / 2, a / 4 == b / 4) {
        (true, _) => Ancestor::Switch,
        (_, true) => Ancestor::HostBridge,
        _ => Ancestor::System,
    };
    offer((0..8).map(|a| {
        let mut gpu = device(a);
        gpu.links = (0..8)
            .filter(|b| *b != a)
            .map(|b| Link {
                peer: format!("GPU-{b}").as_str().into(),
                ancestor: Some(ancestor(a, b)),
                lanes: VOLTA
                    .iter()
                    .find(|(x, y, _)| (*x, *y) == (a.min(b), a.max(b)))
                    .map_or(0, |(_, _, lanes)| *lanes),
                fabric: false,
            })
            .collect();
        (gpu, State::Healthy)
    }))
}

fn ids(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|n| format!("GPU-{n}")).collect()
}

#[rstest::rstest]
#[case(&[0, 2, 4, 5], &[], 2, &[0, 4])]
#[case(&[0, 4, 5, 6], &[], 2, &[5, 6])]
#[case(&[0, 3, 1], &[], 2, &[0, 3])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[4], 1, &[4])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[4], 2, &[4, 7])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 2, 4, 6], 4, &[0, 2, 4, 6])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7], &[], 8, &[0, 1, 2, 3, 4, 5, 6, 7])]
#[case(&[3], &[], 0, &[])]
fn keeps_close_cards_together(
    #[case] available: &[usize],
    #[case] required: &[usize],
    #[case] size: usize,
    #[case] expected: &[usize],
) {
    let chosen = prefer(&volta(), &ids(available), &ids(required), size).unwrap();
    let chosen: Vec<&str> = chosen.iter().map(UnitId::as_str).collect();
    assert_eq!(chosen, ids(expected));
}

#[test]
fn refuses_only_what_cannot_be_met_and_says_why() {
    let refusal = |available: &[usize], required: &[usize], size| {
        prefer(&volta(), &ids(available), &ids(required), size)
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(refusal(&[0, 1], &[], 3), @"3 of nvidia.com/gpu requested, but only 2 of them are available");
    insta::assert_snapshot!(refusal(&[0, 1], &[0, 1], 1), @"1 of nvidia.com/gpu requested, but 2 ids must be included");
    insta::assert_snapshot!(refusal(&[0, 1], &[2], 1), @"GPU-2 must be included and is not among the available nvidia.com/gpu");
}

proptest! {
    #[test]
    fn meets_every_request_that_can_be_met(
        states in prop::collection::vec(prop::sample::select(vec![State::Healthy, State::Unhealthy, State::Unknown]), 1..12),
        listed in prop::collection::btree_set(0usize..16, 1..16),
        must in prop::collection::btree_set(0usize..16, 0..4),
        size in 0usize..16,
    ) {
        let offer = offer(states.iter().enumerate().map(|(n, state)| (device(n), *state)));
        let available: Vec<usize> = listed.iter().copied().collect();
        let required: Vec<usize> = must.intersection(&listed).copied().collect();
        prop_assume!(required.len() <= size && size <= available.len());

        let chosen = prefer(&offer, &ids(&available), &ids(&required), size).unwrap();
        let set: BTreeSet<&str> = chosen.iter().map(UnitId::as_str).collect();
        prop_assert_eq!(set.len(), size);
        prop_assert!(ids(&required).iter().all(|id| set.contains(id.as_str())));
        let names = ids(&available);
        prop_assert!(set.iter().all(|id| names.iter().any(|name| name == id)));

        let good = |n: &usize| states.get(*n).is_some_and(|s| *s != State::Unhealthy);
        let healthy_left = available.iter().filter(|n| good(n) && !required.contains(n)).count();
        let bad_chosen = set.iter().filter(|id| {
            let n: usize = id.trim_start_matches("GPU-").parse().unwrap();
            !good(&n) && !required.contains(&n)
        }).count();
        prop_assert!(bad_chosen <= (size - required.len()).saturating_sub(healthy_left));
    }
}
