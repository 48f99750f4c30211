//! `ostler sim kubelet` in a terminal.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use super::rig::{Rig, ostler};
use crate::text;

/// Running `ostler sim kubelet`.
struct Terminal {
    child: Child,
    lines: BufReader<ChildStdout>,
}

// === impl Terminal ===

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

    /// Reads until a line has this text, and returns the line. The limit of the test runner ends a
    /// wait without success.
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
        .arg(node.host_root())
        .arg("--nvml-library")
        .arg(node.driver_library())
        .arg("--control-socket")
        .arg(rig.folder.path().join("c.sock"))
        .arg("--cdi-dir")
        .arg(rig.folder.path().join("cdi"));
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
