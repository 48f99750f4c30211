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

async fn save(path: &Path, state: &State) {
    let state = Arc::new(state.clone());
    let saved = Writer::new(LONG).save(path.to_owned(), state).await;
    saved.unwrap();
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
    assert_eq!(load(path.clone()).await, Loaded::Nothing);
    let mut state = state("a");
    state
        .released
        .insert("all".to_owned(), Timestamp::UNIX_EPOCH);
    save(&path, &state).await;
    assert_eq!(load(path).await, Loaded::State(Box::new(state)));
}

#[tokio::test]
async fn garbage_is_left_out_of_account() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    for garbage in ["", "{", "[1, 2]", "\u{0}\u{1}", "{\"health\": 3}"] {
        fs_err::write(&path, garbage).unwrap();
        assert_eq!(load(path.clone()).await, Loaded::Nothing, "{garbage}");
    }
    let huge = fs_err::File::create(&path).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert_eq!(load(path.clone()).await, Loaded::Nothing);
    fs_err::remove_file(&path).unwrap();
    fs_err::create_dir(&path).unwrap();
    assert_eq!(load(path).await, Loaded::Nothing, "a folder");
}

#[tokio::test]
async fn a_newer_file_is_read_as_far_as_it_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let text = r#"{"health": {"version": 9, "boot_id": "b", "later": 1}, "news": []}"#;
    fs_err::write(&path, text).unwrap();
    let state = read(&path).unwrap().unwrap();
    assert_eq!(state.health.boot_id, "b");
    assert_eq!(load(path).await, Loaded::State(Box::new(state)));
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

#[tokio::test]
async fn a_pipe_in_its_place_hangs_nobody_and_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(CWD, &path, kind, Mode::RWXU, 0).unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.to_string().contains("not a file"), "{error}");
    assert_eq!(load(path.clone()).await, Loaded::Nothing);
    save(&path, &state("1")).await;
    has(&path, "1").await;
}

#[tokio::test]
async fn garbage_is_set_aside_before_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let bad = folder.path().join("state.json.bad");
    save(&path, &state("1")).await;
    save(&path, &state("2")).await;
    assert!(!bad.exists());
    fs_err::write(&path, "{\"health\":").unwrap();
    save(&path, &state("3")).await;
    has(&path, "3").await;
    assert_eq!(fs_err::read_to_string(&bad).unwrap(), "{\"health\":");
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_counts_as_unread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    std::os::unix::fs::symlink(&path, &path).unwrap();
    assert_eq!(load(path).await, Loaded::Unread);
}

#[tokio::test]
async fn a_write_that_hangs_is_told_and_no_other_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let mut writer = Writer::new(Duration::from_millis(20));
    let (hung, disk) = std::sync::mpsc::channel::<()>();
    writer.late = Some(spawn_blocking(move || {
        let _ = disk.recv();
        Ok(())
    }));
    for _ in 0..2 {
        let error = writer.save(path.clone(), Arc::new(state("1"))).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(!path.exists());
    }
    drop(hung);
    writer.limit = LONG;
    writer
        .save(path.clone(), Arc::new(state("2")))
        .await
        .unwrap();
    has(&path, "2").await;
}
