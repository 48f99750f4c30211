//! Tests with real files in a temporary folder.

mod random;

use std::os::unix::fs::PermissionsExt;

use rules::{ContainerEdits, ContainerNode, NamedEdits};

use super::*;

fn spec(class: &str, names: &[&str]) -> CdiSpec {
    let device = |name: &&str| NamedEdits {
        name: (*name).to_owned(),
        container_edits: ContainerEdits {
            device_nodes: vec![ContainerNode {
                path: format!("/dev/{name}"),
                ..ContainerNode::default()
            }],
            ..ContainerEdits::default()
        },
        ..NamedEdits::default()
    };
    CdiSpec {
        cdi_version: "0.3.0".to_owned(),
        kind: format!("k8s.device-plugin.nvidia.com/{class}"),
        devices: names.iter().map(device).collect(),
        ..CdiSpec::default()
    }
}

const KINDS: [&str; 2] = [
    "k8s.device-plugin.nvidia.com/gpu",
    "k8s.device-plugin.nvidia.com/gds",
];

/// Wanted states with this one for the first kind, and no file for the other kind.
fn only(first: WantedFile) -> WantedFiles {
    let [gpu, gds] = KINDS.map(SpecKey::of_kind);
    vec![(gpu, first), (gds, WantedFile::Absent)]
}

fn gpus(names: &[&str]) -> WantedFiles {
    only(WantedFile::Spec(Arc::new(spec("gpu", names))))
}

/// Calls `settle` while no container holds a name.
fn sync(dir: &Path, wishes: &WantedFiles) -> StoreOutcome {
    Store::new(dir).settle_files(wishes, &InUse::Names(BTreeSet::new()))
}

fn entries(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

const FILE: &str = "k8s.device-plugin.nvidia.com-gpu.json";

#[test]
fn a_spec_is_written_for_everybody_to_read_and_nothing_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let cdi = dir.path().join("run/cdi");
    let outcome = sync(&cdi, &gpus(&["a", "b"]));
    let names: Vec<&str> = outcome.names.iter().map(String::as_str).collect();
    let kind = "k8s.device-plugin.nvidia.com/gpu";
    assert_eq!(names, [format!("{kind}=a"), format!("{kind}=b")]);
    assert_eq!(entries(&cdi), [FILE]);
    let mode = fs_err::metadata(cdi.join(FILE)).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o644);
    let text = fs_err::read_to_string(cdi.join(FILE)).unwrap();
    assert_eq!(
        serde_json::from_str::<CdiSpec>(&text).unwrap(),
        spec("gpu", &["a", "b"])
    );
}

#[test]
fn a_spec_that_is_right_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &gpus(&["a"]));
    let file = dir.path().join(FILE);
    let before = fs_err::metadata(&file).unwrap();
    sync(dir.path(), &gpus(&["a"]));
    let after = fs_err::metadata(&file).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert_eq!(before.ino(), after.ino());
    sync(dir.path(), &gpus(&["b"]));
    assert_ne!(before.ino(), fs_err::metadata(&file).unwrap().ino());
}

#[test]
fn a_spec_of_nvidias_plugin_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let theirs = r#"{"cdiVersion":"0.5.0","kind":"k8s.device-plugin.nvidia.com/gpu",
        "devices":[{"name":"x","containerEdits":{"env":["A=b"]}}],"containerEdits":{}}"#;
    fs_err::write(dir.path().join(FILE), theirs).unwrap();
    sync(dir.path(), &only(WantedFile::Absent));
    assert!(dir.path().join(FILE).exists(), "it may be in use");
    let held = only(WantedFile::Held(Arc::new(spec("gpu", &["a"]))));
    let outcome = sync(dir.path(), &held);
    let text = fs_err::read_to_string(dir.path().join(FILE)).unwrap();
    assert_eq!(text, theirs, "nobody asked for another one");
    assert!(outcome.names.contains("k8s.device-plugin.nvidia.com/gpu=x"));
    let outcome = sync(dir.path(), &gpus(&["a"]));
    assert_eq!(outcome.find_problem(KINDS[0]), None);
    let text = fs_err::read_to_string(dir.path().join(FILE)).unwrap();
    assert_eq!(text, spec("gpu", &["a"]).to_text());
}

#[test]
fn what_containers_hold_is_made_and_kept_right_though_nobody_asks_for_it() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let spec = spec("gpu", &[name]);
        sync(dir.path(), &only(WantedFile::Held(Arc::new(spec.clone()))));
        let text = fs_err::read_to_string(dir.path().join(FILE)).unwrap();
        assert_eq!(text, spec.to_text());
    }
}

