//! `ostler sim`: every command does what it says to a node, and says what it did.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Output, Stdio},
};

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};
use sim::{Effect, Node};

/// A node in a temporary folder.
struct Rig {
    folder: tempfile::TempDir,
}

impl Rig {
    /// A folder without a node.
    fn empty() -> Self {
        let folder = tempfile::Builder::new().prefix("sim").tempdir_in("/tmp");
        Self {
            folder: folder.unwrap(),
        }
    }

    fn new(profile: &str) -> Self {
        let rig = Self::empty();
        let dir = rig.dir();
        let output = rig.ostler(&["create", dir.to_str().unwrap(), "--profile", profile]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        rig
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("node")
    }

    fn node(&self) -> Node {
        Node::open(&self.dir()).unwrap()
    }

    /// Runs a command without naming a node.
    fn ostler(&self, args: &[&str]) -> Output {
        let mut command = ostler(args);
        command.output().unwrap()
    }

    fn on_node(&self, args: &[&str]) -> Output {
        ostler(args)
            .env("OSTLER_SIM_NODE", self.dir())
            .output()
            .unwrap()
    }

    /// What a command that succeeds says.
    fn says(&self, args: &[&str]) -> String {
        let output = self.on_node(args);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// What a command that fails says, and its exit status.
    fn complains(&self, args: &[&str]) -> (i32, String) {
        let output = self.on_node(args);
        (output.status.code().unwrap(), text(&output.stderr))
    }

    /// A text without what differs from run to run.
    fn plain(&self, text: &str) -> String {
        let folder = self.folder.path().to_str().unwrap();
        text.replace(folder, "[folder]")
            .replace(env!("CARGO_BIN_EXE_ostler"), "ostler")
    }
}

fn ostler(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
    command
        .arg("sim")
        .args(args)
        .env_remove("OSTLER_SIM_NODE")
        .env_remove("OSTLER_LOG")
        .env_remove("OSTLER_LOG_FORMAT")
        .env_remove("COLUMNS")
        .stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_help_begins_with_examples() {
    let help = Rig::empty().ostler(&["--help"]);
    let help = text(&help.stdout);
    // The options of all commands are another test's.
    let (own, _) = help.split_once("Options:").unwrap();
    insta::assert_snapshot!("help", own);
}

#[test]
fn a_new_node_comes_with_its_use() {
    let rig = Rig::empty();
    let output = rig.ostler(&["create", rig.dir().to_str().unwrap()]);
    assert!(output.status.success());
    insta::assert_snapshot!("create", rig.plain(&text(&output.stdout)));
    assert_eq!(rig.node().gpus().unwrap().len(), 8);
}

#[test]
fn a_node_is_made_from_a_file_too() {
    let rig = Rig::empty();
    let file = rig.folder.path().join("mine.yaml");
    let yaml = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/profiles/t4.yaml");
    fs_err::copy(yaml, &file).unwrap();
    let dir = rig.dir();
    let made = [
        "create",
        dir.to_str().unwrap(),
        "--profile",
        file.to_str().unwrap(),
    ];
    assert!(rig.ostler(&made).status.success());
    assert_eq!(rig.node().gpus().unwrap().len(), 1);
}

#[test]
fn profiles_and_nodes_are_shown_as_tables() {
    let rig = Rig::new("a100-mig");
    insta::assert_snapshot!("profiles", rig.says(&["profiles"]));
    insta::assert_snapshot!("show", rig.plain(&rig.says(&["show"])));
}

#[test]
fn a_node_is_shown_for_programs_too() {
    let rig = Rig::new("t4");
    let json = rig.says(&["show", "-o", "json"]);
    let state: sim::state::State = serde_json::from_str(&json).unwrap();
    assert_eq!(state, rig.node().state().unwrap());
    assert!(rig.says(&["show", "-o", "yaml"]).contains("profile: t4"));
}

#[test]
fn the_node_is_named_by_flag_or_variable() {
    let rig = Rig::new("t4");
    let dir = rig.dir();
    let flag = rig.ostler(&["--node", dir.to_str().unwrap(), "show"]);
    assert_eq!(text(&flag.stdout), rig.says(&["show"]));
}

#[rstest]
#[case("2")]
#[case("0000:47:00.0")]
fn a_card_is_lost_and_restored(#[case] target: &str) {
    let rig = Rig::new("dgx-a100");
    let uuid = rig.node().gpus().unwrap()[2].uuid.clone();
    let lost = |rig: &Rig| rig.node().gpus().unwrap()[2].lost;
    assert_eq!(
        rig.says(&["lose", target]),
        format!("GPU 2 ({uuid}) has fallen off the bus\n")
    );
    assert!(lost(&rig));
    assert!(rig.says(&["show"]).contains("lost"));
    assert_eq!(
        rig.says(&["restore", target]),
        format!("GPU 2 ({uuid}) is back on the bus\n")
    );
    assert!(!lost(&rig));
}

#[test]
fn events_reach_the_driver() {
    let rig = Rig::new("a100-mig");
    let said = rig.says(&["xid", "1:3", "79"]);
    assert!(
        said.starts_with("the driver reports XID 79 (GPU has fallen off the bus)"),
        "{said}"
    );
    assert!(said.contains("MIG device 1:3 (MIG-"), "{said}");
    rig.says(&["ecc", "0", "uncorrected"]);
    let events = fs_err::read_to_string(rig.dir().join("events.jsonl")).unwrap();
    assert_eq!(events.lines().count(), 2);
    assert_eq!(
        rig.node().state().unwrap().gpus[0].sensors.ecc_uncorrected,
        1
    );
}

#[test]
fn calls_hang_and_fail_until_cleared() {
    let rig = Rig::new("dgx-a100");
    let uuid = rig.node().gpus().unwrap()[3].uuid.clone();
    let memory = "nvmlDeviceGetMemoryInfo";
    let said = rig.says(&["hang", memory, "--device", "3", "--for", "10s"]);
    assert_eq!(said, format!("{memory} hangs for 10s on GPU 3 ({uuid})\n"));
    let said = rig.says(&["fail", "*", "gpu_is_lost"]);
    assert_eq!(
        said,
        "every NVML call fails with GPU_IS_LOST on all devices\n"
    );
    let faults = rig.node().state().unwrap().faults;
    assert_eq!(faults[0].device, Some(uuid));
    assert_eq!(
        faults[0].effect,
        Effect::Hang {
            millis: Some(10_000)
        }
    );
    assert_eq!(faults[1].effect, Effect::Fail { code: 15 });
    let shown = rig.says(&["show"]);
    assert!(
        shown.contains("fault: nvmlDeviceGetMemoryInfo hangs for 10000 ms"),
        "{shown}"
    );
    assert_eq!(rig.says(&["clear", memory]), "one fault has ended\n");
    assert_eq!(rig.says(&["clear"]), "one fault has ended\n");
    assert!(rig.node().state().unwrap().faults.is_empty());
    assert!(rig.says(&["clear"]).contains("no such fault"));
}

#[test]
fn sensors_move() {
    let rig = Rig::new("t4");
    rig.says(&["set", "all", "temperature", "90"]);
    assert_eq!(rig.node().state().unwrap().gpus[0].sensors.temperature, 90);
    let (code, error) = rig.complains(&["set", "0", "smell", "1"]);
    assert_eq!(code, 1);
    assert!(
        error.contains("`smell`") && error.contains("temperature"),
        "{error}"
    );
}

#[test]
fn cards_come_and_go() {
    let rig = Rig::new("dgx-a100");
    assert!(rig.says(&["remove-gpu", "7"]).contains("is taken out"));
    assert_eq!(rig.node().gpus().unwrap().len(), 7);
    assert!(rig.says(&["add-gpu"]).contains("is put in at 0000:bd:00.0"));
    let added = rig.says(&[
        "add-gpu",
        "--pci",
        "0000:f0:00.0",
        "--model",
        "t4",
        "--numa",
        "2",
    ]);
    assert!(added.starts_with("GPU 8 ("), "{added}");
    let gpu = rig.node().gpus().unwrap()[8].clone();
    assert_eq!((gpu.name.as_str(), gpu.numa), ("Tesla T4", Some(2)));
}

#[test]
fn mig_devices_come_and_go() {
    let rig = Rig::new("dgx-a100");
    let (code, error) = rig.complains(&["add-mig", "3", "1g.5gb"]);
    assert_eq!(code, 1);
    assert!(error.contains("ostler sim mig on"), "{error}");
    rig.says(&["mig", "on", "3"]);
    assert!(rig.says(&["add-mig", "3", "1g.5gb"]).contains("MIG-"));
    assert_eq!(rig.node().migs().unwrap()[0].index, "3:0");
    assert!(rig.says(&["remove-mig", "3:0"]).contains("MIG device 3:0"));
    assert!(rig.node().migs().unwrap().is_empty());
    rig.says(&["mig", "off", "3"]);
    assert!(!rig.node().gpus().unwrap()[3].mig_enabled);
}

#[test]
fn the_driver_comes_and_goes() {
    let rig = Rig::new("t4");
    rig.says(&["unplug-driver"]);
    assert!(!rig.node().library().exists());
    assert!(rig.says(&["show"]).contains("ostler sim plug-driver"));
    rig.says(&["plug-driver"]);
    assert!(rig.node().library().exists());
}

#[test]
fn calls_are_recorded_once_asked_for() {
    let rig = Rig::new("t4");
    assert_eq!(rig.says(&["calls"]), "");
    rig.says(&["trace"]);
    let node = rig.node();
    let devices = Command::new(env!("CARGO_BIN_EXE_ostler"))
        .args(["devices", "--control-socket"])
        .arg(rig.folder.path().join("none.sock"))
        .arg("--host-root")
        .arg(node.root())
        .arg("--nvml-library")
        .arg(node.library())
        .output()
        .unwrap();
    assert!(text(&devices.stdout).contains("Tesla T4"));
    assert!(rig.says(&["calls"]).contains("nvmlInit"));
}

#[rstest]
#[case(&["lose", "9"], 1, "there is no device 9 on this node; `ostler sim show`")]
#[case(&["xid", "GPU-0", "79"], 1, "there is no device GPU-0")]
#[case(&["lose", "first"], 64, "`first` names no device")]
#[case(&["xid", "0"], 64, "<XID>")]
#[case(&["hang", "memory"], 1, "`memory` is no NVML function")]
#[case(&["hang", "nvmlInit", "--for", "soon"], 64, "`soon` is not a length of time")]
#[case(&["fail", "nvmlInit", "BROKEN"], 64, "GPU_IS_LOST")]
#[case(&["mig", "on", "0"], 1, "has no MIG")]
#[case(&["add-gpu", "--model", "h900"], 1, "no model `h900`")]
#[case(&["dance"], 64, "dance")]
fn a_wrong_command_is_refused_with_the_remedy(
    #[case] args: &[&str],
    #[case] status: i32,
    #[case] remedy: &str,
) {
    let rig = Rig::new("t4");
    let before = rig.node().state().unwrap();
    let (code, error) = rig.complains(args);
    assert_eq!(code, status, "{error}");
    assert!(error.contains(remedy), "{error}");
    assert_eq!(rig.node().state().unwrap(), before);
}

#[test]
fn a_wrong_folder_is_refused_with_the_remedy() {
    let rig = Rig::new("t4");
    let (dir, other) = (rig.dir(), rig.folder.path().join("other"));
    let (dir, other) = (dir.to_str().unwrap(), other.to_str().unwrap());
    let complaint = |args: &[&str], status: i32| {
        let output = rig.ostler(args);
        assert_eq!(output.status.code(), Some(status));
        rig.plain(&text(&output.stderr))
    };
    let errors = [
        complaint(&["show"], 64),
        complaint(&["--node", other, "show"], 1),
        complaint(&["create", dir], 1),
        complaint(&["create", other, "--profile", "cray"], 1),
    ];
    insta::assert_snapshot!("wrong_folders", errors.concat());
    fs_err::write(rig.dir().join("node.json"), "{").unwrap();
    let error = complaint(&["--node", dir, "show"], 1);
    assert!(
        error.contains("cannot use the simulated node in [folder]/node"),
        "{error}"
    );
}

/// A running `ostler sim kubelet`.
struct Terminal {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Terminal {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn types(&mut self, line: &str) {
        let mut input = self.child.stdin.as_ref().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    /// Reads until a line has this in it. The test's own limit ends a wait in vain.
    fn reads(&mut self, wanted: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "the output ended without `{wanted}`: {all}");
            if line.contains(wanted) {
                return line;
            }
            all += &line;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_kubelet_and_an_agent_meet_in_two_terminals() {
    let rig = Rig::new("dgx-a100");
    let (node, plugins) = (rig.node(), rig.folder.path().join("k"));
    let mut kubelet = Terminal::start(ostler(&["kubelet", "--dir"]).arg(&plugins));
    kubelet.reads("the kubelet listens on");
    let again = ostler(&["kubelet", "--dir"])
        .arg(&plugins)
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("choose another folder"));

    let mut agent = Command::new(env!("CARGO_BIN_EXE_ostler"));
    let agent = agent
        .args(["--log", "error", "run", "--kubelet-dir"])
        .arg(&plugins)
        .arg("--host-root")
        .arg(node.root())
        .arg("--nvml-library")
        .arg(node.library())
        .arg("--control-socket")
        .arg(rig.folder.path().join("c.sock"));
    let _agent = Terminal::start(agent);
    kubelet.reads("nvidia.com/gpu: registered on socket ostler-nvidia.com_gpu-");
    kubelet.reads("capacity is 8, allocatable 8");
    kubelet.types("pod train nvidia.com/gpu=2");
    kubelet.reads("pod default/train is admitted");
    kubelet.reads("NVIDIA_VISIBLE_DEVICES=GPU-");
    kubelet.reads("pod default/train, container main gets GPU-");
    kubelet.types("pod greedy nvidia.com/gpu=9");
    kubelet.reads("pod default/greedy is refused");
    kubelet.types("dance");
    kubelet.reads("`dance` is no command");
    kubelet.types("remove train");
    kubelet.reads("pod default/train is removed");
    kubelet.types("restart");
    kubelet.reads("the kubelet has restarted");
    kubelet.reads("nvidia.com/gpu: registered on socket");
    let pid = Pid::from_raw(kubelet.child.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert!(kubelet.child.wait().unwrap().success());
}

#[test]
fn says_who_has_a_card_open_and_resets_none_that_somebody_has() {
    let rig = Rig::new("dgx-a100");
    let me = std::process::id().to_string();
    let open = fs_err::File::open(rig.node().root().join("dev/nvidia2")).unwrap();
    let table = rig.says(&["open"]);
    let row = table.lines().find(|line| line.contains("/dev/nvidia2"));
    assert!(row.unwrap().contains(&me), "{table}");

    rig.says(&["set", "all", "recovery-action", "1"]);
    let refused = rig.on_node(&["reset", "2"]);
    assert!(!refused.status.success());
    let why = text(&refused.stderr);
    assert!(why.contains(&me) && why.contains("--force"), "{why}");
    assert!(!rig.on_node(&["reload-driver"]).status.success());
    rig.says(&["reset", "3", "--for", "1ms"]);
    rig.says(&["reset", "2", "--force", "--for", "1ms"]);
    let actions = || -> Vec<u64> {
        let gpus = rig.node().state().unwrap().gpus.into_iter();
        gpus.map(|gpu| gpu.sensors.recovery_action).collect()
    };
    assert_eq!(actions(), [1, 1, 0, 0, 1, 1, 1, 1]);
    drop(open);
    rig.says(&["reload-driver"]);
    assert_eq!(actions(), [0; 8]);
    rig.says(&["reboot"]);
    assert_eq!(rig.node().state().unwrap().reboots, 1);
}

#[test]
fn puts_processes_on_a_card_and_takes_links_down() {
    let rig = Rig::new("dgx-a100");
    let said = rig.says(&["processes", "1", "4711:2048", "12"]);
    assert!(said.starts_with("2 processes compute on GPU 1"), "{said}");
    rig.says(&["link", "1", "4", "down"]);
    let state = rig.node().state().unwrap();
    let processes = state.gpus[1].processes.iter();
    let processes: Vec<_> = processes.map(|p| (p.pid, p.memory_mib)).collect();
    assert_eq!(processes, [(4711, 2048), (12, 0)]);
    assert!(!state.gpus[1].links[4].active && state.gpus[1].links[3].active);
    rig.says(&["link", "1", "4", "up"]);
    rig.says(&["processes", "1"]);
    let state = rig.node().state().unwrap();
    assert!(state.gpus[1].processes.is_empty() && state.gpus[1].links[4].active);
}
