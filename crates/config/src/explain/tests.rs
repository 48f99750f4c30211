//! Effective config: its output, which is a valid config itself.

mod random;

use std::collections::BTreeSet;

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::json;

use self::random::{Dice, Maker, remove};
use super::*;
use crate::{
    BackendOverrides, NvidiaOverrides, Overrides, ValueOrigin, file::tests::EVERY_KEY, parse_native,
};

const FILE: &str = "\
probe: {period: 3s}
backends: {nvidia: {xids: {ignore: [13, 31]}}}
exclude: [{display: true}, {pci: '0000:3b:00.0', minMemory: 40Gi}]
handover: {lists: [cdi-cri], nvidia: {gds: true, capabilities: 'compute,utility'}}
pools:
  - name: shared
    select: {model: NVIDIA A100*}
    resource: nvidia.com/gpu.shared
    limit: 2
    sharing: {replicas: 4}
    placement: {weights: {link: 2}}
  - {name: 'true', resource: nvidia.com/gpu, handover: {nvidia: {gds: false}}}
";

fn explained(text: &str) -> Resolved {
    let overrides = Overrides {
        kubelet_dir: Some("/kubelet".into()),
        backends: BackendOverrides {
            nvidia: NvidiaOverrides {
                driver_path: Some("/driver".into()),
                ..NvidiaOverrides::default()
            },
        },
        ..Overrides::default()
    };
    let from = |flag: &str| match flag {
        "driver-path" => ValueOrigin::of_variable("OSTLER_DRIVER_PATH"),
        flag => ValueOrigin::of_flag(flag),
    };
    let mut resolved = parse_native("ostler.yaml", text).unwrap();
    resolved.lay_over(overrides, &from).unwrap();
    resolved
}

#[test]
fn every_value_is_shown_with_where_it_came_from() {
    let rows = explained(FILE).list_values();
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("{} = {} ({})", row.key, row.show_value(), row.origin))
        .collect();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn the_effective_config_is_a_config_that_says_the_same() {
    for text in ["", FILE, EVERY_KEY] {
        let resolved = parse_native("ostler.yaml", text).unwrap();
        let yaml = resolved.to_yaml();
        let again =
            parse_native("again.yaml", &yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
        assert_eq!(again.config, resolved.config, "{yaml}");
    }
}

/// Removes every invalid value from a config, until it is valid.
fn mended(mut value: Value) -> Resolved {
    loop {
        match parse_native("random.yaml", &value.to_string()) {
            Ok(resolved) => return resolved,
            Err(error) => {
                let errors = error.problems().iter().rev();
                let errors = errors.filter(|problem| problem.is_error());
                let removed = errors.filter(|error| remove(&mut value, &error.key));
                assert_ne!(removed.count(), 0, "{error}");
            }
        }
    }
}

fn rolls() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 0..800)
}

#[test]
fn so_is_that_of_any_config() {
    let schema = crate::schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    proptest!(|(rolls in rolls())| {
        let resolved = mended(Maker::new(&schema, Dice::new(rolls)).config());
        let yaml = resolved.to_yaml();
        let again = parse_native("again.yaml", &yaml);
        let again = again.unwrap_or_else(|error| panic!("{error}\n{yaml}"));
        prop_assert_eq!(&again.config, &resolved.config, "{}", yaml);
        let value = resolved.config.to_value();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        prop_assert_eq!(errors, Vec::<String>::new());
    });
}

/// Checks the generator: an option that no random config sets is not tested by them.
#[test]
fn random_configs_say_every_option() {
    let schema = crate::schema();
    let mut runner = TestRunner::deterministic();
    let mut missing: BTreeSet<String> = explained(EVERY_KEY)
        .list_values()
        .iter()
        .map(general)
        .collect();
    for _ in 0..500 {
        let rolls = rolls().new_tree(&mut runner).unwrap().current();
        let rows = mended(Maker::new(&schema, Dice::new(rolls)).config()).list_values();
        for row in rows.iter().filter(|row| row.origin != ValueOrigin::Default) {
            missing.remove(&general(row));
        }
    }
    assert_eq!(missing, BTreeSet::new());
}

/// Returns the key of a row without the number of its pool, and without names that the user
/// chooses.
fn general(row: &ConfigRow) -> String {
    let key: String = row.key.split(['[', ']']).step_by(2).collect();
    let key = match key
        .strip_prefix("backends.")
        .and_then(|key| key.split_once('.'))
    {
        Some((name, key)) if name != "nvidia" => format!("backends.NAME.{key}"),
        _ => key,
    };
    let free = [
        "backends.NAME.settings",
        "handover.env",
        "pools.handover.env",
        "backends.nvidia.xids.actions",
        "health.weights.causes",
        "health.weights.conditions",
    ];
    let free = free.into_iter().find(|free| key.starts_with(free));
    free.map_or(key.clone(), str::to_owned)
}

#[test]
fn as_yaml_it_carries_comments() {
    insta::assert_snapshot!(explained(FILE).to_yaml());
}

#[test]
fn odd_texts_survive_being_shown() {
    assert_eq!(inline(&json!("")), "\"\"");
    for text in [
        "a b",
        "a: b",
        "# a",
        "~",
        "1",
        "true",
        "é",
        "a\"b\\c",
        "\u{85}\u{2028}",
        "😀",
        "-a",
        "*a",
    ] {
        let shown = inline(&json!(text));
        let yaml = format!("handover: {{nvidia: {{capabilities: {shown}}}}}");
        let read = parse_native("x", &yaml).unwrap_or_else(|error| panic!("{error}"));
        let capabilities = read.config.handover.nvidia.capabilities;
        assert_eq!(capabilities.as_deref(), Some(text), "{shown}");
    }
}
