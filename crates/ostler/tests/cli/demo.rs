//! `ostler demo`: every step succeeds, and nothing is left behind.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, Output, Stdio},
};

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};

use crate::text;

/// Demo in an empty temporary folder with a short path.
struct Rig {
    tmp: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let tmp = sim::scratch().unwrap();
        Self { tmp }
    }

    fn command(&self, args: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_ostler")), args)
    }

    fn command_of(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .arg("demo")
            .args(args)
            .env("TMPDIR", self.tmp.path())
            // A variable for the user's own agent, which the demo's agent must not use.
            .env("OSTLER_CONFIG", "/nowhere/ostler.yaml")
            .env("OSTLER_DRIVER_PATH", "/nowhere")
            .env_remove("OSTLER_LOG")
            .env_remove("OSTLER_LOG_FORMAT")
            .env_remove("COLUMNS")
            // Only root can write there: the demo must write to its own folder alone.
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn is_clean(&self) -> bool {
        let left = fs_err::read_dir(self.tmp.path()).unwrap().count();
        left == 0 && !is_in_use(self.tmp.path())
    }
}

/// True if a process has a path in its command line.
fn is_in_use(path: &Path) -> bool {
    let path = path.to_str().unwrap();
    let mut processes = fs_err::read_dir("/proc").unwrap().flatten();
    processes.any(|process| {
        let line = fs_err::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(path)
    })
}

#[rstest]
#[case("dgx-a100")]
#[case("t4")]
#[case("a100-mig")]
#[case("wsl")]
#[case("tegra")]
fn the_story_is_told_to_its_end_in_plain_lines(#[case] profile: &str) {
    let rig = Rig::new();
    let output = rig.run(&["--oneshot", "--profile", profile]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    assert!(rig.is_clean());
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"(GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27}", "$1-[uuid]");
    settings.add_filter(r"-[0-9a-f]{8}-\d+\.sock", "-[nonce].sock");
    settings.add_filter(r"/\S+/node/libnvidia", "[node]/libnvidia");
    settings.add_filter(r"\d+(\.\d)? m?s\b", "[time]");
    // The call that finds the loss first depends on timing.
    settings.add_filter(r"nvml\w+: GPU_IS_LOST", "[call]: GPU_IS_LOST");
    settings.bind(|| insta::assert_snapshot!(profile, text(&output.stdout)));
}

#[test]
fn a_copy_of_the_program_needs_no_other_file() {
    let (rig, folder) = (Rig::new(), tempfile::tempdir().unwrap());
    let copy = folder.path().join("ostler");
    fs_err::copy(env!("CARGO_BIN_EXE_ostler"), &copy).unwrap();
    let output = rig.command_of(&copy, &["--oneshot"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(rig.is_clean());
}

#[test]
fn it_ends_by_itself_where_nobody_watches() {
    let rig = Rig::new();
    let output = rig.run(&["--profile", "t4"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(rig.is_clean());
}

#[rstest]
#[case(Signal::INT)]
#[case(Signal::TERM)]
fn a_signal_ends_it_and_nothing_is_left(#[case] signal: Signal) {
    let rig = Rig::new();
    let mut child = rig
        .command(&["--oneshot"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    while !is_in_use(rig.tmp.path()) {
        // A new process has no command line for a moment. The demo prints line by line meanwhile.
        let read = lines.read_line(&mut String::new()).unwrap();
        assert!(read > 0, "the story ended, and no agent was seen");
    }
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
    let status = child.wait().unwrap();
    lines.read_to_string(&mut String::new()).unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(rig.is_clean());
}

#[test]
fn it_ends_and_cleans_up_when_nobody_reads_any_more() {
    let rig = Rig::new();
    let mut child = rig
        .command(&["--oneshot"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(text(&output.stderr), "");
    assert!(rig.is_clean());
}

#[test]
fn a_story_that_does_not_happen_fails_and_keeps_the_log() {
    let rig = Rig::new();
    let profile = rig.tmp.path().join("empty.yaml");
    let yaml = "name: empty\ndescription: a machine without GPUs\n\
                driver: {version: 580.95.05, nvml: 13.580.95.05, cuda: 13000}\nnuma: []\ngpus: []\n";
    fs_err::write(&profile, yaml).unwrap();
    let output = rig.run(&["--oneshot", "--profile", profile.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    let log = error
        .split_whitespace()
        .find(|word| word.ends_with("agent.log"));
    let log = fs_err::read_to_string(log.unwrap()).unwrap();
    assert!(log.contains("ostler starts"), "{log}");
    assert!(
        error.contains("the node has no resource to ask for"),
        "{error}"
    );
    assert!(!is_in_use(rig.tmp.path()));
}

#[test]
fn a_wrong_profile_is_named_with_those_there_are() {
    let output = Rig::new().run(&["--profile", "cray"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.contains("`cray`") && error.contains("dgx-a100"),
        "{error}"
    );
}

#[test]
fn a_temporary_folder_with_a_long_path_is_not_used() {
    let rig = Rig::new();
    let long = rig.tmp.path().join("x".repeat(90));
    fs_err::create_dir(&long).unwrap();
    let output = rig
        .command(&["--oneshot", "--profile", "t4"])
        .env("TMPDIR", &long)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn the_help_says_what_happens() {
    let output = Rig::new().run(&["--help"]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    assert!(
        help.contains("--oneshot") && help.contains("--profile"),
        "{help}"
    );
    // Another test has the options that all commands share.
    let (own, _) = help.split_once("Options:").unwrap();
    insta::assert_snapshot!("help", own);
}
