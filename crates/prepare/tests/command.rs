//! Tests of commands as processes: their environment, their end, and the end of their descendants.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

use std::{ffi::OsString, future::pending, path::Path, time::Duration};

use prepare::command::{CommandCall, EndCause, EndedCommand, Error, Runner, TAIL};
use probe::supervisor::ChildRegistry;
use rstest::rstest;
use tokio::time::{Instant, sleep, timeout};

/// Time limit of waits, far above the times that are tested.
const LONG: Duration = Duration::from_secs(60);

/// Shell text that starts a process and writes its id to a file, which appears complete.
const START: &str = "sleep 1000 & echo $! > MARK.new; mv MARK.new MARK";

fn runner() -> Runner {
    let shim = OsString::from(env!("CARGO_BIN_EXE_prepare-shim"));
    let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
    let own = ("A_VARIABLE_OF_THE_AGENT".into(), "its value".into());
    Runner::new([shim], [path, own], ChildRegistry::default())
}

fn script(text: &str) -> [String; 3] {
    ["/bin/sh", "-c", text].map(str::to_owned)
}

async fn run(text: &str) -> EndedCommand {
    let command = script(text);
    let call = CommandCall {
        command: &command,
        about: vec![("OSTLER_DEVICE", "GPU-1".to_owned())],
    };
    let deadline = Instant::now() + LONG;
    runner().run_to_end(&call, deadline).await.unwrap()
}

/// Waits until a file exists, and returns its text.
async fn note(file: &Path) -> String {
    let text = timeout(LONG, async {
        loop {
            match fs_err::read_to_string(file) {
                Ok(text) => return text.trim().to_owned(),
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        }
    });
    text.await.expect("the command says so")
}

/// True if a process with this id exists.
fn is_there(pid: &str) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

async fn gone(pid: &str) {
    let gone = timeout(LONG, async {
        while is_there(pid) {
            sleep(Duration::from_millis(10)).await;
        }
    });
    gone.await.expect("it ends");
}

#[tokio::test]
async fn the_environment_is_what_every_program_needs_and_what_it_is_for() {
    let ended = run("env | cut -d = -f 1 | grep -v -e '^_$' -e '^PWD$' -e '^SHLVL$' | sort").await;
    assert_eq!(ended.output, "OSTLER_DEVICE\nPATH");
    assert_eq!(run("echo $OSTLER_DEVICE").await.output, "GPU-1");
}

#[tokio::test]
async fn a_failure_is_told_with_the_end_of_both_outputs() {
    let ended = run("echo in use >&2; echo by 7; exit 3").await;
    assert_eq!(ended.output, "in use\nby 7");
    let why = "`/bin/sh` ended with exit status: 3: in use by 7";
    assert_eq!(ended.success().unwrap_err(), why);
    let ended = run(r"head -c 900000 /dev/zero | tr '\0' x; echo last").await;
    assert!(ended.output.ends_with("xlast"), "{}", ended.output);
    assert!(ended.output.len() <= TAIL);
    assert_eq!(ended.success(), Ok(()));
    let killed = run("kill -9 $$").await.success().unwrap_err();
    assert_eq!(killed, "`/bin/sh` ended with signal: 9 (SIGKILL)");
}

#[tokio::test]
async fn what_cannot_be_started_is_no_failure_of_the_command() {
    let command = ["/no/such/program".to_owned()];
    let call = CommandCall {
        command: &command,
        about: Vec::new(),
    };
    let error = runner().run_to_end(&call, Instant::now() + LONG).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Start { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("`/no/such/program` cannot be started: No such file"));
    let call = CommandCall {
        command: &[],
        about: Vec::new(),
    };
    assert!(matches!(runner().start_command(&call), Err(Error::Empty)));
}

/// Shell texts of commands that leave their process group or session in different ways.
const WAYS: [&str; 3] = [
    "echo begun; START; wait",
    "echo begun; (setsid sh -c 'START; wait' &); sleep 1000",
    "trap '' TERM HUP; echo begun; setsid sh -c 'START; wait' & wait",
];

fn way(index: usize, mark: &Path) -> String {
    let way = WAYS[index].replace("START", START);
    way.replace("MARK", &mark.display().to_string())
}

#[rstest]
#[tokio::test]
async fn one_that_takes_too_long_is_ended_with_all_that_it_started(
    #[values(0, 1, 2)] index: usize,
) {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("pid");
    let command = script(&way(index, &mark));
    let call = CommandCall {
        command: &command,
        about: Vec::new(),
    };
    let mut running = runner().start_command(&call).unwrap();
    let pid = note(&mark).await;
    assert!(is_there(&pid));
    let ended = running
        .wait_for_end(Instant::now(), pending())
        .await
        .unwrap();
    assert_eq!(ended.fate, EndCause::Late);
    timeout(LONG, running.wait_until_gone())
        .await
        .expect("all of it ends");
    assert!(!is_there(&pid), "nothing is left when its shim is gone");
}

#[tokio::test]
async fn one_that_is_stopped_is_ended_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("pid");
    let command = script(&way(1, &mark));
    let call = CommandCall {
        command: &command,
        about: Vec::new(),
    };
    let mut running = runner().start_command(&call).unwrap();
    let stop = async { drop(note(&mark).await) };
    let ended = running
        .wait_for_end(Instant::now() + LONG, stop)
        .await
        .unwrap();
    assert_eq!(
        (ended.fate, ended.output.as_str()),
        (EndCause::Stopped, "begun")
    );
    gone(&note(&mark).await).await;
}

#[tokio::test]
async fn one_that_nobody_waits_for_is_ended_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("pid");
    let command = script(&way(1, &mark));
    let call = CommandCall {
        command: &command,
        about: Vec::new(),
    };
    let running = runner().start_command(&call).unwrap();
    let pid = note(&mark).await;
    drop(running);
    gone(&pid).await;
}

/// The process is made as a daemon makes itself: two forks, a session of its own, no parent.
#[tokio::test]
async fn what_a_command_leaves_behind_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("pid");
    let text =
        format!("(setsid sh -c '{START}' &); while [ ! -e MARK ]; do sleep 0.01; done; echo well");
    let ended = run(&text.replace("MARK", &mark.display().to_string())).await;
    assert_eq!((ended.success(), ended.output.as_str()), (Ok(()), "well"));
    gone(&note(&mark).await).await;
}

#[tokio::test]
async fn a_process_is_nobody_elses_to_reap_while_it_runs() {
    let children = ChildRegistry::default();
    let shim = OsString::from(env!("CARGO_BIN_EXE_prepare-shim"));
    let runner = Runner::new([shim], [], children.clone());
    let command = script("exec sleep 1000");
    let call = CommandCall {
        command: &command,
        about: Vec::new(),
    };
    let running = runner.start_command(&call).unwrap();
    let ours = || {
        host::tree::list_children()
            .into_iter()
            .find(|pid| children.contains(*pid))
    };
    let shim = ours().expect("it is written down");
    drop(running);
    assert!(!children.contains(shim));
}
