use config::Size;
use model::{Entry, Version, names};
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::sample::{card_entry, mig_entry};

#[rstest]
// A pattern matches the whole text.
#[case("*", "NVIDIA A100-SXM4-40GB", true)]
#[case("*", "", true)]
#[case("", "", true)]
#[case("", "A100", false)]
#[case("A100", "A100", true)]
#[case("A100", "NVIDIA A100", false)]
#[case("A100", "A100X", false)]
#[case("a100", "A100", false)]
#[case("*A100*", "NVIDIA A100-SXM4-40GB", true)]
#[case("NVIDIA*", "NVIDIA A100", true)]
#[case("NVIDIA*", "MY NVIDIA", false)]
#[case("*40GB", "NVIDIA A100-SXM4-40GB", true)]
#[case("*40GB", "NVIDIA A100-SXM4-40GB-X", false)]
#[case("NVIDIA*40GB", "NVIDIA A100-SXM4-40GB", true)]
#[case("NVIDIA*80GB", "NVIDIA A100-SXM4-40GB", false)]
#[case("a*b*c", "a-b-b-c", true)]
#[case("a*b*c", "a-c-b", false)]
#[case("a**c", "ac", true)]
#[case("ab*ba", "aba", false)]
#[case("*é*", "café!", true)]
// In MIG profiles only `*` has a special meaning.
#[case("1g.5gb", "1g.5gb", true)]
#[case("1g.5gb", "1g.5gb+me", false)]
#[case("1g.5gb", "1gx5gb", false)]
#[case("1g.5gb*", "1g.5gb+me", true)]
#[case("1g.10gb+me", "1g.10gb+me", true)]
#[case("1g.10gb+me", "1g.10gb+me.all", false)]
#[case("*+gfx", "1g.24gb+gfx", true)]
#[case("*-me", "2g.48gb-me", true)]
#[case("*g.5gb", "1c.1g.5gb", true)]
#[case("?g.5gb", "1g.5gb", false)]
#[case("[12]g.5gb", "1g.5gb", false)]
fn patterns_mean_the_whole_text(#[case] pattern: &str, #[case] text: &str, #[case] fits: bool) {
    assert_eq!(like(pattern, text), fits);
}

/// Selector with one condition.
fn one(what: &str, pattern: &str) -> Selector {
    let list = vec![pattern.to_owned()];
    let size = || pattern.parse::<Size>().ok();
    let none = Selector::default;
    match what {
        "vendor" => Selector {
            vendor: list,
            ..none()
        },
        "model" => Selector {
            model: list,
            ..none()
        },
        "uuid" => Selector {
            uuid: list,
            ..none()
        },
        "index" => Selector {
            index: list,
            ..none()
        },
        "pci" => Selector {
            pci: list,
            ..none()
        },
        "profile" => Selector {
            profile: list,
            ..none()
        },
        "min" => Selector {
            min_memory: size(),
            ..none()
        },
        "max" => Selector {
            max_memory: size(),
            ..none()
        },
        _ => panic!("{what}"),
    }
}

#[rstest]
#[case("vendor", "nvidia", true, true)]
#[case("vendor", "NVIDIA", false, false)]
#[case("model", "NVIDIA A100-*", true, true)]
#[case("model", "nvidia a100-*", false, false)]
#[case("uuid", "GPU-3", true, true)]
#[case("uuid", "MIG-3-1", false, true)]
#[case("uuid", "GPU-4", false, false)]
#[case("uuid", "MIG-*", false, true)]
#[case("index", "3", true, true)]
#[case("index", "3:1", false, true)]
#[case("index", "3:0", false, false)]
#[case("index", "3:*", false, true)]
#[case("index", "*", true, true)]
#[case("index", "1", false, false)]
#[case("index", "33", false, false)]
#[case("pci", "0000:3e:00.0", true, true)]
#[case("pci", "0000:3E:00.0", true, true)]
#[case("pci", "00000000:3E:00.0", true, true)]
#[case("pci", "00000000:3e:00.0", true, true)]
#[case("pci", "0000:3e:*", true, true)]
#[case("pci", "00000000:3E:*", true, true)]
#[case("pci", "*:3e:00.*", true, true)]
#[case("pci", "0001:3e:00.0", false, false)]
#[case("pci", "3e:00.0", false, false)]
#[case("profile", "1g.*", false, true)]
#[case("profile", "*", false, true)]
#[case("profile", "1g.5gb", false, true)]
#[case("profile", "2g.*", false, false)]
#[case("min", "39Gi", true, false)]
#[case("min", "40Gi", false, false)]
#[case("min", "4864Mi", true, true)]
#[case("max", "4864Mi", false, true)]
#[case("max", "4863Mi", false, false)]
#[case("max", "40Gi", true, true)]
fn each_fact_is_matched(
    #[case] what: &str,
    #[case] pattern: &str,
    #[case] on_card: bool,
    #[case] on_partition: bool,
) {
    let selector = one(what, pattern);
    let meets = |entry: Entry| matches_selector(&selector, &entry.device);
    assert_eq!(meets(card_entry(3)), on_card, "the card");
    assert_eq!(
        meets(mig_entry(3, 1, "1g.5gb")),
        on_partition,
        "the partition"
    );
}

#[rstest]
#[case(KindName::Card, true, false)]
#[case(KindName::Partition, false, true)]
fn kinds_are_told_apart(#[case] kind: KindName, #[case] on_card: bool, #[case] on_partition: bool) {
    let selector = Selector {
        kind: Some(kind),
        ..Selector::default()
    };
    assert_eq!(matches_selector(&selector, &card_entry(0).device), on_card);
    assert_eq!(
        matches_selector(&selector, &mig_entry(0, 0, "1g.5gb").device),
        on_partition
    );
}

