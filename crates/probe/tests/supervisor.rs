//! The supervisor against probes that are shell scripts: they crash, hang, talk nonsense and
//! recover, and the supervisor goes on.

use std::{path::Path, time::Duration};

use model::Phase;
use probe::{
    Sighting, Update,
    protocol::CardRef,
    supervisor::{Children, Limits, Orders, Program, Settings, Which, run},
};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

const HELLO: &str = r#"echo '{"type":"hello","protocol":1,"probe":"test","version":"1"}'"#;
const BEAT: &str = r#"echo '{"type":"beat"}'"#;
const LIVE: &str = "while true; do echo '{\"type\":\"beat\"}'; sleep 0.1; done";

/// A report of two cards at 0000:01:00.0 and 0000:02:00.0, without those on the command line.
const CARDS: &str = r#"
    card() { printf '{"id":"GPU-%s","vendor":"test","kind":"card","model":"X","pci":"0000:0%s:00.0"}' $1 $1; }
    case "$*" in
    *--skip=0000:01:00.0*) echo '{"type":"report","devices":['$(card 2)'],"skipped":["0000:01:00.0"]}' ;;
    *--only=0000:01:00.0*) echo '{"type":"report","devices":['$(card 1)']}' ;;
    *) echo '{"type":"report","devices":['$(card 1),$(card 2)']}' ;;
    esac
"#;

struct Rig {
    updates: mpsc::Receiver<Update>,
    orders: Orders,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl Rig {
    fn new(folder: &Path, script: &str) -> Self {
        Self::with(folder, script, |_| {})
    }

    fn with(folder: &Path, script: &str, change: impl FnOnce(&mut Limits)) -> Self {
        Self::from(folder, script, |settings| change(&mut settings.limits))
    }

    fn from(folder: &Path, script: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let path = folder.join("probe.sh");
        fs_err::write(&path, script).expect("a temporary folder is writable");
        let mut settings = Settings {
            name: "test".to_owned(),
            program: Program {
                path: "/bin/sh".into(),
                args: vec![path.display().to_string()],
            },
            limits: Limits {
                call: Duration::from_secs(1),
                driver_call: Duration::from_secs(3),
                silence: Duration::from_secs(2),
                pause: Duration::from_millis(200),
                ..Limits::default()
            },
            children: Children::default(),
            orders: Orders::default(),
        };
        change(&mut settings);
        let (sender, updates) = mpsc::channel(64);
        let orders = settings.orders.clone();
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(run(settings, sender, cancel.clone()));
        Self {
            updates,
            orders,
            cancel,
            tasks,
        }
    }

    /// Waits for a picture that fits.
    async fn until(&mut self, fits: impl Fn(&Sighting) -> bool) -> Sighting {
        let mut last = None;
        let found = timeout(Duration::from_secs(30), async {
            loop {
                if let Update::Sighting(sighting) = self.updates.recv().await.expect("it runs") {
                    if fits(&sighting) {
                        return *sighting;
                    }
                    last = Some(sighting);
                }
            }
        });
        found
            .await
            .unwrap_or_else(|_| panic!("no such picture; the last one: {last:#?}"))
    }

    async fn stop(mut self) {
        self.cancel.cancel();
        timeout(Duration::from_secs(5), self.tasks.join_next())
            .await
            .expect("stops by itself");
    }
}

fn ids(sighting: &Sighting) -> Vec<&str> {
    sighting.devices.iter().map(|d| d.id.as_str()).collect()
}

fn runs_with_both(sighting: &Sighting) -> bool {
    sighting.backend.phase == Phase::Running && ids(sighting) == ["GPU-1", "GPU-2"]
}

#[tokio::test]
async fn a_probe_that_dies_is_started_again_and_its_devices_are_kept_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let die = folder.path().join("die");
    let script = format!(
        "{HELLO}\n{CARDS}\nwhile [ ! -e {0} ]; do {BEAT}; sleep 0.1; done; rm {0}; kill -9 $$",
        die.display()
    );
    let mut rig = Rig::new(folder.path(), &script);
    rig.until(runs_with_both).await;
    fs_err::write(&die, "").unwrap();
    let down = rig.until(|s| s.unwatched.is_some()).await;
    assert_eq!(down.backend.phase, Phase::Failing);
    assert_eq!(ids(&down), ["GPU-1", "GPU-2"]);
    rig.until(runs_with_both).await;
    rig.stop().await;
}

