//! What is measured: a program, and how it is told where the node is.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

use crate::{bed::Places, elf};

/// How to build what is measured.
const BUILD: [&str; 5] = ["build", "--release", "--locked", "-p", "ostler"];

/// A device plugin.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// What it is called in the results.
    pub(crate) name: &'static str,
    /// The program.
    pub(crate) binary: PathBuf,
    /// Whether it is what the source tree makes.
    pub(crate) built: bool,
}

// === impl Subject ===

impl Subject {
    /// Ostler as it is in this file.
    pub(crate) fn ostler(binary: &Path) -> anyhow::Result<Self> {
        let binary = fs_err::canonicalize(binary)?;
        Ok(Self {
            name: "ostler",
            binary,
            built: false,
        })
    }

    /// Ostler as it is in the source tree now: builds it, so that no old file is measured.
    pub(crate) fn build() -> anyhow::Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(BUILD)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .status()
            .context("cannot run cargo; build it yourself and use --binary")?;
        ensure!(status.success(), "`cargo {}` failed", BUILD.join(" "));
        let program = std::env::current_exe()?;
        let ostler = Self::ostler(&program.with_file_name("ostler"))?;
        Ok(Self {
            built: true,
            ..ostler
        })
    }

    /// The command that serves a node.
    pub(crate) fn command(&self, places: &Places) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .arg("run")
            .arg("--kubelet-dir")
            .arg(&places.kubelet)
            .arg("--pod-resources-socket")
            .arg(&places.pod_resources)
            .arg("--control-socket")
            .arg(&places.control);
        locate(&mut command, places);
        command
    }

    /// The command that looks at a node once.
    pub(crate) fn probe(&self, places: &Places) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["probe", "nvidia", "--no-events"]);
        locate(&mut command, places);
        command
    }

    /// The size of its file.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn size(&self) -> anyhow::Result<f64> {
        Ok(fs_err::metadata(&self.binary)?.len() as f64)
    }

    /// The size of what is loaded of it: without symbols and debug information.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn loaded(&self) -> anyhow::Result<f64> {
        let size = elf::loaded(&fs_err::read(&self.binary)?);
        let size = size.with_context(|| format!("{} is no program", self.binary.display()))?;
        Ok(size as f64)
    }
}

fn locate(command: &mut Command, places: &Places) {
    command
        .arg("--host-root")
        .arg(&places.root)
        .arg("--nvml-library")
        .arg(&places.library);
}
