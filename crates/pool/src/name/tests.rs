use std::collections::BTreeMap;

use model::names;
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::sample::{card_entry, mig_entry};

/// Product names as drivers report them, and the names made of them.
const MODELS: &str = include_str!("models.txt");

fn of(template: &str, device: &Device) -> Result<String, String> {
    let made = resource_name(&Template(template.to_owned()), device);
    made.map(|n| n.to_string()).map_err(|e| e.to_string())
}

#[test]
fn every_product_has_a_valid_name_of_its_own() {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for line in MODELS.lines() {
        let (model, expected) = line.split_once("  ").unwrap();
        let (model, expected) = (model.trim(), expected.trim());
        let device = Device::card_of("nvidia", "GPU-0", model);
        let made = of("nvidia.com/{model}", &device).unwrap();
        assert_eq!(made, format!("nvidia.com/{expected}"));
        of("nvidia.com/gpu-{model}", &device).unwrap();
        let other = seen.insert(made.clone(), model);
        assert_eq!(other, None, "{made} is the name of two products");
    }
    assert!(seen.len() >= 60, "{}", seen.len());
}

#[rstest]
#[case("1g.5gb", "1g.5gb")]
#[case("7g.80gb", "7g.80gb")]
#[case("1g.10gb+me", "1g.10gb.me")]
#[case("2g.12gb+me", "2g.12gb.me")]
#[case("1g.24gb-me", "1g.24gb-me")]
#[case("1g.24gb+gfx", "1g.24gb.gfx")]
#[case("4g.96gb+gfx", "4g.96gb.gfx")]
#[case("2g.24gb+me.all", "2g.24gb.me.all")]
#[case("1c.3g.20gb", "1c.3g.20gb")]
#[case("2c.4g.20gb", "2c.4g.20gb")]
#[case("1c.2g.12gb+me", "1c.2g.12gb.me")]
#[case("unknown-17", "unknown-17")]
fn every_form_of_a_mig_profile_has_a_name(#[case] profile: &str, #[case] expected: &str) {
    let made = of("nvidia.com/mig-{profile}", &mig_entry(0, 0, profile).device);
    assert_eq!(made, Ok(format!("nvidia.com/mig-{expected}")));
    let shared = of(
        "nvidia.com/mig-{profile}.shared",
        &mig_entry(0, 0, profile).device,
    );
    assert_eq!(shared, Ok(format!("nvidia.com/mig-{expected}.shared")));
}

#[rstest]
#[case("nvidia.com/gpu", "nvidia.com/gpu")]
#[case("nvidia.com/gpu.shared", "nvidia.com/gpu.shared")]
#[case("{vendor}.com/gpu", "nvidia.com/gpu")]
#[case("{vendor}.com/{model}", "nvidia.com/nvidia-a100-sxm4-40gb")]
#[case("nvidia.com/gpu-{memory}", "nvidia.com/gpu-40gb")]
#[case("nvidia.com/gpu-{index}", "nvidia.com/gpu-3")]
#[case("a.com/{vendor}-{memory}-{index}.x", "a.com/nvidia-40gb-3.x")]
fn places_are_filled_in(#[case] template: &str, #[case] expected: &str) {
    assert_eq!(of(template, &card_entry(3).device), Ok(expected.to_owned()));
}

#[test]
fn a_partition_fills_in_its_own_facts() {
    let part = mig_entry(3, 1, "1g.5gb").device;
    let made = of("a.com/{model}.{memory}.{index}", &part);
    assert_eq!(made, Ok("a.com/nvidia-a100-sxm4-40gb.5gb.3-1".to_owned()));
}

