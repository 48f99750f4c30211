//! Agreement of the protocol's page and schema in `docs/` with the types.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

use std::path::PathBuf;

use probe::protocol::{Command, Message, Scope};
use proptest::prelude::*;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

const SCHEMA: &str = "probe-protocol.schema.json";
const PAGES: [&str; 2] = ["probe-protocol.md", "probe-guide.md"];

fn docs(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

/// Generates the schema of a probe's lines. Its definitions include the agent's lines.
fn generated() -> Value {
    let mut generator: SchemaGenerator = SchemaSettings::draft2020_12().into_generator();
    let message = generator.subschema_for::<Message>();
    generator.subschema_for::<Command>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ostler probe protocol, version 2",
        "$ref": message.get("$ref").unwrap(),
        "$defs": generator.take_definitions(true),
    })
}

fn examples(kind: &str) -> Vec<String> {
    let page = PAGES.map(|page| fs_err::read_to_string(docs(page)).unwrap());
    let page = page.concat();
    let opening = format!("```json {kind}\n");
    let blocks = page.split(&opening).skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap().lines());
    lines.map(str::to_owned).collect()
}

#[test]
fn the_schema_in_docs_is_the_one_of_the_types() {
    let expected = serde_json::to_string_pretty(&generated()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs_err::write(docs(SCHEMA), &expected).unwrap();
    }
    let found = fs_err::read_to_string(docs(SCHEMA)).unwrap();
    assert!(
        found == expected,
        "docs/{SCHEMA} is out of date: run this test with UPDATE_SCHEMA=1"
    );
}

#[test]
fn every_message_on_the_page_is_valid_and_readable() {
    let validator = jsonschema::validator_for(&generated()).unwrap();
    let examples = examples("message");
    let mut seen = std::collections::BTreeSet::new();
    for line in examples {
        let value: Value = serde_json::from_str(&line).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}: {line}");
        let message = Message::parse_line(&line).unwrap().unwrap();
        let again: Value = serde_json::from_str(&message.line()).unwrap();
        assert!(validator.is_valid(&again), "{again}");
        seen.insert(value["type"].as_str().unwrap().to_owned());
    }
    let all = [
        "beat", "checkup", "count", "event", "hello", "report", "sample",
    ];
    assert!(seen.iter().eq(all.iter()), "{seen:?}");
}

#[test]
fn every_command_on_the_page_is_valid_and_readable() {
    let mut schema = generated();
    schema["$ref"] = json!("#/$defs/Command");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let commands: Vec<Command> = examples("command")
        .iter()
        .map(|line| {
            assert!(
                validator.is_valid(&serde_json::from_str(line).unwrap()),
                "{line}"
            );
            serde_json::from_str(line).unwrap()
        })
        .collect();
    let [
        Command::Configure(configure),
        Command::Refresh,
        Command::Stop,
    ] = &commands[..]
    else {
        panic!("{commands:?}");
    };
    assert!(matches!(configure.cards, Scope::Skip(_)));
    assert_eq!(configure.backend["loaderFallback"], true);
}

#[test]
fn the_schema_refuses_what_the_agent_cannot_read() {
    let validator = jsonschema::validator_for(&generated()).unwrap();
    for bad in [
        json!({"type": "report", "devices": 7}),
        json!({"type": "hello", "probe": "x"}),
        json!({"type": "event", "device": "GPU-1", "at": "2026-03-01T10:15:00Z", "code": 79}),
        json!({"type": "checkup", "device": "GPU-1"}),
        json!({"type": "checkup", "device": "GPU-1", "reading": {"values": {"working": {"ecc_uncorrected": -1}}}}),
        json!({"devices": []}),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
        assert!(Message::parse_line(bad.to_string()).is_err(), "{bad}");
    }
}

