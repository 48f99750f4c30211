//! The effective config, and that it is a config itself.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Origin, Overrides, file::tests::EVERY_KEY, parse};

const FILE: &str = "\
probe: {period: 3s}
health: {ignoreXids: [13, 31]}
exclude: [{display: true}, {pci: '0000:3b:00.0', minMemory: 40Gi}]
handover: {lists: [cdi-cri], gds: true, capabilities: 'compute,utility'}
pools:
  - name: shared
    select: {model: NVIDIA A100*}
    resource: nvidia.com/gpu.shared
    limit: 2
    sharing: {replicas: 4}
    placement: {weights: {link: 2}}
  - {name: 'true', resource: nvidia.com/gpu, handover: {gds: false}}
";

fn explained(text: &str) -> Resolved {
    let overrides = Overrides {
        kubelet_dir: Some("/kubelet".into()),
        driver_path: Some("/driver".into()),
        ..Overrides::default()
    };
    let from = |flag: &str| match flag {
        "driver-path" => Origin::variable("OSTLER_DRIVER_PATH"),
        flag => Origin::flag(flag),
    };
    let mut resolved = parse("ostler.yaml", text).unwrap();
    resolved.lay_over(overrides, &from).unwrap();
    resolved
}

#[test]
fn every_value_is_shown_with_where_it_came_from() {
    let rows = explained(FILE).rows();
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("{} = {} ({})", row.key, row.text(), row.origin))
        .collect();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn the_effective_config_is_a_config_that_says_the_same() {
    for text in ["", FILE, EVERY_KEY] {
        let resolved = parse("ostler.yaml", text).unwrap();
        let yaml = resolved.to_yaml();
        let again = parse("again.yaml", &yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
        assert_eq!(again.config, resolved.config, "{yaml}");
    }
}

/// Leaves keys out.
fn thin(value: &mut Value, keep: &mut dyn Iterator<Item = bool>) {
    match value {
        Value::Object(map) => map.retain(|_, value| {
            thin(value, keep);
            keep.next().unwrap_or(true)
        }),
        Value::Array(list) => list.iter_mut().for_each(|value| thin(value, keep)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn so_is_that_of_any_part_of_a_config(keep in prop::collection::vec(prop::bool::weighted(0.8), 200)) {
        let mut value = explained(EVERY_KEY).config.to_value();
        thin(&mut value, &mut keep.into_iter());
        if let Ok(resolved) = parse("part.yaml", &value.to_string()) {
            let yaml = resolved.to_yaml();
            let again = parse("again.yaml", &yaml);
            let again = again.unwrap_or_else(|error| panic!("{error}\n{yaml}"));
            prop_assert_eq!(again.config, resolved.config);
        }
    }
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
        let yaml = format!("handover: {{capabilities: {shown}}}");
        let read = parse("x", &yaml).unwrap_or_else(|error| panic!("{error}"));
        let capabilities = read.config.handover.capabilities;
        assert_eq!(capabilities.as_deref(), Some(text), "{shown}");
    }
}
