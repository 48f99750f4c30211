use super::*;
use config::Method;
use nvidia_rules::sample::*;
use rstest::rstest;

/// Returns the devices of `offer` that are granted for these ids.
fn granted(offer: &Offer, names: &[&str]) -> Vec<String> {
    let devices = check_ids(offer, &to_ids(names)).unwrap();
    devices.iter().map(|device| device.id.to_string()).collect()
}

fn refusal(offer: &Offer, names: &[&str]) -> String {
    check_ids(offer, &to_ids(names)).unwrap_err().to_string()
}

/// Four cards with `replicas` units each, and with the rule `onePerRequest` if set.
fn shares(replicas: u32, one_per_request: bool) -> Offer {
    let mut pool = match replicas {
        1 => handover_pool(|_| ()),
        _ => sharing_pool(Method::TimeSlicing, replicas),
    };
    pool.sharing.one_per_request = one_per_request;
    four_cards(pool)
}

/// Cases that NVIDIA's plugin checks: known or unknown × shared or whole × one or several × with or
/// without the rule.
#[rstest]
#[case::whole_unknown(shares(1, false), &["GPU-x"], Some("GPU-x"))]
#[case::whole_one(shares(1, false), &["GPU-a"], None)]
#[case::whole_several(shares(1, false), &["GPU-a", "GPU-b"], None)]
#[case::whole_several_one_unknown(shares(1, false), &["GPU-a", "GPU-x"], Some("GPU-x"))]
#[case::whole_several_with_the_rule(shares(1, true), &["GPU-a", "GPU-b"], None)]
#[case::share_unknown(shares(2, false), &["GPU-a::7"], Some("GPU-a::7"))]
#[case::share_by_the_name_of_its_card(shares(2, false), &["GPU-a"], Some("GPU-a"))]
#[case::share_one(shares(2, false), &["GPU-a::1"], None)]
#[case::share_one_with_the_rule(shares(2, true), &["GPU-a::1"], None)]
#[case::share_several(shares(2, false), &["GPU-a::0", "GPU-a::1"], None)]
#[case::share_several_of_two_cards(shares(2, false), &["GPU-a::0", "GPU-b::1"], None)]
#[case::share_several_with_the_rule(shares(2, true), &["GPU-a::0", "GPU-a::1"], Some("maximum is 1"))]
#[case::share_of_two_cards_with_the_rule(shares(2, true), &["GPU-a::0", "GPU-b::1"], Some("maximum is 1"))]
#[case::share_unknown_before_the_rule(shares(2, true), &["GPU-a::0", "GPU-a::9"], Some("GPU-a::9"))]
fn a_request_is_validated(
    #[case] offer: Offer,
    #[case] names: &[&str],
    #[case] refused: Option<&str>,
) {
    match (check_ids(&offer, &to_ids(names)), refused) {
        (Ok(_), None) => {}
        (Err(error), Some(part)) => {
            let error = error.to_string();
            assert!(error.contains(part), "{error}");
            assert!(error.contains("nvidia.com/gpu"), "{error}");
        }
        (answer, _) => panic!("{answer:?}"),
    }
}

#[test]
fn refusals_name_resource_ids_maximum_and_remedy() {
    let offer = four_cards(handover_pool(|_| ()));
    insta::assert_snapshot!(refusal(&offer, &[]), @"a request for nvidia.com/gpu names no device; request 1 or more, or none of it");
    insta::assert_snapshot!(refusal(&offer, &["1", "2", "3", "4", "5"]), @"5 of nvidia.com/gpu requested, but this node has only 4; request at most 4");
    insta::assert_snapshot!(refusal(&offer, &["GPU-a", "GPU-b", "GPU-a"]), @"GPU-a of nvidia.com/gpu is requested twice in one container; name each id once");
    insta::assert_snapshot!(refusal(&offer, &["GPU-x", "GPU-a", "GPU-y"]), @"not a device of nvidia.com/gpu on this node: GPU-x, GPU-y; delete the pod, so that it is placed again with the devices that are there");
    insta::assert_snapshot!(refusal(&shares(2, true), &["GPU-a::0", "GPU-b::0"]), @"2 of nvidia.com/gpu requested for one container, but the maximum is 1, because the pool `shop` gives a container one share only (`onePerRequest`; in NVIDIA's config `failRequestsGreaterThanOne`): more shares are no more of the card; request 1");

    let mut sick = four_cards(handover_pool(|_| ()));
    sicken(&mut sick, "GPU-a", "XID 79 (GPU has fallen off the bus)");
    sicken(&mut sick, "GPU-c", "the driver says GPU_IS_LOST");
    sicken(&mut sick, "GPU-d", "");
    insta::assert_snapshot!(refusal(&sick, &["GPU-c", "GPU-d", "GPU-b", "GPU-a"]), @"unhealthy devices of nvidia.com/gpu: GPU-c (the driver says GPU_IS_LOST), GPU-d, GPU-a (XID 79 (GPU has fallen off the bus)); delete the pod, so that it is placed on healthy ones");
}

