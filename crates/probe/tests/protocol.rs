//! The protocol's page and schema say what the types say.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

use std::path::PathBuf;

use probe::protocol::{Command, Message};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

const SCHEMA: &str = "probe-protocol.schema.json";
const PAGE: &str = "probe-protocol.md";

fn docs(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

/// The schema of a probe's lines, with that of the agent's among its definitions.
fn generated() -> Value {
    let mut generator: SchemaGenerator = SchemaSettings::draft2020_12().into_generator();
    let message = generator.subschema_for::<Message>();
    generator.subschema_for::<Command>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ostler probe protocol, version 1",
        "$ref": message.get("$ref").unwrap(),
        "$defs": generator.take_definitions(true),
    })
}

fn examples(kind: &str) -> Vec<String> {
    let page = fs_err::read_to_string(docs(PAGE)).unwrap();
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
        let message = Message::parse(&line).unwrap().unwrap();
        let again: Value = serde_json::from_str(&message.line()).unwrap();
        assert!(validator.is_valid(&again), "{again}");
        seen.insert(value["type"].as_str().unwrap().to_owned());
    }
    let all = ["beat", "event", "hello", "report", "sample"];
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
    assert_eq!(commands, [Command::Refresh, Command::Stop]);
}

#[test]
fn the_schema_refuses_what_the_agent_cannot_read() {
    let validator = jsonschema::validator_for(&generated()).unwrap();
    for bad in [
        json!({"type": "report", "devices": [{"id": 7}]}),
        json!({"type": "hello", "probe": "x"}),
        json!({"type": "event", "device": "GPU-1", "event": {"xid": "79"}}),
        json!({"devices": []}),
    ] {
        assert!(!validator.is_valid(&bad), "{bad}");
        assert!(Message::parse(&bad.to_string()).is_err(), "{bad}");
    }
}

#[test]
fn an_unknown_value_of_a_known_list_makes_the_line_nonsense() {
    let line = |work: &str| {
        let call = json!({"call": "x", "since": "2026-03-01T10:15:00Z", "work": work});
        json!({"type": "beat", "calls": [call]}).to_string()
    };
    assert!(Message::parse(&line("links")).is_ok());
    assert!(Message::parse(&line("dance")).is_err());
}

#[test]
fn a_newer_probe_is_understood() {
    let newer = r#"{"type":"beat","made":1,"mood":"good"}"#;
    assert!(matches!(Message::parse(newer), Ok(Some(Message::Beat(_)))));
    assert!(matches!(
        Message::parse(r#"{"type":"song","verse":1}"#),
        Ok(None)
    ));
}
