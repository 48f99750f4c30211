//! The agent's file: built from the source tree, and how large it is.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

use crate::elf;

/// How to build what is measured.
const BUILD: [&str; 5] = ["build", "--release", "--locked", "-p", "ostler"];
/// How to build it without the simulator.
const WITHOUT_SIM: &str = "--no-default-features";

/// Builds the agent as it is in the source tree now, so that no old file is measured.
///
/// # Errors
/// If it cannot be built.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    run_cargo(&[])
}

/// Builds the agent without the simulator, and keeps it beside the other, whose file it takes for a
/// moment: so call [`build`] afterwards.
///
/// # Errors
/// If it cannot be built.
pub(crate) fn build_without_sim() -> anyhow::Result<PathBuf> {
    let built = run_cargo(&[WITHOUT_SIM])?;
    let kept = built.with_file_name("ostler-without-sim");
    fs_err::copy(built, &kept)?;
    Ok(kept)
}

fn run_cargo(more: &[&str]) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(BUILD)
        .args(more)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status()
        .context("cannot run cargo; build it yourself and use --binary")?;
    let line = [&BUILD, more].concat().join(" ");
    ensure!(status.success(), "`cargo {line}` failed");
    Ok(std::env::current_exe()?.with_file_name("ostler"))
}

/// The size of a file.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn size(binary: &Path) -> anyhow::Result<f64> {
    Ok(fs_err::metadata(binary)?.len() as f64)
}

/// The size of what is loaded of a program: without symbols and debug information.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn loaded(binary: &Path) -> anyhow::Result<f64> {
    let size = elf::loaded(&fs_err::read(binary)?);
    let size = size.with_context(|| format!("{} is no program", binary.display()))?;
    Ok(size as f64)
}