#[test]
fn what_is_said_must_hold_together_and_one_pattern_of_a_list_is_enough() {
    let selector = Selector {
        index: vec!["7".to_owned(), "3".to_owned()],
        ..one("model", "*A100*")
    };
    assert!(matches_selector(&selector, &card_entry(3).device));
    assert!(!matches_selector(&selector, &card_entry(2).device));
    let mut other = Device::clone(&card_entry(3).device);
    other.attributes.insert(names::PRODUCT, "Tesla T4".into());
    assert!(!matches_selector(&selector, &other));
    assert!(matches_selector(&Selector::default(), &other));
}

#[test]
fn what_is_not_known_matches_no_selector_that_asks_for_it() {
    let bare = Device::card_of("nvidia", "GPU-x", "A100");
    for (what, pattern) in [
        ("index", "*"),
        ("pci", "*"),
        ("profile", "*"),
        ("min", "0"),
        ("max", "99Ti"),
    ] {
        assert!(!matches_selector(&one(what, pattern), &bare), "{what}");
    }
    for display in [true, false] {
        let selector = Selector {
            display: Some(display),
            ..Selector::default()
        };
        assert!(!matches_selector(&selector, &bare));
        let known = |display: bool| bare.clone().with_attribute(names::DISPLAY, display);
        assert!(matches_selector(&selector, &known(display)));
        assert!(!matches_selector(&selector, &known(!display)));
    }
}

fn of_attribute(name: &str, pattern: &str) -> Selector {
    Selector {
        attributes: [(name.parse().unwrap(), vec![pattern.to_owned()])].into(),
        ..Selector::default()
    }
}

#[rstest]
#[case("architecture", "hopper", true)]
#[case("architecture", "Hop*", true)]
#[case("architecture", "ampere", false)]
#[case("cudaComputeCapability", "9.0", true)]
#[case("cudaComputeCapability", "9.0.0", true)]
#[case("cudaComputeCapability", "8.*", false)]
#[case("display", "false", true)]
#[case("gpuInstance", "3", true)]
#[case("example.com/rack", "*", false)]
fn every_attribute_can_be_asked_for(
    #[case] name: &str,
    #[case] pattern: &str,
    #[case] expected: bool,
) {
    let device = Device::card_of("nvidia", "GPU-0", "H100")
        .with_attribute(names::ARCHITECTURE, "Hopper")
        .with_attribute(
            nvidia_rules::names::COMPUTE_CAPABILITY,
            Version::of_two(9, 0),
        )
        .with_attribute(names::DISPLAY, false)
        .with_attribute(nvidia_rules::names::GPU_INSTANCE, 3_u32);
    assert_eq!(
        matches_selector(&of_attribute(name, pattern), &device),
        expected
    );
}

#[test]
fn an_attribute_that_is_not_known_keeps_a_device_back() {
    let selector = of_attribute("architecture", "kepler");
    let bare = Device::card_of("nvidia", "GPU-0", "K80");
    assert!(!matches_selector(&selector, &bare));
    let reason = first_reason(std::slice::from_ref(&selector), &bare);
    insta::assert_snapshot!(reason.unwrap(), @"architecture kepler; its architecture is not known");
    let known = bare.clone().with_attribute(names::ARCHITECTURE, "Kepler");
    let reason = first_reason(std::slice::from_ref(&selector), &known);
    insta::assert_snapshot!(reason.unwrap(), @"architecture kepler");
    let other = bare.with_attribute(names::ARCHITECTURE, "Hopper");
    assert_eq!(first_reason(&[selector], &other), None);
}

#[test]
fn a_selector_is_told_in_words() {
    let selector = Selector {
        index: vec!["2".to_owned(), "3".to_owned()],
        min_memory: "40Gi".parse().ok(),
        kind: Some(KindName::Card),
        display: Some(false),
        ..one("model", "*A100*")
    };
    insta::assert_snapshot!(describe_selector(&selector), @"model *A100*, index 2 or 3, minMemory 40Gi, kind card, display false");
    insta::assert_snapshot!(describe_selector(&Selector::default()), @"every device");
}

/// Reference for the match: one character at a time.
fn slow(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|at| slow(rest, &text[at..])),
        [letter, rest @ ..] => text.first() == Some(letter) && slow(rest, &text[1..]),
    }
}

proptest! {
    #[test]
    fn patterns_agree_with_the_rule(pattern in "[ab*é]{0,8}", text in "[abé]{0,10}") {
        let letters = |s: &str| s.chars().collect::<Vec<_>>();
        prop_assert_eq!(like(&pattern, &text), slow(&letters(&pattern), &letters(&text)));
    }
}

/// A pool for every model keeps a card whose name could not be read once.
#[rstest]
#[case("model", "*", true, true)]
#[case("model", "NVIDIA*", false, false)]
#[case("profile", "*", false, true)]
#[case("profile", "1g.*", false, false)]
fn a_fact_that_could_not_be_read_matches_the_star_alone(
    #[case] what: &str,
    #[case] pattern: &str,
    #[case] is_card: bool,
    #[case] is_part: bool,
) {
    let card = Device::bare_card("nvidia", "GPU-3");
    let part = Device {
        kind: Kind::Partition {
            parent: "GPU-3".into(),
            profile: None,
        },
        ..Device::bare_card("nvidia", "MIG-3-1")
    };
    let selector = one(what, pattern);
    assert_eq!(matches_selector(&selector, &card), is_card);
    assert_eq!(matches_selector(&selector, &part), is_part);
}
