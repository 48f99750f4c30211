//! `ostler config`: shows problems with their place, and values with their origin.

use std::{path::Path, process::Output};

use serde_json::Value;

use crate::text;

/// Runs a command in a folder, without variables.
fn ostler(folder: &Path, args: &[&str]) -> Output {
    crate::ostler(args).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    text(&output.stdout)
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs_err::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[test]
fn check_shows_everything_that_is_wrong_and_ends_with_78() {
    let folder = folder(&[
        (
            "a.yaml",
            "probe:\n  perod: 3s\nbackends: {nvidia: {mig: mixd}}\n",
        ),
        ("b.yaml", "version: v1\nflags:\n  migStategy: mixed\n"),
        ("c.yaml", "backends: {nvidia: {mig: single}}\n"),
    ]);
    let output = ostler(
        folder.path(),
        &["config", "check", "a.yaml", "b.yaml", "c.yaml", "d.yaml"],
    );
    assert_eq!(output.status.code(), Some(78));
    insta::assert_snapshot!(said(&output));
}

#[test]
fn check_ends_with_0_where_there_are_warnings_at_most() {
    let folder = folder(&[("v1.yaml", "version: v1\nshred: {}\n")]);
    let output = ostler(folder.path(), &["config", "check", "v1.yaml"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(said(&output).ends_with("v1.yaml: usable, 1 warning\n"));
}

#[test]
fn check_takes_the_flags_that_go_with_a_v1_file() {
    let text = "sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}\n";
    let folder = folder(&[("v1.yaml", text)]);
    let check = |more: &[&str]| {
        let args = [&["config", "check", "v1.yaml"], more].concat();
        ostler(folder.path(), &args).status.code()
    };
    assert_eq!(check(&[]), Some(78));
    assert_eq!(check(&["--", "--mps-root=/m"]), Some(0));
}

#[test]
fn check_tells_programs_file_line_column_and_key() {
    let folder = folder(&[("a.yaml", "probe:\n  period: soon\n")]);
    let output = ostler(folder.path(), &["config", "check", "a.yaml", "-o", "json"]);
    let verdicts: Value = serde_json::from_str(&said(&output)).unwrap();
    let problem = &verdicts[0]["problems"][0];
    assert_eq!(problem["key"], "probe.period");
    assert_eq!(problem["severity"], "error");
    assert_eq!(problem["at"]["path"], "a.yaml");
    assert_eq!(
        (&problem["at"]["line"], &problem["at"]["column"]),
        (&2.into(), &11.into())
    );
}

#[test]
fn explain_shows_where_each_value_came_from() {
    let folder = folder(&[("a.yaml", "probe: {period: 3s}\nhostRoot: /file\n")]);
    let args = [
        "config",
        "explain",
        "--config",
        "a.yaml",
        "--host-root=/flag",
    ];
    let page = said(&ostler(folder.path(), &args));
    let row = |key: &str| {
        let line = page.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(row("probe.period "), "3s a.yaml:1");
    assert_eq!(row("hostRoot "), "/flag flag --host-root");
    assert_eq!(row("backends.nvidia.mig "), "mixed default");
}

#[test]
fn explain_translates_nvidias_file_into_one_of_ours() {
    let text = "version: v1\nflags: {migStrategy: single}\n";
    let folder = folder(&[("v1.yaml", text)]);
    let args = [
        "config",
        "explain",
        "--config",
        "v1.yaml",
        "-o",
        "yaml",
        "--",
        "--gds-enabled",
    ];
    let yaml = said(&ostler(folder.path(), &args));
    assert!(yaml.contains("mig: single  # v1.yaml:2\n"), "{yaml}");
    assert!(yaml.contains("gds: true  # flag --gds-enabled\n"), "{yaml}");
    assert!(yaml.contains("base: nvidia\n"), "{yaml}");
    fs_err::write(folder.path().join("ours.yaml"), &yaml).unwrap();
    let output = ostler(folder.path(), &["config", "check", "ours.yaml"]);
    assert_eq!(said(&output), "ours.yaml: good\n");
    let args = ["config", "explain", "--config", "ours.yaml", "-o", "yaml"];
    let again = said(&ostler(folder.path(), &args));
    let values = |yaml: &str| -> Vec<String> {
        let value = |line: &str| line.split("  # ").next().unwrap().to_owned();
        yaml.lines().map(value).collect()
    };
    assert_eq!(values(&again), values(&yaml));
}

#[test]
fn schema_prints_the_one_in_docs() {
    let folder = folder(&[]);
    let output = ostler(folder.path(), &["config", "schema"]);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ostler.schema.json");
    assert_eq!(said(&output), fs_err::read_to_string(docs).unwrap());
}
