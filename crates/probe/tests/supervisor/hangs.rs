//! Calls that do not return, and probes that write nothing.

use std::time::Duration;

use model::Phase;
use probe::supervisor::ReleaseScope;
use tokio::time::timeout;

use crate::script::{CARDS, HELLO, LIVE, LONG, card, ids, runs_with_both, start, start_with};

#[tokio::test]
async fn a_card_whose_call_hangs_is_named_left_out_tried_alone_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let hang = folder.path().join("hang");
    let tried = folder.path().join("tried");
    let call =
        r#"{"call":"nvmlDeviceGetUUID","device":"0000:01:00.0","since":"2026-01-01T00:00:00Z"}"#;
    let script = format!(
        r#"{HELLO}
        case "$settings" in *only*) touch {tried};; esac
        case "$settings" in *skip*) {CARDS};; *)
            while [ -e {hang} ]; do echo '{{"type":"beat","calls":[{call}]}}'; sleep 0.1; done; {CARDS};;
        esac
        {LIVE}"#,
        hang = hang.display(),
        tried = tried.display(),
    );
    fs_err::write(&hang, "").unwrap();
    let mut rig = start(folder.path(), &script);

    let without = rig.until(|s| ids(s) == ["GPU-2"]).await;
    let stuck = &without.backend.stuck[0];
    assert_eq!(stuck.call, "nvmlDeviceGetUUID");
    assert_eq!(stuck.device, Some(card()));
    assert!(
        without
            .backend
            .message
            .contains("nvmlDeviceGetUUID on 0000:01:00.0")
    );
    assert_eq!(without.stuck.len(), 1);

    fs_err::remove_file(&hang).unwrap();
    let back = rig.until(runs_with_both).await;
    assert!(back.stuck.is_empty());
    assert!(tried.exists(), "the card was tried alone");
    rig.stop().await;
}

#[tokio::test]
async fn a_driver_that_hangs_as_a_whole_is_named_before_it_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let hang = folder.path().join("hang");
    let call = r#"{"call":"nvmlInit_v2","since":"2026-01-01T00:00:00Z"}"#;
    let script = format!(
        r#"{HELLO}
        while [ -e {} ]; do echo '{{"type":"beat","calls":[{call}]}}'; sleep 0.1; done
        {CARDS}
        {LIVE}"#,
        hang.display()
    );
    fs_err::write(&hang, "").unwrap();
    let mut rig = start(folder.path(), &script);
    let named = rig.until(|s| s.driver_stuck.is_some()).await;
    assert_eq!(named.backend.phase, Phase::DriverFailed);
    assert!(
        named
            .backend
            .message
            .starts_with("nvmlInit_v2 has not returned")
    );
    fs_err::remove_file(&hang).unwrap();
    rig.until(runs_with_both).await;
    rig.stop().await;
}

#[rstest::rstest]
#[case::events(
    r#"{"call":"nvmlEventSetWait_v2","since":"2026-01-01T00:00:00Z","work":"events"}"#,
    r#""events":false"#
)]
#[case::links(r#"{"call":"nvmlDeviceGetNvLinkState","device":"0000:01:00.0","since":"2026-01-01T00:00:00Z","work":"links"}"#, r#""links":false"#)]
#[tokio::test]
async fn what_can_be_left_out_and_hangs_is_left_out_and_costs_no_card(
    #[case] call: &str,
    #[case] without: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        r#"{HELLO}
        {CARDS}
        case "$settings" in *'{without}'*) {LIVE};; esac
        while true; do echo '{{"type":"beat","calls":[{call}]}}'; sleep 0.1; done"#
    );
    let mut rig = start(folder.path(), &script);
    let named = rig.until(|s| !s.backend.stuck.is_empty()).await;
    assert!(runs_with_both(&named), "{named:#?}");
    assert!(named.driver_stuck.is_none() && named.stuck.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn a_probe_that_goes_silent_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let script = format!(
        "{HELLO}\n{CARDS}\nif [ ! -e {0} ]; then touch {0}; exec sleep 1000; fi\n{LIVE}",
        mark.display()
    );
    let mut rig = start(folder.path(), &script);
    let silent = rig.until(|s| s.unwatched.is_some()).await;
    assert!(silent.backend.message.contains("no sign of life"));
    assert!(
        silent.driver_stuck.is_none(),
        "nobody said that it is the driver"
    );
    assert_eq!(ids(&silent), ["GPU-1", "GPU-2"]);
    rig.until(runs_with_both).await;
    rig.stop().await;
}

#[tokio::test]
async fn no_probe_is_started_while_too_many_that_were_given_up_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{HELLO}\n{CARDS}\n{LIVE}");
    // A test cannot make a process that survives SIGKILL: the limit is zero instead.
    let mut rig = start_with(folder.path(), &script, |settings| {
        settings.limits.stuck_processes = 0
    });
    let held = rig.until(|s| s.unwatched.is_some()).await;
    assert!(
        held.backend.message.contains("no other is started"),
        "{held:#?}"
    );
    assert!(held.devices.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn a_stuck_card_that_is_released_is_not_tried() {
    let folder = tempfile::tempdir().unwrap();
    let tried = folder.path().join("tried");
    let call = r#"{"call":"x","device":"0000:01:00.0","since":"2026-01-01T00:00:00Z"}"#;
    let script = format!(
        r#"{HELLO}
        case "$settings" in *only*) echo x >> {tried};; esac
        case "$settings" in *skip*) {CARDS}
            {LIVE};;
        esac
        while true; do echo '{{"type":"beat","calls":[{call}]}}'; sleep 0.1; done"#,
        tried = tried.display(),
    );
    let mut rig = start_with(folder.path(), &script, |settings| {
        settings.limits.pause = Duration::from_millis(500);
    });
    rig.until(|s| !s.stuck.is_empty() && ids(s) == ["GPU-2"])
        .await;
    rig.orders.release_cards(ReleaseScope::Card(card()), LONG);
    rig.until(|s| !s.released.is_empty()).await;
    let _ = fs_err::remove_file(&tried);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!tried.exists(), "its next try was due long ago");
    rig.orders.end_operator_releases(ReleaseScope::All);
    timeout(Duration::from_secs(30), async {
        while !tried.exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("it is tried again");
    rig.stop().await;
}
