//! Test node in a folder, and the commands on it.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use sim::Node;

use crate::text;

/// Node in a temporary folder.
pub(crate) struct Rig {
    pub(crate) folder: tempfile::TempDir,
}

// === impl Rig ===

impl Rig {
    /// Makes a folder without a node.
    pub(crate) fn empty() -> Self {
        let folder = sim::scratch().unwrap();
        Self { folder }
    }

    pub(crate) fn new(profile: &str) -> Self {
        let rig = Self::empty();
        let dir = rig.dir();
        let output = rig.ostler(&["create", dir.to_str().unwrap(), "--profile", profile]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        rig
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.folder.path().join("node")
    }

    pub(crate) fn node(&self) -> Node {
        Node::open_node(&self.dir()).unwrap()
    }

    /// Runs a command without naming a node.
    pub(crate) fn ostler(&self, args: &[&str]) -> Output {
        let mut command = ostler(args);
        command.output().unwrap()
    }

    pub(crate) fn on_node(&self, args: &[&str]) -> Output {
        ostler(args)
            .env("OSTLER_SIM_NODE", self.dir())
            .output()
            .unwrap()
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) fn says(&self, args: &[&str]) -> String {
        let output = self.on_node(args);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Runs a command that must fail, and returns its exit status and its error.
    pub(crate) fn complains(&self, args: &[&str]) -> (i32, String) {
        let output = self.on_node(args);
        (output.status.code().unwrap(), text(&output.stderr))
    }

    /// Replaces the parts of a text that differ from run to run.
    pub(crate) fn plain(&self, text: &str) -> String {
        let folder = self.folder.path().to_str().unwrap();
        text.replace(folder, "[folder]")
            .replace(env!("CARGO_BIN_EXE_ostler"), "ostler")
    }
}

pub(crate) fn ostler(args: &[&str]) -> Command {
    crate::ostler(&[&["sim"], args].concat())
}
