use config::Config;
use tokio::{task::JoinSet, time::Instant};

use super::*;

const LONG: Duration = Duration::from_secs(30);

fn state(boot: &str) -> State {
    let mut state = State::default();
    state.health.boot_id = boot.to_owned();
    state
}

fn rules(path: &Path) -> Rules {
    let mut rules = Rules::new(&Config::default());
    rules.health.state_file = Some(path.to_owned());
    rules
}

/// Waits until the file has the state of that boot.
async fn has(path: &Path, boot: &str) {
    let begun = Instant::now();
    while read(path)
        .ok()
        .flatten()
        .map(|s| s.health.boot_id)
        .as_deref()
        != Some(boot)
    {
        assert!(begun.elapsed() < LONG, "{boot}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_was_kept_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    assert_eq!(load(path.clone()).await, None);
    let mut state = state("a");
    state
        .released
        .insert("all".to_owned(), Timestamp::UNIX_EPOCH);
    save(path.clone(), Arc::new(state.clone())).await.unwrap();
    assert_eq!(load(path).await, Some(state));
}

#[tokio::test]
async fn garbage_is_left_out_of_account() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    for garbage in ["", "{", "[1, 2]", "\u{0}\u{1}", "{\"health\": 3}"] {
        fs_err::write(&path, garbage).unwrap();
        assert_eq!(load(path.clone()).await, None, "{garbage}");
    }
    let huge = fs_err::File::create(&path).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert_eq!(load(path.clone()).await, None);
    fs_err::remove_file(&path).unwrap();
    fs_err::create_dir(&path).unwrap();
    assert_eq!(load(path).await, None, "a folder");
}

#[tokio::test]
async fn a_newer_file_is_read_as_far_as_it_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let text = r#"{"health": {"version": 9, "boot_id": "b", "later": 1}, "news": []}"#;
    fs_err::write(&path, text).unwrap();
    assert_eq!(load(path).await.unwrap().health.boot_id, "b");
}

#[tokio::test]
async fn every_change_reaches_the_file_and_the_last_one_even_when_all_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let (kept, receiver) = watch::channel(None);
    let (_rules, rules) = watch::channel(rules(&path));
    let stop = CancellationToken::new();
    let mut keeping = JoinSet::new();
    keeping.spawn(keep(receiver, rules, stop.clone()));
    kept.send_replace(Some(Arc::new(state("1"))));
    has(&path, "1").await;
    kept.send_replace(Some(Arc::new(state("2"))));
    stop.cancel();
    keeping.join_next().await.unwrap().unwrap();
    has(&path, "2").await;
}

#[tokio::test]
async fn another_file_is_written_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1.json"), folder.path().join("2.json"));
    let (kept, receiver) = watch::channel(None);
    let (sender, rules_now) = watch::channel(rules(&first));
    let stop = CancellationToken::new();
    let mut keeping = JoinSet::new();
    keeping.spawn(keep(receiver, rules_now, stop.clone()));
    kept.send_replace(Some(Arc::new(state("1"))));
    has(&first, "1").await;
    sender.send_replace(rules(&second));
    has(&second, "1").await;
    stop.cancel();
    keeping.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_folder_that_is_not_there_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no/state.json");
    let (kept, receiver) = watch::channel(Some(Arc::new(state("1"))));
    let (_rules, rules) = watch::channel(rules(&path));
    let stop = CancellationToken::new();
    let mut keeping = JoinSet::new();
    keeping.spawn(keep(receiver, rules, stop.clone()));
    kept.send_replace(Some(Arc::new(state("2"))));
    sleep(Duration::from_millis(50)).await;
    assert!(keeping.try_join_next().is_none());
    stop.cancel();
    keeping.join_next().await.unwrap().unwrap();
}
