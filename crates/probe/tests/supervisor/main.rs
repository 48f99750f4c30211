//! Supervisor with shell scripts as probes, which crash, hang, write invalid lines and recover.

mod agent;
mod hangs;
mod heirs;
mod release;
mod script;

use model::{Phase, Tier};
use probe::{Update, protocol::CONFIGURE_LIMIT};
use script::{
    BEAT, CARDS, HELLO, LIVE, ids, logged, logged_settings, runs_with_both, start, start_with,
};

#[tokio::test]
async fn a_probe_that_dies_is_started_again_and_its_devices_are_kept_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let die = folder.path().join("die");
    let script = format!(
        "{HELLO}\n{CARDS}\nwhile [ ! -e {0} ]; do {BEAT}; sleep 0.1; done; rm {0}; kill -9 $$",
        die.display()
    );
    let mut rig = start(folder.path(), &script);
    rig.until(runs_with_both).await;
    fs_err::write(&die, "").unwrap();
    let down = rig.until(|s| s.unwatched.is_some()).await;
    assert_eq!(down.backend.phase, Phase::Failing);
    assert_eq!(ids(&down), ["GPU-1", "GPU-2"]);
    rig.until(runs_with_both).await;
    rig.stop().await;
}

#[tokio::test]
async fn warnings_are_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let report = r#"{"type":"report","devices":[],"warnings":["no events are heard"]}"#;
    let script = format!("{HELLO}\necho '{report}'\n{LIVE}");
    let mut rig = start(folder.path(), &script);
    let warned = rig.until(|s| s.backend.phase == Phase::Running).await;
    assert_eq!(warned.backend.message, "no events are heard");
    rig.stop().await;
}

/// The agent itself runs the deep check of a card, as a command.
#[tokio::test]
async fn a_probes_word_about_a_deep_check_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let deep = r#"{"type":"checkup","device":"GPU-1","reading":{"values":{"deep":{"passed":false,"output":""}}}}"#;
    let trend = r#"{"type":"checkup","device":"GPU-1","reading":{"values":{"trend":{}}}}"#;
    let script = format!("{HELLO}\n{CARDS}\necho '{deep}'\necho '{trend}'\n{LIVE}");
    let mut rig = start(folder.path(), &script);
    let first = loop {
        if let Update::Checkup { checkup, .. } = rig.updates.recv().await.unwrap() {
            break checkup.reading.values.tier();
        }
    };
    assert_eq!(first, Tier::Trend);
    rig.stop().await;
}

#[tokio::test]
async fn nonsense_is_ignored_until_it_is_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "{HELLO}\necho rubbish\necho '{{\"type\":\"later-version\"}}'\n{CARDS}\nsleep 0.5\nwhile true; do echo rubbish; done"
    );
    let mut rig = start(folder.path(), &script);
    rig.until(runs_with_both).await;
    let down = rig.until(|s| s.unwatched.is_some()).await;
    assert!(
        down.backend.message.contains("not a probe message"),
        "{down:#?}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_probe_of_another_version_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        format!(r#"echo '{{"type":"hello","protocol":1,"probe":"x","version":"1"}}'; {LIVE}"#);
    let mut rig = start(folder.path(), &script);
    let down = rig.until(|s| s.unwatched.is_some()).await;
    assert!(
        down.backend
            .message
            .contains("version 1 of the protocol, this agent version 2: see")
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start_with(folder.path(), "", |settings| {
        settings.program.path = folder.path().join("absent");
    });
    let down = rig.until(|s| s.unwatched.is_some()).await;
    assert!(down.backend.message.contains("absent cannot be started"));
    rig.stop().await;
}

#[tokio::test]
async fn settings_that_the_input_does_not_take_at_once_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let script = format!("touch {}\n{HELLO}\n{CARDS}\n{LIVE}", begun.display());
    let mut rig = start_with(folder.path(), &script, |settings| {
        settings.configure.backend = "x".repeat(CONFIGURE_LIMIT).into();
    });
    let down = rig.until(|s| s.unwatched.is_some()).await;
    let why = &down.backend.message;
    assert!(why.contains("its settings are"), "{why}");
    assert!(why.contains("takes 65536 at once"), "{why}");
    rig.stop().await;
    assert!(!begun.exists());
}

#[tokio::test]
async fn settings_up_to_the_limit_arrive_whole() {
    let folder = tempfile::tempdir().unwrap();
    let script = logged(folder.path());
    let mut rig = start_with(folder.path(), &script, |settings| {
        settings.configure.backend = "x".repeat(CONFIGURE_LIMIT - 1000).into();
    });
    rig.until(runs_with_both).await;
    rig.stop().await;
    let begun = logged_settings(folder.path(), "begin ");
    assert_eq!(
        begun[0].backend.as_str().map(str::len),
        Some(CONFIGURE_LIMIT - 1000)
    );
}
