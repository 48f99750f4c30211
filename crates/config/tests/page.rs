//! Page and schema in `docs/`, compared with the types.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

use std::path::PathBuf;

use config::{Overrides, nvidia};
use serde_json::Value;

const SCHEMA: &str = "ostler.schema.json";
const PAGE: &str = "config.md";

fn docs(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(file)
}

/// Returns the code blocks of the page with this info string.
fn blocks(opening: &str) -> Vec<String> {
    let page = fs_err::read_to_string(docs(PAGE)).unwrap();
    let opening = format!("```{opening}\n");
    let blocks = page.split(&opening).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_config_in_the_guide_for_probes_is_good() {
    let guide = fs_err::read_to_string(docs("probe-guide.md")).unwrap();
    let config = guide.split("```yaml\n").nth(1).unwrap();
    let config = config.split("```").next().unwrap();
    let resolved = config::parse_native("guide.yaml", config).unwrap();
    assert_eq!(resolved.warnings, []);
    let crypto = &resolved.config.backends.programs["crypto"];
    assert!(crypto.allows("/dev/crypto0") && !crypto.allows("/dev/mem"));
}

#[test]
fn the_schema_in_docs_is_the_one_of_the_types() {
    let expected = serde_json::to_string_pretty(&config::schema()).unwrap() + "\n";
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
fn every_example_is_a_good_config_for_reader_and_schema() {
    let validator = jsonschema::validator_for(&config::schema()).unwrap();
    let examples = blocks("yaml");
    assert!(examples.len() >= 6);
    for text in examples {
        let file = config::parse_native("example", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(file.warnings, [], "{text}");
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn every_v1_example_is_a_good_config() {
    let examples = blocks("yaml v1");
    assert_eq!(examples.len(), 1);
    for text in examples {
        assert!(nvidia::is_v1(&text));
        let file = nvidia::parse_v1("example", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let flags = nvidia::GivenFlags::default();
        let from = &config::ValueOrigin::of_flag;
        let resolved = nvidia::translate_file(&flags, &file, Overrides::default(), from).unwrap();
        assert_eq!(resolved.warnings, [], "{text}");
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = jsonschema::validator_for(&config::schema()).unwrap();
    for text in [
        "probe: {perod: 3s}",
        "backends: {nvidia: {mig: some}}",
        "pools: [{name: a}]",
        "pools: [{name: a, resource: a.io/b, sharing: {replicas: 0}}]",
        "pools: [{name: a, resource: a.io/b, placement: nowhere}]",
        "handover: {lists: [cdi]}",
        "backends: {nvidia: {xids: {ignore: some}}}",
        "backends: {nvidia: {xids: {base: ours}}}",
        "health: {weights: {causes: {Lost: warn}}}",
        "health: {weights: {causes: {Pcie: heavy}}}",
        "include: 3",
    ] {
        assert!(config::parse_native("x", text).is_err(), "{text}");
        let value: Value = serde_saphyr::from_str(text).unwrap();
        assert!(!validator.is_valid(&value), "{text}");
    }
}

#[test]
fn every_key_is_on_the_page_with_its_default() {
    let page = fs_err::read_to_string(docs(PAGE)).unwrap();
    let resolved =
        config::native(None, Overrides::default(), &config::ValueOrigin::of_flag).unwrap();
    for row in resolved.list_values() {
        if row.key.starts_with("pools[") || row.key.starts_with("handover.") {
            let key = match row.key.split_once("handover.") {
                Some((_, key)) => key,
                None => row.key.rsplit(['.', ']']).next().unwrap(),
            };
            assert!(page.contains(&format!("`{key}`")), "{key}");
            continue;
        }
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", row.key)));
        let line = line.unwrap_or_else(|| panic!("{} is not on the page", row.key));
        if !matches!(row.show_value().as_str(), "-" | "[]") {
            let default = format!("| `{}` |", row.show_value());
            assert!(line.ends_with(&default), "{line} should end with {default}");
        }
    }
}

#[test]
fn the_complaint_on_the_page_is_the_real_one() {
    let error = config::parse_native("ostler.yaml", "probe:\n  perod: 3s\n").unwrap_err();
    let block = &blocks("text")[0];
    assert!(block.starts_with(&error.to_string()), "{error}\n{block}");
}
