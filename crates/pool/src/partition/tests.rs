use jiff::Timestamp;
use model::{Cause, CauseKind, Device, DeviceId, Verdict};
use proptest::prelude::*;

use super::*;

fn entry(id: &str, kind: Kind) -> Entry {
    Entry {
        device: Device {
            id: id.into(),
            vendor: "nvidia".to_owned(),
            kind,
            model: "A100".to_owned(),
            index: None,
            pci: None,
            numa: Some(1),
            memory_bytes: None,
            compute_capability: None,
            nodes: Vec::new(),
            links: Vec::new(),
            failures: Vec::new(),
        },
        verdict: Verdict::default(),
        telemetry: None,
    }
}

fn card(id: &str, partitioned: bool) -> Entry {
    entry(id, Kind::Card { partitioned })
}

fn partition(id: &str, profile: &str) -> Entry {
    let kind = Kind::Partition {
        parent: DeviceId::new("GPU-p"),
        profile: profile.to_owned(),
        gpu_instance: 1,
        compute_instance: 0,
    };
    entry(id, kind)
}

fn of(devices: Vec<Entry>) -> Offers {
    let snapshot = Snapshot {
        devices,
        ..Snapshot::empty(Timestamp::UNIX_EPOCH)
    };
    offers(&Arc::new(snapshot))
}

/// `resource: id id` for each offer.
fn lines(offers: &Offers) -> Vec<String> {
    let line = |offer: &Arc<Offer>| {
        let ids: Vec<&str> = offer.units.iter().map(|unit| unit.id.as_str()).collect();
        format!("{}: {}", offer.resource, ids.join(" "))
    };
    offers.iter().map(line).collect()
}

#[test]
fn divides_cards_and_partitions_by_name_and_hides_partitioned_cards() {
    let offers = of(vec![
        card("GPU-a", false),
        card("GPU-b", false),
        card("GPU-p", true),
        partition("MIG-1", "1g.5gb"),
        partition("MIG-2", "1g.10gb+me"),
        partition("MIG-3", "1g.5gb"),
        partition("MIG-4", "1c.3g.20gb"),
    ]);
    assert_eq!(
        lines(&offers),
        [
            "nvidia.com/gpu: GPU-a GPU-b",
            "nvidia.com/mig-1c.3g.20gb: MIG-4",
            "nvidia.com/mig-1g.10gb.me: MIG-2",
            "nvidia.com/mig-1g.5gb: MIG-1 MIG-3",
        ]
    );
}

#[test]
fn a_profile_that_makes_no_resource_name_costs_only_that_device() {
    let offers = of(vec![card("GPU-a", false), partition("MIG-1", "?!")]);
    assert_eq!(lines(&offers), ["nvidia.com/gpu: GPU-a"]);
}

#[test]
fn an_unhealthy_device_stays_on_offer_with_its_reason() {
    let mut sick = card("GPU-a", false);
    sick.verdict = Verdict {
        state: State::Unhealthy,
        causes: vec![Cause {
            kind: CauseKind::Event,
            evidence: "XID 79".to_owned(),
            since: Timestamp::UNIX_EPOCH,
            ends_when: "reset".to_owned(),
        }],
    };
    let offers = of(vec![sick, card("GPU-b", false)]);
    assert_eq!(lines(&offers), ["nvidia.com/gpu: GPU-a GPU-b"]);
    assert_eq!(offers[0].healthy(), 1);
    let unit = offers[0].unit("GPU-a").unwrap();
    assert_eq!((unit.healthy, unit.reason.as_str()), (false, "XID 79"));
}

#[test]
fn what_is_not_known_is_not_taken_away() {
    let mut unsure = card("GPU-a", false);
    unsure.verdict.state = State::Unknown;
    assert_eq!(of(vec![unsure])[0].healthy(), 1);
}

proptest! {
    #[test]
    fn every_device_is_offered_once_or_not_at_all_and_lists_are_sorted(
        ids in prop::collection::btree_set("[A-Z]{1,4}", 0..20),
        kinds in prop::collection::vec(0u8..4, 20),
    ) {
        let devices = ids.iter().zip(kinds).map(|(id, kind)| match kind {
            0 => card(id, false),
            1 => card(id, true),
            2 => partition(id, "1g.5gb"),
            _ => partition(id, "2g.10gb"),
        });
        let offers = of(devices.collect());
        prop_assert!(offers.is_sorted_by(|a, b| a.resource < b.resource));
        let mut all = Vec::new();
        for offer in offers.iter() {
            prop_assert!(offer.units.is_sorted_by(|a, b| a.id < b.id));
            all.extend(offer.units.iter().map(|unit| unit.id.to_string()));
        }
        let count = all.len();
        all.sort();
        all.dedup();
        prop_assert_eq!(all.len(), count);
    }
}