#[test]
fn what_makes_no_name_is_told_with_the_reason() {
    let why = |template: &str, device: &Device| of(template, device).unwrap_err();
    let whole = card_entry(0).device;
    insta::assert_snapshot!(why("nvidia.com/mig-{profile}", &whole), @"`nvidia.com/mig-{profile}` needs its partition profile, which it does not have or does not tell");
    insta::assert_snapshot!(why("nvidia.com/{profile}", &mig_entry(0, 0, None).device), @"`nvidia.com/{profile}` needs its partition profile, which it does not have or does not tell");
    insta::assert_snapshot!(why("nvidia.com/{product}", &whole), @"`nvidia.com/{product}` has the unknown place `{product}`; there are {profile}, {model}, {memory}, {vendor} and {index}");
    insta::assert_snapshot!(why("nvidia.com/{model", &whole), @"`nvidia.com/{model` is not an extended resource name: the part after the slash may hold letters, digits, `-`, `_` and `.`, and starts and ends with a letter or digit");
    insta::assert_snapshot!(why("gpu", &whole), @"`gpu` is not an extended resource name: it needs a domain, as in `example.com/name`");
    insta::assert_snapshot!(why("nvidia.com/{profile}", &mig_entry(0, 0, "1g/5gb").device), @"`nvidia.com/1g/5gb` is not an extended resource name: the part after the slash may hold letters, digits, `-`, `_` and `.`, and starts and ends with a letter or digit");
    insta::assert_snapshot!(why("kubernetes.io/{index}", &whole), @"`kubernetes.io/0` is not an extended resource name: the domain `kubernetes.io` is reserved");
    let bare = Device::card_of("nvidia", "GPU-x", "??");
    insta::assert_snapshot!(why("nvidia.com/{model}", &bare), @"`nvidia.com/{model}` needs its product name, which it does not have or does not tell");
    insta::assert_snapshot!(why("nvidia.com/{memory}", &bare), @"`nvidia.com/{memory}` needs its memory size, which it does not have or does not tell");
    insta::assert_snapshot!(why("nvidia.com/{index}", &bare), @"`nvidia.com/{index}` needs its index, which it does not have or does not tell");
}

#[test]
fn sixty_three_characters_are_a_name_and_one_more_is_not() {
    let of_length = |length| Device::card_of("nvidia", "GPU-0", &"x".repeat(length));
    assert!(of("nvidia.com/gpu-{model}", &of_length(59)).is_ok());
    let why = of("nvidia.com/gpu-{model}", &of_length(60)).unwrap_err();
    assert!(why.contains("longer than 63 characters"), "{why}");
}

#[rstest]
#[case(1, "1gb")]
#[case(16_106_127_360, "15gb")]
#[case(25_769_803_776, "24gb")]
#[case(85_520_809_984, "80gb")]
#[case(150_754_820_096, "141gb")]
fn memory_is_told_in_whole_gigabytes(#[case] bytes: u64, #[case] expected: &str) {
    let mut device = Device::clone(&card_entry(0).device);
    device.capacity.insert(names::MEMORY, bytes);
    assert_eq!(
        of("a.com/{memory}", &device),
        Ok(format!("a.com/{expected}"))
    );
    device.capacity.insert(names::MEMORY, 0);
    assert!(of("a.com/{memory}", &device).is_err());
}

proptest! {
    #[test]
    fn a_name_is_valid_or_refused(template in ".{0,40}", model in ".*", profile in ".*") {
        let mut device = Device::clone(&mig_entry(0, 0, profile.as_str()).device);
        device.attributes.insert(names::PRODUCT, model.into());
        for template in [template.as_str(), "a.com/{model}", "a.com/x{profile}"] {
            if let Ok(made) = resource_name(&Template(template.to_owned()), &device) {
                prop_assert_eq!(made.as_str().parse(), Ok(made.clone()));
            }
        }
    }

    #[test]
    fn a_slug_is_made_of_words(model in ".*") {
        let slug = slug(&model);
        prop_assert!(slug.split('-').all(|w| w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())));
        prop_assert!(!slug.starts_with('-') && !slug.ends_with('-') && !slug.contains("--"));
    }
}