#[test]
fn an_unknown_value_costs_the_item_of_the_list_that_has_it() {
    let line = |work: &str| {
        let call = json!({"call": "x", "since": "2026-03-01T10:15:00Z", "work": work});
        json!({"type": "beat", "calls": [call]}).to_string()
    };
    let calls = |work| match Message::parse_line(line(work)).unwrap() {
        Some(Message::Beat(beat)) => beat.calls.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(calls("links"), 1);
    assert_eq!(calls("dance"), 0);
}

#[test]
fn a_device_that_is_not_understood_is_named_and_the_others_stand() {
    let device =
        |id: &str, role: &str| json!({"id": id, "nodes": [{"path": "/dev/x", "role": role}]});
    let bad = (0..5).map(|n| device(&n.to_string(), "sings"));
    let mut devices: Vec<_> = bad.collect();
    devices.insert(2, device("good", "own"));
    let line = json!({"type": "report", "devices": devices}).to_string();
    let Ok(Some(Message::Report(report))) = Message::parse_line(line) else {
        panic!("a report");
    };
    let ids: Vec<&str> = report.devices.iter().map(|d| d.id.as_str()).collect();
    assert_eq!(ids, ["good"]);
    assert_eq!(report.warnings.len(), 4, "{:?}", report.warnings);
    assert!(report.warnings[0].starts_with("device 0 of the report is not understood: "));
    assert!(
        report.warnings[0].contains("sings"),
        "{}",
        report.warnings[0]
    );
    assert_eq!(report.warnings[3], "2 more devices are not understood");
}

#[test]
fn a_newer_probe_is_understood() {
    let newer = r#"{"type":"beat","made":1,"mood":"good"}"#;
    assert!(matches!(
        Message::parse_line(newer),
        Ok(Some(Message::Beat(_)))
    ));
    assert!(matches!(
        Message::parse_line(r#"{"type":"song","verse":1}"#),
        Ok(None)
    ));
    let tier =
        r#"{"type":"checkup","device":"GPU-1","reading":{"values":{"astral":{"aura":"green"}}}}"#;
    assert!(matches!(Message::parse_line(tier), Ok(None)));
    let field =
        r#"{"type":"checkup","device":"GPU-1","reading":{"values":{"trend":{"aura":"green"}}}}"#;
    assert!(matches!(
        Message::parse_line(field),
        Ok(Some(Message::Checkup(_)))
    ));
}

proptest! {
    /// Parsing a check-up with random contents gives a message, nothing or an error, and never a
    /// panic.
    #[test]
    fn a_checkup_may_say_anything(
        tier in "working|performing|trend|deep|[a-z]{0,9}",
        fields in proptest::collection::btree_map(
            "ecc_uncorrected|recovery|throttled|link_errors|unsupported|failures|conditions|[a-z_]{0,12}",
            anything(),
            0..6,
        ),
    ) {
        let mut reading = json!(fields);
        reading["values"] = json!({tier: fields});
        let line = json!({"type": "checkup", "device": "GPU-1", "reading": reading});
        if let Ok(Some(message)) = Message::parse_line(line.to_string()) {
            prop_assert_eq!(Message::parse_line(message.line()).unwrap(), Some(message));
        }
    }

    /// A random value in place of one device does not affect the other devices.
    #[test]
    fn a_device_may_be_anything_and_the_others_stand(
        noise in anything(),
        key in "id|kind|nodes|index|pci|numa|attributes|links|shapes|failures",
        value in anything(),
    ) {
        let good = |id: &str| json!({"id": id});
        let mut odd = good("odd");
        odd[key] = value;
        let devices = [good("a"), noise, odd, good("b")];
        let line = json!({"type": "report", "devices": devices}).to_string();
        let Ok(Some(Message::Report(report))) = Message::parse_line(&line) else {
            panic!("{line} is a report");
        };
        let ids: Vec<&str> = report.devices.iter().map(|d| d.id.as_str()).collect();
        prop_assert!(ids.contains(&"a") && ids.contains(&"b"), "{:?}", ids);
        prop_assert!(report.devices.len() >= 2);
    }

    #[test]
    fn a_broken_checkup_line_is_no_panic(cut in 0_usize..200, byte: u8) {
        let whole = r#"{"type":"checkup","device":"GPU-1","reading":{"values":{"working":{"recovery":{"other":9}}},"conditions":[{"name":"x","state":"ok"}],"unsupported":["a"],"failures":[{"call":"c","code":"d"}]}}"#;
        let mut bytes = whole.as_bytes().to_vec();
        bytes.truncate(cut);
        bytes.push(byte);
        let _ = Message::parse_line(&bytes);
    }
}

/// Generates any JSON value, at most three levels deep.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("failed|other|[a-z]{0,4}", inner, 0..3)
                .prop_map(|map| json!(map)),
        ]
    })
}