#[test]
fn a_file_of_somebody_else_is_reported_and_left_alone() {
    for text in ["not json", "{}", &spec("gds", &["all"]).to_text()] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        fs_err::write(&file, text).unwrap();
        let outcome = sync(dir.path(), &gpus(&["a"]));
        assert_eq!(fs_err::read_to_string(&file).unwrap(), text);
        let problem = outcome.find_problem(KINDS[0]).unwrap();
        assert!(problem.contains(FILE), "{problem}");
        assert!(problem.contains("left alone"), "{problem}");
        assert!(outcome.names.is_empty());
        sync(dir.path(), &only(WantedFile::Absent));
        assert!(file.exists());
    }
}

#[test]
fn what_is_not_wanted_any_more_goes_and_what_is_not_known_stays() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &gpus(&["a"]));
    let outcome = sync(dir.path(), &only(WantedFile::Unchanged));
    assert_eq!(outcome.names.len(), 1);
    let outcome = sync(dir.path(), &only(WantedFile::Absent));
    assert_eq!(outcome, StoreOutcome::default());
    assert_eq!(entries(dir.path()), [""; 0]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    // A regular file at the path of the folder stops root too, unlike a mode without write permission.
    let file = dir.path().join("cdi");
    fs_err::write(&file, "").unwrap();
    let outcome = sync(&file.join("sub"), &gpus(&["a"]));
    let problem = outcome.find_problem(KINDS[0]).unwrap();
    assert!(problem.contains("Not a directory"), "{problem}");
    assert!(problem.contains("cdi.dir"), "{problem}");
}

#[test]
fn a_pipe_under_the_name_of_a_spec_is_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE);
    mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let outcome = sync(dir.path(), &gpus(&["a"]));
    let problem = outcome.find_problem(KINDS[0]).unwrap();
    assert!(problem.contains("no regular file"), "{problem}");
    assert!(Store::new(dir.path()).read_specs(&KINDS).is_empty());
    assert!(file.exists());
}

#[test]
fn a_file_that_is_too_long_for_a_spec_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE);
    fs_err::write(&file, " ".repeat(5 << 20)).unwrap();
    let outcome = sync(dir.path(), &gpus(&["a"]));
    let problem = outcome.find_problem(KINDS[0]).unwrap();
    assert!(problem.contains("4 MiB"), "{problem}");
}

#[test]
fn a_write_that_fails_again_says_the_same_again() {
    let dir = tempfile::tempdir().unwrap();
    // The path of the file is just below PATH_MAX, and that of the temporary file, which is longer, above.
    let mut cdi = dir.path().to_owned();
    while cdi.as_os_str().len() < 3800 {
        cdi.push("x".repeat(200));
    }
    let rest = 4095 - 1 - FILE.len() - 1 - cdi.as_os_str().len();
    cdi.push("y".repeat(rest.min(250)));
    let first = sync(&cdi, &gpus(&["a"]));
    let problem = first.find_problem(KINDS[0]).unwrap();
    assert!(problem.contains("name too long"), "{problem}");
    assert!(problem.contains(FILE), "{problem}");
    let again = sync(&cdi, &gpus(&["a"]));
    assert!(first == again, "{:?}", again.find_problem(KINDS[0]));
}

#[test]
fn what_a_container_was_started_with_stays_though_nobody_wants_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    sync(dir.path(), &gpus(&["a", "b"]));
    let held = InUse::Names([format!("{}=b", KINDS[0])].into());
    for in_use in [held, InUse::Unknown] {
        let outcome = store.settle_files(&only(WantedFile::Absent), &in_use);
        assert_eq!(outcome.names.len(), 2, "{in_use:?}");
        assert_eq!(store.keys(&KINDS), [SpecKey::of_kind(KINDS[0])]);
    }
    let other = InUse::Names([format!("{}=all", KINDS[1])].into());
    store.settle_files(&only(WantedFile::Absent), &other);
    assert_eq!(entries(dir.path()), [""; 0]);
}

#[test]
fn claims_of_one_kind_have_a_file_each() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    let claim = |uid| SpecKey::of_claim(KINDS[0], uid).unwrap();
    let wish = |uid: &str| WantedFile::Spec(Arc::new(spec("gpu", &[uid])));
    let both = [(claim("1"), wish("1")), (claim("2"), wish("2"))];
    let outcome = store.settle_files(&both, &InUse::Unknown);
    assert_eq!(outcome.names.len(), 2);
    assert_eq!(store.keys(&KINDS), [claim("1"), claim("2")]);
    assert_eq!(store.read_specs(&KINDS).len(), 2);
    let none = InUse::Names(BTreeSet::new());
    store.settle_files(&[(claim("1"), WantedFile::Absent)], &none);
    assert_eq!(store.keys(&KINDS), [claim("2")]);
}

#[test]
fn a_draft_of_an_agent_that_was_ended_goes() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, other) = (format!(".{FILE}.tmp-1-2"), ".other.json.tmp-1-2");
    for name in [&ours, other] {
        fs_err::write(dir.path().join(name), "{").unwrap();
    }
    sync(dir.path(), &only(WantedFile::Absent));
    assert_eq!(entries(dir.path()), [other]);
}
