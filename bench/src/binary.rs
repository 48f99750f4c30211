//! The agent's file: built from the source tree, and how large it is.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

use crate::elf;

/// How to build what is measured.
const BUILD: [&str; 5] = ["build", "--release", "--locked", "-p", "ostler"];

/// Builds the agent as it is in the source tree now, so that no old file is measured.
///
/// # Errors
/// If it cannot be built.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(BUILD)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status()
        .context("cannot run cargo; build it yourself and use --binary")?;
    ensure!(status.success(), "`cargo {}` failed", BUILD.join(" "));
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
