//! Handover between two supervisors of one backend, as after a reload of the config.

use std::path::Path;

use probe::supervisor::ReleaseScope;
use rstest::rstest;

use crate::{
    agent::Agent,
    script::{CARDS, HELLO, LIVE, LONG, card, log, runs_with_both, settings},
};

/// Returns a script that exits one second after its input has ended.
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
#[case::one_card(ReleaseScope::Card(card()))]
#[case::all(ReleaseScope::All)]
#[tokio::test]
async fn a_card_is_not_closed_while_a_process_of_the_last_supervisor_is_there(
    #[case] which: ReleaseScope,
) {
    let folder = tempfile::tempdir().unwrap();
    let first = settings(folder.path(), &slow(folder.path()));
    let second = first.clone();
    let mut old = Agent::start(first);
    old.until(runs_with_both).await;
    old.stop().await;
    assert!(!log(folder.path()).contains("end"), "it takes its time");

    second.orders.release_cards(which, LONG);
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
    old.orders.release_cards(ReleaseScope::Card(card()), LONG);
    let closed = |s: &probe::BackendState| s.released.cards.get(&card()).is_some_and(|r| r.closed);
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
