//! Commands of `ostler sim` that make and show nodes.

use super::rig::Rig;
use crate::text;

#[test]
fn the_help_begins_with_examples() {
    let help = Rig::empty().ostler(&["--help"]);
    let help = text(&help.stdout);
    // Another test has the options that all commands share.
    let (own, _) = help.split_once("Options:").unwrap();
    insta::assert_snapshot!("help", own);
}

#[test]
fn a_new_node_comes_with_its_use() {
    let rig = Rig::empty();
    let output = rig.ostler(&["create", rig.dir().to_str().unwrap()]);
    assert!(output.status.success());
    insta::assert_snapshot!("create", rig.plain(&text(&output.stdout)));
    assert_eq!(rig.node().list_gpus().unwrap().len(), 8);
}

#[test]
fn a_node_is_made_from_a_file_too() {
    let rig = Rig::empty();
    let file = rig.folder.path().join("mine.yaml");
    let yaml = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/profiles/t4.yaml");
    fs_err::copy(yaml, &file).unwrap();
    let dir = rig.dir();
    let made = [
        "create",
        dir.to_str().unwrap(),
        "--profile",
        file.to_str().unwrap(),
    ];
    assert!(rig.ostler(&made).status.success());
    assert_eq!(rig.node().list_gpus().unwrap().len(), 1);
}

#[test]
fn profiles_and_nodes_are_shown_as_tables() {
    let rig = Rig::new("a100-mig");
    insta::assert_snapshot!("profiles", rig.says(&["profiles"]));
    insta::assert_snapshot!("show", rig.plain(&rig.says(&["show"])));
}

#[test]
fn a_node_is_shown_for_programs_too() {
    let rig = Rig::new("t4");
    let json = rig.says(&["show", "-o", "json"]);
    let state: sim::state::NodeState = serde_json::from_str(&json).unwrap();
    assert_eq!(state, rig.node().node_state().unwrap());
    assert!(rig.says(&["show", "-o", "yaml"]).contains("profile: t4"));
}

#[test]
fn the_node_is_named_by_flag_or_variable() {
    let rig = Rig::new("t4");
    let dir = rig.dir();
    let flag = rig.ostler(&["--node", dir.to_str().unwrap(), "show"]);
    assert_eq!(text(&flag.stdout), rig.says(&["show"]));
}

#[test]
fn a_wrong_folder_is_refused_with_the_remedy() {
    let rig = Rig::new("t4");
    let (dir, other) = (rig.dir(), rig.folder.path().join("other"));
    let (dir, other) = (dir.to_str().unwrap(), other.to_str().unwrap());
    let complaint = |args: &[&str], status: i32| {
        let output = rig.ostler(args);
        assert_eq!(output.status.code(), Some(status));
        rig.plain(&text(&output.stderr))
    };
    let errors = [
        complaint(&["show"], 64),
        complaint(&["--node", other, "show"], 1),
        complaint(&["create", dir], 1),
        complaint(&["create", other, "--profile", "cray"], 1),
    ];
    insta::assert_snapshot!("wrong_folders", errors.concat());
    fs_err::write(rig.dir().join("node.json"), "{").unwrap();
    let error = complaint(&["--node", dir, "show"], 1);
    assert!(
        error.contains("cannot use the simulated node in [folder]/node"),
        "{error}"
    );
}
