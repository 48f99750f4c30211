use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::Duration,
};

use rstest::rstest;
use rustix::fs::{CWD, Mode};
use serde_json::json;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    read::read_state,
    write::{StateWriter, keep_with},
    *,
};

const LONG: Duration = Duration::from_secs(30);

fn state(boot: &str) -> SavedState {
    let mut state = SavedState::default();
    state.health.boot_id = boot.to_owned();
    state
}

/// Returns the path of a file in a folder of its own.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    (folder, path)
}

async fn load(path: &Path) -> LoadedState {
    reader(path).try_read().await
}

fn reader(path: &Path) -> StateReader {
    let mut reader = StateReader::default();
    reader.turn_to(Some(path.to_owned()));
    reader
}

async fn save(path: &Path, state: &SavedState) {
    let state = Arc::new(state.clone());
    let saved = StateWriter::new(LONG)
        .write_state(path.to_owned(), state)
        .await;
    saved.unwrap();
}

/// Waits until the file has the state of that boot.
async fn has(path: &Path, boot: &str) {
    let begun = Instant::now();
    let is_of = |state: SavedState| state.health.boot_id == boot;
    while !read_state(path).ok().flatten().is_some_and(is_of) {
        assert!(begun.elapsed() < LONG, "{boot}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// The task that writes the file, and its channels.
struct Keeper {
    drafts: watch::Sender<StateDraft>,
    keeping: watch::Sender<StateFileStatus>,
    stop: CancellationToken,
    work: JoinSet<()>,
}

impl Keeper {
    /// Starts the task for a file that was read.
    fn new(path: &Path, writer: StateWriter) -> Self {
        let mut keeping = StateFileStatus::new(Some(path.to_owned()));
        keeping.record_read(None, 0);
        let (drafts, receiver) = watch::channel(StateDraft::default());
        let (keeping, stop) = (watch::Sender::new(keeping), CancellationToken::new());
        let mut work = JoinSet::new();
        work.spawn(keep_with(writer, receiver, keeping.clone(), stop.clone()));
        Self {
            drafts,
            keeping,
            stop,
            work,
        }
    }

    fn draft(&self, path: &Path, boot: &str) {
        let state = state(boot);
        self.drafts
            .send_modify(|draft| draft.replace_state(path.to_owned(), state));
    }

    /// Waits until the newest draft is settled. Returns the status.
    async fn settled(&self) -> StateFileStatus {
        let number = self.drafts.borrow().number;
        let mut keeping = self.keeping.subscribe();
        let settled = keeping.wait_for(|keeping| keeping.is_settled(number));
        settled.await.unwrap().clone()
    }

    async fn end(mut self) {
        self.stop.cancel();
        self.work.join_next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_was_kept_is_read_again() {
    let (_folder, path) = place();
    assert_eq!(load(&path).await, LoadedState::NoState);
    let mut state = state("a");
    let all = BTreeMap::from([("all".to_owned(), Timestamp::UNIX_EPOCH)]);
    state.releases.insert("acme".to_owned(), all);
    save(&path, &state).await;
    assert_eq!(load(&path).await, LoadedState::State(Box::new(state)));
}

/// Version 1 has neither a version of the whole file nor names of backends.
#[test]
fn a_file_of_version_1_keeps_cordons_and_releases() {
    let text = br#"{
        "health": {
            "version": 1, "boot_id": "b", "drivers": {"nvidia": "81234"},
            "devices": {"GPU-0": {"backend": "nvidia",
                                  "cordon": {"reason": "fan", "since": "2026-01-01T00:00:00Z"}},
                        "GPU-1": {}}
        },
        "released": {"0000:3b:00.0": "2026-01-02T00:00:00Z"}
    }"#;
    let state = SavedState::parse_state(text).unwrap();
    assert_eq!(state.version, 2);
    assert!(!state.health.devices[&DeviceId::new("GPU-0")].is_blank());
    let unnamed = &state.health.devices[&DeviceId::new("GPU-1")];
    assert_eq!(unnamed.backend, "nvidia", "the only one that there was");
    let until: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
    let cards = BTreeMap::from([("0000:3b:00.0".to_owned(), until)]);
    assert_eq!(
        state.releases,
        BTreeMap::from([("nvidia".to_owned(), cards)])
    );
    let again = SavedState::parse_state(&state.to_file_text().unwrap()).unwrap();
    assert_eq!(again, state);
}

#[tokio::test]
async fn garbage_is_left_out_of_account() {
    let (_folder, path) = place();
    for garbage in ["", "{", "[1, 2]", "\u{0}\u{1}", "{\"health\": 3}"] {
        fs_err::write(&path, garbage).unwrap();
        assert_eq!(load(&path).await, LoadedState::NoState, "{garbage}");
    }
    let huge = fs_err::File::create(&path).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert_eq!(load(&path).await, LoadedState::NoState);
    fs_err::remove_file(&path).unwrap();
    fs_err::create_dir(&path).unwrap();
    assert_eq!(load(&path).await, LoadedState::NoState, "a folder");
}

#[tokio::test]
async fn a_newer_file_is_read_as_far_as_it_is_known() {
    let (_folder, path) = place();
    let text = r#"{"version": 9, "health": {"boot_id": "b", "later": 1}, "news": []}"#;
    fs_err::write(&path, text).unwrap();
    assert_eq!(
        load(&path).await,
        LoadedState::State(Box::new(state_of(9, "b")))
    );
}

fn state_of(version: u32, boot: &str) -> SavedState {
    let mut state = state(boot);
    state.version = version;
    state
}

/// Creates a link to itself, which not even root can read.
fn loop_of_links(path: &Path) {
    std::os::unix::fs::symlink(path, path).unwrap();
}

/// Removes the folder: its disk may not be mounted.
fn no_folder(path: &Path) {
    fs_err::remove_dir(path.parent().unwrap()).unwrap();
}

#[rstest]
#[case::cannot_be_opened(loop_of_links, |path: &Path| fs_err::remove_file(path).unwrap())]
#[case::no_folder(no_folder, |path: &Path| fs_err::create_dir(path.parent().unwrap()).unwrap())]
#[tokio::test]
async fn a_file_that_cannot_be_read_is_tried_until_it_can(
    #[case] hinder: fn(&Path),
    #[case] mend: fn(&Path),
) {
    let (_folder, path) = place();
    hinder(&path);
    let mut reader = reader(&path);
    for _ in 0..2 {
        assert!(matches!(reader.try_read().await, LoadedState::Unread(_)));
        assert!(reader.is_pending());
    }
    mend(&path);
    save(&path, &state("a")).await;
    assert_eq!(
        reader.try_read().await,
        LoadedState::State(Box::new(state("a")))
    );
    assert!(!reader.is_pending());
}

#[tokio::test]
async fn a_file_that_was_read_is_not_read_again_when_it_is_turned_to_once_more() {
    let (folder, path) = place();
    let mut reader = reader(&path);
    assert_eq!(reader.try_read().await, LoadedState::NoState);
    reader.turn_to(Some(folder.path().join("other.json")));
    assert!(reader.is_pending());
    reader.turn_to(Some(path));
    assert!(!reader.is_pending(), "what is in it is of this agent");
    reader.turn_to(None);
    assert!(!reader.is_pending());
}

#[tokio::test]
async fn every_change_reaches_the_file_and_the_last_one_even_when_all_ends() {
    let (_folder, path) = place();
    let keeper = Keeper::new(&path, StateWriter::new(LONG));
    keeper.draft(&path, "1");
    assert_eq!(keeper.settled().await.not_kept(), None);
    has(&path, "1").await;
    keeper.draft(&path, "2");
    keeper.end().await;
    has(&path, "2").await;
}

#[tokio::test]
async fn a_folder_that_is_not_there_ends_nothing_and_is_told() {
    let (folder, _) = place();
    let path = folder.path().join("no/state.json");
    let mut keeper = Keeper::new(&path, StateWriter::new(LONG));
    for boot in ["1", "2"] {
        keeper.draft(&path, boot);
        let problem = keeper.settled().await.not_kept().unwrap();
        assert!(problem.contains("No such file"), "{problem}");
    }
    assert!(keeper.work.try_join_next().is_none());
    keeper.end().await;
}

#[tokio::test]
async fn a_pipe_in_its_place_hangs_nobody_and_is_replaced() {
    let (_folder, path) = place();
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(CWD, &path, kind, Mode::RWXU, 0).unwrap();
    let error = read_state(&path).unwrap_err();
    assert!(error.to_string().contains("not a file"), "{error}");
    assert_eq!(load(&path).await, LoadedState::NoState);
    save(&path, &state("1")).await;
    has(&path, "1").await;
}

#[tokio::test]
async fn garbage_is_set_aside_before_it_is_replaced() {
    let (folder, path) = place();
    let bad = folder.path().join("state.json.bad");
    save(&path, &state("1")).await;
    save(&path, &state("2")).await;
    assert!(!bad.exists());
    fs_err::write(&path, "{\"health\":").unwrap();
    save(&path, &state("3")).await;
    has(&path, "3").await;
    assert_eq!(fs_err::read_to_string(&bad).unwrap(), "{\"health\":");
}

/// Starts a write that hangs until the returned sender is dropped.
async fn hang(writer: &mut StateWriter) -> mpsc::Sender<()> {
    let (hung, disk) = mpsc::channel();
    let write = move || {
        let _ = disk.recv();
        Ok(())
    };
    let late = writer.writing.run_job(Duration::ZERO, write).await;
    assert!(matches!(late, Err(host::lane::Error::Late)));
    hung
}

#[tokio::test]
async fn a_write_that_hangs_is_told_and_no_other_is_begun() {
    let (_folder, path) = place();
    let mut writer = StateWriter::new(Duration::from_millis(20));
    let hung = hang(&mut writer).await;
    for _ in 0..2 {
        let error = writer.write_state(path.clone(), Arc::new(state("1"))).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(!path.exists());
    }
    drop(hung);
    writer.limit = LONG;
    writer
        .write_state(path.clone(), Arc::new(state("2")))
        .await
        .unwrap();
    has(&path, "2").await;
}

#[rstest]
#[case::a_write_is_under_way(true)]
#[case::one_is_to_be_made(false)]
#[tokio::test]
async fn a_disk_that_hangs_does_not_keep_the_agent_from_its_end(#[case] at_work: bool) {
    let (_folder, path) = place();
    let mut writer = StateWriter::new(LONG * 100);
    let _hung = hang(&mut writer).await;
    let keeper = Keeper::new(&path, writer);
    keeper.draft(&path, "1");
    if at_work {
        sleep(Duration::from_millis(50)).await;
    }
    timeout(LONG, keeper.end()).await.unwrap();
}

const SINCE: &str = "2026-01-01T00:00:00Z";

/// Returns a record of the largest size.
fn laden(words: &str, cordoned: bool) -> Value {
    let cordon = json!({"reason": "because ".repeat(125), "since": SINCE});
    json!({
        "backend": "nvidia", "seen": SINCE,
        "events": vec![json!({"xid": u64::MAX, "since": SINCE}); 64],
        "standing": vec![json!({"check": "ecc", "evidence": words, "since": SINCE}); 22],
        "cordon": cordoned.then_some(cordon),
    })
}

/// Returns a state with so many changes and devices, every second device cordoned, with long texts.
fn full(changes: usize, devices: usize) -> SavedState {
    let words = "\u{1f4a5}\\\"\n".repeat(60);
    let cause = json!({
        "kind": "Ecc", "evidence": words, "since": SINCE, "ends_when": words,
    });
    let change = json!({
        "at": SINCE, "device": "GPU-000", "from": "Healthy", "to": "Unhealthy",
        "began": vec![cause.clone(); 20], "ended": vec![cause; 20],
    });
    let id = |n: usize| format!("GPU-{n:03}");
    let laden = |n| (id(n), laden(&words, n % 2 == 0));
    let facts = |n| (id(n), json!({"model": words}));
    let state = json!({
        "health": {
            "devices": (0..devices).map(laden).collect::<serde_json::Map<_, _>>(),
            "history": vec![change; changes],
        },
        "facts": (0..devices).map(facts).collect::<serde_json::Map<_, _>>(),
    });
    serde_json::from_value(state).unwrap()
}

#[test]
fn what_is_written_can_be_read_again_however_much_it_is() {
    let state = full(64, 256);
    assert_eq!(state.health.devices.len(), 256);
    assert!(serde_json::to_vec(&state).unwrap().len() > 2 * MOST);
    let text = state.to_file_text().unwrap();
    assert!(text.len() <= MOST, "{} bytes", text.len());
    let (_folder, path) = place();
    fs_err::write(&path, &text).unwrap();
    let again = read_state(&path).unwrap().unwrap();
    let kept: Vec<&str> = again.health.devices.keys().map(DeviceId::as_str).collect();
    let cordoned = (0..256).step_by(2).map(|n| format!("GPU-{n:03}"));
    assert_eq!(kept, cordoned.collect::<Vec<_>>());
    assert!(again.facts.keys().eq(again.health.devices.keys()));
}

#[test]
fn what_is_not_too_long_is_written_as_it_is() {
    let state = full(8, 64);
    let text = state.to_file_text().unwrap();
    assert!(serde_json::from_slice::<SavedState>(&text).unwrap() == state);
}