#[tokio::test]
async fn a_card_whose_call_hangs_is_named_left_out_tried_alone_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let hang = folder.path().join("hang");
    let (tried, whole) = (folder.path().join("tried"), folder.path().join("whole"));
    let call =
        r#"{"call":"nvmlDeviceGetUUID","device":"0000:01:00.0","since":"2026-01-01T00:00:00Z"}"#;
    let script = format!(
        r#"{HELLO}
        case "$*" in *--only*) echo "$*" >> {tried};; *) echo "$*" >> {whole};; esac
        case "$*" in *--skip*) {CARDS};; *)
            while [ -e {hang} ]; do echo '{{"type":"beat","calls":[{call}]}}'; sleep 0.1; done; {CARDS};;
        esac
        {LIVE}"#,
        hang = hang.display(),
        tried = tried.display(),
        whole = whole.display(),
    );
    fs_err::write(&hang, "").unwrap();
    let deep = "--deep-command=memtest";
    let mut rig = Rig::from(folder.path(), &script, |settings| {
        settings.program.args.push(deep.to_owned());
    });

    let without = rig.until(|s| ids(s) == ["GPU-2"]).await;
    let stuck = &without.backend.stuck[0];
    assert_eq!(stuck.call, "nvmlDeviceGetUUID");
    assert_eq!(stuck.device.as_deref(), Some("0000:01:00.0"));
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
    let tried = fs_err::read_to_string(&tried).expect("the card was tried alone");
    assert!(!tried.contains(deep), "{tried}");
    assert!(fs_err::read_to_string(&whole).unwrap().contains(deep));
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
    let mut rig = Rig::new(folder.path(), &script);
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
    "--no-events"
)]
#[case::links(r#"{"call":"nvmlDeviceGetNvLinkState","device":"0000:01:00.0","since":"2026-01-01T00:00:00Z","work":"links"}"#, "--no-links")]
#[tokio::test]
async fn what_can_be_left_out_and_hangs_is_left_out_and_costs_no_card(
    #[case] call: &str,
    #[case] flag: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        r#"{HELLO}
        {CARDS}
        case "$*" in *{flag}*) {LIVE};; esac
        while true; do echo '{{"type":"beat","calls":[{call}]}}'; sleep 0.1; done"#
    );
    let mut rig = Rig::new(folder.path(), &script);
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
    let mut rig = Rig::new(folder.path(), &script);
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
async fn warnings_are_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let report = r#"{"type":"report","devices":[],"warnings":["no events are heard"]}"#;
    let script = format!("{HELLO}\necho '{report}'\n{LIVE}");
    let mut rig = Rig::new(folder.path(), &script);
    let warned = rig.until(|s| s.backend.phase == Phase::Running).await;
    assert_eq!(warned.backend.message, "no events are heard");
    rig.stop().await;
}

#[tokio::test]
async fn nonsense_is_ignored_until_it_is_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "{HELLO}\necho rubbish\necho '{{\"type\":\"later-version\"}}'\n{CARDS}\nsleep 0.5\nwhile true; do echo rubbish; done"
    );
    let mut rig = Rig::new(folder.path(), &script);
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
        format!(r#"echo '{{"type":"hello","protocol":9,"probe":"x","version":"1"}}'; {LIVE}"#);
    let mut rig = Rig::new(folder.path(), &script);
    let down = rig.until(|s| s.unwatched.is_some()).await;
    assert!(
        down.backend
            .message
            .contains("version 9 of the protocol, this agent version 1")
    );
    rig.stop().await;
}

#[tokio::test]
async fn no_probe_is_started_while_too_many_that_were_given_up_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{HELLO}\n{CARDS}\n{LIVE}");
    // A process that survives SIGKILL cannot be had here, so none may be left at all.
    let mut rig = Rig::with(folder.path(), &script, |limits| limits.stuck_processes = 0);
    let held = rig.until(|s| s.unwatched.is_some()).await;
    assert!(
        held.backend.message.contains("no other is started"),
        "{held:#?}"
    );
    assert!(held.devices.is_empty());
    rig.stop().await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, updates) = mpsc::channel(64);
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let settings = Settings {
        name: "test".to_owned(),
        program: Program {
            path: folder.path().join("absent"),
            args: Vec::new(),
        },
        limits: Limits::default(),
        children: Children::default(),
        orders: Orders::default(),
    };
    tasks.spawn(run(settings, sender, cancel.clone()));
    let mut rig = Rig {
        updates,
        orders: Orders::default(),
        cancel,
        tasks,
    };
    let down = rig.until(|s| s.unwatched.is_some()).await;
    assert!(down.backend.message.contains("absent cannot be started"));
    rig.stop().await;
}

/// A script that writes down each process that begins and ends.
fn logged(folder: &Path) -> String {
    let log = folder.join("log");
    format!(
        r#"{HELLO}
        echo "begin $*" >> {log}
        trap 'echo "end $*" >> {log}; exit 0' EXIT
        {CARDS}
        (while true; do {BEAT}; sleep 0.1; done) & beats=$!
        while read line; do case "$line" in *refresh*) {CARDS} ;; esac; done
        kill $beats"#,
        log = log.display(),
    )
}

