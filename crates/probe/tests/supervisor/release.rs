//! Orders of the agent: release a card, and read the cards again.

use std::time::Duration;

use model::Phase;
use probe::{
    BackendState,
    protocol::{Configure, Scope},
    supervisor::{Orders, ReleaseScope},
};
use tokio::time::timeout;

use crate::script::{
    LONG, card, ids, log, logged, logged_settings, runs_with_both, start, start_with, without_card,
};

#[tokio::test]
async fn a_released_card_is_closed_and_the_others_go_on_being_watched() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(folder.path(), &logged(folder.path()));
    let before = rig.until(runs_with_both).await;
    assert!(before.released.is_empty());

    let until = rig.orders.release_cards(ReleaseScope::Card(card()), LONG);
    let closed = rig
        .until(|s| s.released.cards.get(&card()).is_some_and(|r| r.closed) && s.devices.len() == 1)
        .await;
    assert_eq!(closed.released.cards[&card()].until, until);
    assert_eq!(ids(&closed), ["GPU-2"]);
    assert_eq!(closed.unwatched, None);
    assert!(closed.stuck.is_empty(), "it is no trouble");
    let ended = logged_settings(folder.path(), "end ");
    assert!(ended.iter().any(|settings| settings.cards == Scope::All));
    timeout(Duration::from_secs(30), async {
        let skips = |settings: &Configure| settings.cards == without_card();
        while !logged_settings(folder.path(), "begin ").iter().any(skips) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("another process watches the others");

    assert!(rig.orders.end_operator_releases(ReleaseScope::Card(card())));
    let back = rig.until(runs_with_both).await;
    assert!(back.released.is_empty(), "{back:#?}");
    assert!(
        !rig.orders.end_operator_releases(ReleaseScope::Card(card())),
        "nothing is released"
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_card_that_is_taken_back_counts_as_released_until_it_is_seen_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(folder.path(), &logged(folder.path()));
    rig.until(runs_with_both).await;
    rig.orders.release_cards(ReleaseScope::Card(card()), LONG);
    rig.until(|s| s.released.cards.get(&card()).is_some_and(|r| r.closed))
        .await;
    rig.orders.end_operator_releases(ReleaseScope::Card(card()));
    let missing = |s: &BackendState| !ids(s).contains(&"GPU-1");
    loop {
        let next = rig.until(|_| true).await;
        assert!(!missing(&next) || !next.released.is_empty(), "{next:#?}");
        if next.released.is_empty() {
            break;
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn when_all_is_released_no_process_is_left_until_it_is_taken_back_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(folder.path(), &logged(folder.path()));
    rig.until(runs_with_both).await;
    rig.orders
        .release_cards(ReleaseScope::All, Duration::from_secs(3));
    let closed = rig
        .until(|s| s.released.all.is_some_and(|r| r.closed))
        .await;
    assert_eq!(
        (closed.backend.phase, closed.devices.len()),
        (Phase::Running, 0)
    );
    assert_eq!(closed.unwatched, None);
    assert!(closed.backend.message.starts_with("released until "));
    assert_eq!(
        logged_settings(folder.path(), "begin ").len(),
        logged_settings(folder.path(), "end ").len(),
        "{}",
        log(folder.path())
    );
    let back = rig.until(runs_with_both).await;
    assert!(back.released.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn what_was_released_before_the_start_is_never_touched() {
    let folder = tempfile::tempdir().unwrap();
    let script = logged(folder.path());
    let orders = Orders::default();
    orders.release_cards(ReleaseScope::Card(card()), LONG);
    let given = orders.clone();
    let mut rig = start_with(folder.path(), &script, |settings| settings.orders = given);
    let seen = rig.until(|s| s.backend.phase == Phase::Running).await;
    assert_eq!(ids(&seen), ["GPU-2"]);
    assert!(seen.released.cards[&card()].closed);
    let begun = logged_settings(folder.path(), "begin ");
    assert!(
        begun
            .iter()
            .all(|settings| settings.cards == without_card())
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_refresh_is_answered_by_a_picture_even_if_nothing_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(folder.path(), &logged(folder.path()));
    let before = rig.until(runs_with_both).await;
    rig.orders.request_refresh();
    let after = rig.until(|_| true).await;
    assert_eq!(after, before);
    rig.stop().await;
}

#[tokio::test]
async fn a_card_is_closed_when_the_agents_own_work_on_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = start(folder.path(), &logged(folder.path()));
    rig.until(runs_with_both).await;
    let mut work = rig.orders.occupy(ReleaseScope::Card(card())).unwrap();
    rig.orders.release_cards(ReleaseScope::Card(card()), LONG);
    let is_closed = |s: &BackendState| s.released.cards.get(&card()).map(|release| release.closed);
    rig.until(|s| is_closed(s) == Some(false) && s.devices.len() == 1)
        .await;
    work.recalled().await;
    drop(work);
    rig.until(|s| is_closed(s) == Some(true)).await;
    rig.stop().await;
}
