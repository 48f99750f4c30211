//! A supervisor that follows another one, as after a reload of the config.

use std::{path::Path, time::Duration};

use probe::{
    protocol::Configure,
    supervisor::{Children, Orders, Settings, Which},
};
use rstest::rstest;
use tokio::time::Instant;

use crate::{
    agent::Agent,
    script::{
        CARDS, HELLO, LIVE, LONG, card, deep_check, log, logged_settings, runs_with_both, settings,
    },
};

/// A probe that takes its time when its input ends.
fn slow(folder: &Path) -> String {
    let log = folder.join("log");
    format!(
        r#"{HELLO}
        echo "begin" >> {log}
        {CARDS}
        ({LIVE}) & beats=$!
        cat > /dev/null
        sleep 1
        kill $beats
        echo "end" >> {log}"#,
        log = log.display(),
    )
}

#[rstest]
#[case::one_card(Which::Card(card()))]
#[case::all(Which::All)]
#[tokio::test]
async fn a_card_is_not_closed_while_a_process_of_the_last_supervisor_is_there(
    #[case] which: Which,
) {
    let folder = tempfile::tempdir().unwrap();
    let first = settings(folder.path(), &slow(folder.path()));
    let second = first.clone();
    let mut old = Agent::start(first);
    old.until(runs_with_both).await;
    old.stop().await;
    assert!(!log(folder.path()).contains("end"), "it takes its time");

    second.orders.release(which, LONG);
    let mut new = Agent::start(second);
    new.until(|s| {
        let mut all = s.released.all.iter().chain(s.released.cards.values());
        all.any(|release| release.closed)
    })
    .await;
    assert!(log(folder.path()).contains("end"), "{}", log(folder.path()));
    new.stop().await;
}

#[tokio::test]
async fn a_card_that_was_closed_stays_so() {
    let folder = tempfile::tempdir().unwrap();
    let first = settings(folder.path(), &slow(folder.path()));
    let second = first.clone();
    let mut old = Agent::start(first);
    old.until(runs_with_both).await;
    old.orders.release(Which::Card(card()), LONG);
    let closed = |s: &probe::Sighting| s.released.cards.get(&card()).is_some_and(|r| r.closed);
    old.until(|s| closed(s) && s.devices.len() == 1).await;
    old.stop().await;

    let mut new = Agent::start(second);
    loop {
        let next = new.until(|_| true).await;
        assert!(closed(&next), "{next:#?}");
        if next.devices.len() == 1 {
            break;
        }
    }
    new.stop().await;
}

/// The time since the last deep check, as each process was told.
fn told(folder: &Path) -> Vec<Duration> {
    let begun = logged_settings(folder, "begin ").into_iter();
    begun
        .map(|settings| settings.deep.expect("deep checks").last_ago)
        .collect()
}

/// A probe that has its deep check behind it when a file is there.
fn deep(folder: &Path) -> Settings {
    let checkup = r#"{"type":"checkup","device":"GPU-1","tier":"deep","passed":true,"output":""}"#;
    let script = format!(
        r#"{HELLO}
        echo "begin $settings" >> {log}
        [ -e {checked} ] && echo '{checkup}'
        {CARDS}
        {LIVE}"#,
        log = folder.join("log").display(),
        checked = folder.join("checked").display(),
    );
    let mut settings = settings(folder, &script);
    settings.configure.deep = deep_check();
    settings
}

#[tokio::test]
async fn a_new_probe_is_told_how_long_ago_the_last_deep_check_was() {
    let folder = tempfile::tempdir().unwrap();
    let settings = deep(folder.path());
    let begun = Instant::now();
    for _ in 0..2 {
        let mut agent = Agent::start(settings.clone());
        agent.until(runs_with_both).await;
        tokio::time::sleep(Duration::from_millis(1200)).await;
        agent.stop().await;
    }
    // One that has a check counts from there.
    fs_err::write(folder.path().join("checked"), "").unwrap();
    let checked = Instant::now();
    for _ in 0..2 {
        let mut agent = Agent::start(settings.clone());
        agent.until(runs_with_both).await;
        agent.stop().await;
    }
    let ago = told(folder.path());
    assert_eq!(ago.len(), 4, "{ago:?}");
    let second = Duration::from_secs(1);
    assert!(ago[1] >= second && ago[2] >= 2 * second, "{ago:?}");
    assert!(ago[2] <= begun.elapsed(), "{ago:?}");
    assert!(ago[3] <= checked.elapsed(), "{ago:?}");
}

#[tokio::test]
async fn a_probe_without_deep_checks_is_told_nothing_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = deep(folder.path());
    settings.configure.deep = None;
    (settings.children, settings.orders) = (Children::default(), Orders::default());
    let mut agent = Agent::start(settings);
    agent.until(runs_with_both).await;
    agent.stop().await;
    let begun = logged_settings(folder.path(), "begin ");
    assert_eq!(begun, [Configure::default()]);
}
