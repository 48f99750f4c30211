//! What the plugin must offer, on layouts of one machine.

use super::*;
use rstest::rstest;
use sim::NodeProfile;

/// A DGX A100 whose cards are cut like this, over and over: `1g.5gb 1g.5gb | off` is two devices on
/// one card and none on the next, whose MIG mode is off.
fn cut(layout: &str) -> NodeState {
    let mut profile = NodeProfile::find_profile("dgx-a100").unwrap();
    let names = |card: &str| card.split_whitespace().map(str::to_owned).collect();
    let cards = layout.split('|').map(str::trim);
    let cards = cards.map(|card| (card != "off").then(|| names(card)));
    for (card, mig) in profile.gpus.iter_mut().zip(cards.cycle()) {
        card.mig = mig;
    }
    profile.to_state().unwrap()
}

fn counts(expected: &Expected) -> Vec<(&str, usize)> {
    match expected {
        Expected::Offers(offers) => offers
            .iter()
            .map(|(name, ids)| (name.as_str(), ids.len()))
            .collect(),
        Expected::Dies(why) => vec![(why, 0)],
    }
}

#[rstest]
#[case(Strategy::None, "off", &[("nvidia.com/gpu", 8)])]
#[case(Strategy::Single, "off", &[("nvidia.com/gpu", 8)])]
#[case(Strategy::Mixed, "off", &[("nvidia.com/gpu", 8)])]
#[case(Strategy::None, "3g.20gb 3g.20gb", &[("nvidia.com/gpu", 8)])]
#[case(Strategy::Single, "3g.20gb 3g.20gb", &[("nvidia.com/gpu", 16)])]
#[case(Strategy::Mixed, "3g.20gb 3g.20gb", &[("nvidia.com/mig-3g.20gb", 16)])]
#[case(Strategy::Single, "3g.20gb 1g.5gb", &[("more than one MIG device type present on node", 0)])]
#[case(Strategy::Single, "7g.40gb | off", &[("must be configured with the same migEnabled value", 0)])]
#[case(Strategy::Single, "7g.40gb |", &[("has no MIG devices configured", 0)])]
#[case(Strategy::Mixed, "7g.40gb |", &[("nvidia.com/mig-7g.40gb", 4)])]
#[case(Strategy::Mixed, "1g.5gb+me | off", &[("nvidia.com/gpu", 4), ("nvidia.com/mig-1g.5gb", 4)])]
#[case(Strategy::Mixed, "1c.3g.20gb", &[("nvidia.com/mig-3g.20gb", 8)])]
fn offers_follow_strategy_and_layout(
    #[case] strategy: Strategy,
    #[case] layout: &str,
    #[case] wanted: &[(&str, usize)],
) {
    let expected = plugin(&cut(layout), strategy);
    assert_eq!(counts(&expected), wanted);
}

#[rstest]
#[case(
    "gpu",
    "b",
    Some(0),
    "nvidia.com/gpu: a is missing|nvidia.com/gpu: b must not be there"
)]
#[case(
    "gpu",
    "a",
    Some(1),
    "nvidia.com/gpu: a is on NUMA node Some(1), not Some(0)"
)]
#[case(
    "gpus",
    "a",
    Some(0),
    "nvidia.com/gpu: 1 missing|nvidia.com/gpus must not be there"
)]
fn what_is_wrong_is_named(
    #[case] resource: &str,
    #[case] id: &str,
    #[case] numa: Option<u32>,
    #[case] problems: &str,
) {
    let offers = |resource: &str, id: &str, numa| -> Offers {
        let devices = [(id.to_owned(), numa)].into();
        [(format!("nvidia.com/{resource}"), devices)].into()
    };
    let expected = Expected::Offers(offers("gpu", "a", Some(0)));
    let seen = Seen::Offers(offers(resource, id, numa), Vec::new());
    let problems = problems.split('|').map(str::to_owned).collect();
    assert_eq!(judge(&expected, &seen), Verdict::Wrong(problems));
    let same = Seen::Offers(offers("gpu", "a", Some(0)), Vec::new());
    assert!(matches!(judge(&expected, &same), Verdict::Well(_)));
}

#[test]
fn an_end_must_have_its_reason() {
    let expected = Expected::Dies("more than one");
    let dies = |words: &str| judge(&expected, &Seen::Dies(words.to_owned()));
    assert!(matches!(
        dies("there is more than one type"),
        Verdict::Well(_)
    ));
    assert!(matches!(dies("out of memory"), Verdict::Wrong(_)));
}

#[test]
fn a_partition_is_where_its_card_is() {
    let state = cut("7g.40gb");
    let Expected::Offers(offers) = plugin(&state, Strategy::Mixed) else {
        panic!("it must not die")
    };
    let gpu = &state.gpus[2];
    let numa = offers["nvidia.com/mig-7g.40gb"][&gpu.migs[0].uuid];
    assert!(numa.is_some());
    assert_eq!(numa, gpu.numa);
}