fn log(folder: &Path) -> String {
    fs_err::read_to_string(folder.join("log")).unwrap_or_default()
}

fn card() -> CardRef {
    "0000:01:00.0".parse().expect("an address")
}

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_released_card_is_closed_and_the_others_go_on_being_watched() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = Rig::new(folder.path(), &logged(folder.path()));
    let before = rig.until(runs_with_both).await;
    assert!(before.released.is_empty());

    let until = rig.orders.release(Which::Card(card()), LONG);
    let closed = rig
        .until(|s| s.released.cards.get(&card()).is_some_and(|r| r.closed) && s.devices.len() == 1)
        .await;
    assert_eq!(closed.released.cards[&card()].until, until);
    assert_eq!(ids(&closed), ["GPU-2"]);
    assert_eq!(closed.unwatched, None);
    assert!(closed.stuck.is_empty(), "it is no trouble");
    assert!(log(folder.path()).contains("end \n"));
    timeout(Duration::from_secs(30), async {
        while !log(folder.path()).contains("begin --skip=0000:01:00.0") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("another process watches the others");

    assert!(rig.orders.resume(Which::Card(card())));
    let back = rig.until(runs_with_both).await;
    assert!(back.released.is_empty(), "{back:#?}");
    assert!(
        !rig.orders.resume(Which::Card(card())),
        "nothing is released"
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_card_that_is_taken_back_counts_as_released_until_it_is_seen_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = Rig::new(folder.path(), &logged(folder.path()));
    rig.until(runs_with_both).await;
    rig.orders.release(Which::Card(card()), LONG);
    rig.until(|s| s.released.cards.get(&card()).is_some_and(|r| r.closed))
        .await;
    rig.orders.resume(Which::Card(card()));
    let missing = |s: &Sighting| !ids(s).contains(&"GPU-1");
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
    let mut rig = Rig::new(folder.path(), &logged(folder.path()));
    rig.until(runs_with_both).await;
    rig.orders.release(Which::All, Duration::from_secs(3));
    let closed = rig
        .until(|s| s.released.all.is_some_and(|r| r.closed))
        .await;
    assert_eq!(
        (closed.backend.phase, closed.devices.len()),
        (Phase::Running, 0)
    );
    assert_eq!(closed.unwatched, None);
    assert!(closed.backend.message.starts_with("released until "));
    let said = log(folder.path());
    assert_eq!(
        said.matches("begin").count(),
        said.matches("end").count(),
        "{said}"
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
    orders.release(Which::Card(card()), LONG);
    let given = orders.clone();
    let mut rig = Rig::from(folder.path(), &script, |settings| settings.orders = given);
    let seen = rig.until(|s| s.backend.phase == Phase::Running).await;
    assert_eq!(ids(&seen), ["GPU-2"]);
    assert!(seen.released.cards[&card()].closed);
    assert!(!log(folder.path()).contains("begin \n"));
    rig.stop().await;
}

#[tokio::test]
async fn a_stuck_card_that_is_released_is_not_tried() {
    let folder = tempfile::tempdir().unwrap();
    let tried = folder.path().join("tried");
    let call = r#"{"call":"x","device":"0000:01:00.0","since":"2026-01-01T00:00:00Z"}"#;
    let script = format!(
        r#"{HELLO}
        case "$*" in *--only*) echo x >> {tried};; esac
        case "$*" in *--skip*) {CARDS}
            {LIVE};;
        esac
        while true; do echo '{{"type":"beat","calls":[{call}]}}'; sleep 0.1; done"#,
        tried = tried.display(),
    );
    let mut rig = Rig::with(folder.path(), &script, |limits| {
        limits.pause = Duration::from_secs(2);
    });
    rig.until(|s| !s.stuck.is_empty() && ids(s) == ["GPU-2"])
        .await;
    rig.orders.release(Which::Card(card()), LONG);
    rig.until(|s| !s.released.is_empty()).await;
    let _ = fs_err::remove_file(&tried);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!tried.exists(), "its next try was due long ago");
    rig.orders.resume(Which::All);
    timeout(Duration::from_secs(30), async {
        while !tried.exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("it is tried again");
    rig.stop().await;
}

#[tokio::test]
async fn a_refresh_is_answered_by_a_picture_even_if_nothing_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = Rig::new(folder.path(), &logged(folder.path()));
    let before = rig.until(runs_with_both).await;
    rig.orders.refresh();
    let after = rig.until(|_| true).await;
    assert_eq!(after, before);
    rig.stop().await;
}