/// Six units: two MIG devices on each of the first three cards.
fn instances(distinct: Distinct) -> Offer {
    let mut pool = handover_pool(|_| ());
    pool.sharing.distinct = distinct;
    let devices = (0..6).map(|n| indexed_partition(n / 2, n % 2)).collect();
    offer_of_devices("nvidia.com/mig-1g.5gb", pool, devices)
}

#[rstest]
#[case::one(&["MIG-0-0"], true)]
#[case::two_cards(&["MIG-0-0", "MIG-1-0"], true)]
#[case::three_cards(&["MIG-2-1", "MIG-0-0", "MIG-1-0"], true)]
#[case::one_card(&["MIG-0-0", "MIG-0-1"], false)]
#[case::one_card_of_two(&["MIG-0-0", "MIG-1-0", "MIG-1-1"], false)]
fn with_distinct_instances_of_one_card_are_refused(#[case] names: &[&str], #[case] granted: bool) {
    let names = to_ids(names);
    assert_eq!(
        check_ids(&instances(Distinct::Require), &names).is_ok(),
        granted
    );
    assert!(check_ids(&instances(Distinct::Prefer), &names).is_ok());
    assert!(check_ids(&instances(Distinct::Off), &names).is_ok());
}

#[test]
fn with_distinct_shares_of_one_card_are_refused_with_the_rule() {
    let mut pool = sharing_pool(Method::TimeSlicing, 4);
    pool.sharing.distinct = Distinct::Require;
    let mut offer = four_cards(pool);
    assert_eq!(
        granted(&offer, &["GPU-b::3", "GPU-a::0"]),
        ["GPU-b", "GPU-a"]
    );
    // An unhealthy card is not counted.
    for n in 0..4 {
        sicken(&mut offer, &format!("GPU-d::{n}"), "XID 79");
    }
    insta::assert_snapshot!(refusal(&offer, &["GPU-b::3", "GPU-a::0", "GPU-b::1"]), @"GPU-b::3, GPU-b::1 of nvidia.com/gpu are all on the card GPU-b, but the pool `shop` requires a card of its own for each unit of a container (`distinct: require`); this node has 3 such cards: request no more than are free, or set `distinct: prefer`");
}

#[rstest]
#[case::in_the_order_of_the_request(1, &["GPU-c", "GPU-a", "GPU-d"], &["GPU-c", "GPU-a", "GPU-d"])]
#[case::shares_of_one_card(3, &["GPU-b::2", "GPU-b::0", "GPU-b::1"], &["GPU-b"])]
#[case::shares_of_two_cards(2, &["GPU-b::1", "GPU-a::0", "GPU-b::0", "GPU-a::1"], &["GPU-b", "GPU-a"])]
fn each_device_is_granted_once(
    #[case] replicas: u32,
    #[case] names: &[&str],
    #[case] devices: &[&str],
) {
    assert_eq!(granted(&shares(replicas, false), names), devices);
}

#[test]
fn a_wrong_request_is_told_before_a_sick_device() {
    let mut pool = sharing_pool(Method::TimeSlicing, 2);
    pool.sharing.distinct = Distinct::Require;
    let mut offer = four_cards(pool);
    sicken(&mut offer, "GPU-a::0", "XID 79");
    let error = check_ids(&offer, &to_ids(&["GPU-a::0", "GPU-a::1"])).unwrap_err();
    assert!(matches!(error, Error::NotDistinct { .. }), "{error}");
}

#[test]
fn a_unit_whose_device_left_the_snapshot_is_unknown() {
    let mut offer = four_cards(handover_pool(|_| ()));
    offer.units[0].device = "GPU-gone".into();
    let error = check_ids(&offer, &to_ids(&["GPU-a"])).unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
}

#[test]
fn an_error_stays_short_however_many_ids_are_wrong() {
    let offer = four_cards(sharing_pool(Method::TimeSlicing, 100));
    let names: Vec<String> = (0..400).map(|n| format!("GPU-{n}")).collect();
    let error = check_ids(&offer, &names).unwrap_err().to_string();
    assert!(error.contains("GPU-7 and 392 more"), "{error}");
    assert!(!error.contains("GPU-8"), "{error}");
}
