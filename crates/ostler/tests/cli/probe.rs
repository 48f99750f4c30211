//! `ostler probe nvidia`, by hand and as the agent runs it.

use std::{
    io::Write as _,
    process::{Output, Stdio},
};

use rstest::rstest;

use crate::{ostler, text};

/// Runs the probe as a child with this input.
fn child(input: &str) -> Output {
    let mut command = ostler(&["probe", "nvidia", "--child"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A probe that refuses its input may end before it has read everything.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

#[rstest]
#[case::nothing("", "ended before the line of settings did")]
#[case::nonsense("nonsense\n", "not understood")]
#[case::another_command("{\"type\":\"refresh\"}\n", "not `configure`")]
#[case::wrong_section(
    "{\"type\":\"configure\",\"backend\":{\"discovery\":\"dance\"}}\n",
    "`backend` of the settings is not understood"
)]
#[case::endless(&"x".repeat(100_000), "longer than 65536 bytes")]
fn a_child_without_settings_says_so_and_exits(#[case] input: &str, #[case] why: &str) {
    let output = child(input);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(why), "{said}");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn a_child_looks_where_its_settings_say() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libnvidia-ml.so.1");
    let line = serde_json::json!({
        "type": "configure",
        "host_root": folder.path(),
        "later": "a field of a newer agent",
        "backend": {"nvmlLibrary": library},
    });
    let output = child(&format!("{line}\n"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.starts_with("{\"type\":\"hello\""), "{said}");
}

#[test]
fn by_hand_it_takes_flags_and_gives_one_look() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let args = [
        "probe",
        "nvidia",
        "--host-root",
        root,
        "--driver-path",
        root,
        "--discovery=tegra",
    ];
    let output = ostler(&args).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("\"id\":\"tegra\""), "{said}");
}

#[test]
fn a_probe_of_others_is_checked_and_each_fault_has_its_line() {
    let script = "read -r settings; echo 'for people'; echo nonsense >&3";
    let words = ["probe", "check", "--for", "60s", "--", "sh", "-c", script];
    let output = ostler(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "line 1: error: not a probe message",
        "error: the probe ended by itself",
        "error: there was no `report`",
        "1 lines: ; 4 errors, 0 warnings",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let people = String::from_utf8(output.stderr).unwrap();
    assert!(people.contains("for people"), "{people}");
}

/// The agent ends such a probe within a second.
#[rstest]
#[case::beats(r#"yes '{"type":"beat"}'"#)]
#[case::nonsense(r#"yes "$(printf '\377')""#)]
fn the_check_of_a_probe_that_floods_ends_and_says_so(#[case] line: &str) {
    let script = format!("read -r settings; exec {line} >&3");
    let words = ["probe", "check", "--for", "60s", "--", "sh", "-c", &script];
    let output = ostler(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output.stdout);
    assert!(
        text.contains("error: more than 5000 lines within a second"),
        "{text}"
    );
}

#[test]
fn the_check_of_a_probe_that_never_rests_ends_with_its_time() {
    let script = r#"read -r settings; while :; do echo '{"type":"beat"}' >&3; sleep 0.001; done"#;
    let words = ["probe", "check", "--for", "1s", "--", "sh", "-c", script];
    let output = ostler(&words).output().unwrap();
    assert!(text(&output.stdout).contains("there was no `report`"));
}
