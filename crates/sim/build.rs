//! Builds the simulated driver library, whose bytes become part of this crate.
//!
//! A second cargo compiles the library. Cargo hands no crate the file of another one (artifact
//! dependencies are not stable). Linked into the program, the 398 functions would be in every
//! probe, beside those of the real library.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Package, its cargo profile in the workspace's Cargo.toml, and the resulting file.
const PACKAGE: &str = "sim-driver";
const PROFILE: &str = "driver";
const FILE: &str = "libnvidia_ml.so";

/// Inputs of the library beside the crates.
const SHARED: [&str; 3] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];

/// Variables of the first cargo that the second must not inherit. They say how the first one
/// compiles: clippy, for example, replaces the compiler.
const NOT_PASSED_ON: [&str; 11] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_INCREMENTAL",
];

/// Overrides of the cargo profile for fuzzing: the sanitizer sees everything, and arithmetic
/// overflow aborts.
const FUZZED: [(&str, &str); 5] = [
    ("CARGO_PROFILE_DRIVER_DEBUG_ASSERTIONS", "true"),
    ("CARGO_PROFILE_DRIVER_OVERFLOW_CHECKS", "true"),
    ("CARGO_PROFILE_DRIVER_STRIP", "none"),
    ("CARGO_PROFILE_DRIVER_LTO", "off"),
    ("CARGO_PROFILE_DRIVER_OPT_LEVEL", "3"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let crates = own.parent().ok_or("this crate lies in no folder")?;
    let workspace = crates.parent().ok_or("the crates lie in no folder")?;
    for package in [PACKAGE, "sim-node"] {
        rerun_if_changed(&crates.join(package).join("Cargo.toml"));
        rerun_if_changed(&crates.join(package).join("src"));
    }
    for file in SHARED {
        rerun_if_changed(&workspace.join(file));
    }
    let library = build_library(&crates.join(PACKAGE).join("Cargo.toml"))?;
    println!("cargo::rustc-env=SIM_DRIVER_LIBRARY={}", library.display());
    Ok(())
}

fn rerun_if_changed(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// Builds the library for the first cargo's target and returns its path.
fn build_library(manifest: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = env::var("TARGET")?;
    let folder = PathBuf::from(env::var("OUT_DIR")?).join("driver");
    let mut command = Command::new(env::var("CARGO")?);
    command
        .args(["build", "--locked", "--profile", PROFILE])
        .args(["--target", &target, "--target-dir"])
        .arg(&folder)
        .arg("--manifest-path")
        .arg(manifest)
        // A user's cargo config may set one build folder for all builds. The first cargo holds its
        // lock.
        .env("CARGO_BUILD_BUILD_DIR", &folder)
        .stdout(Stdio::null());
    // cargo-fuzz asks for coverage counters and a sanitizer in all code that is fuzzed.
    let fuzzed = env::var_os("CARGO_CFG_FUZZING").is_some();
    for name in NOT_PASSED_ON {
        if !(fuzzed && name == "CARGO_ENCODED_RUSTFLAGS") {
            command.env_remove(name);
        }
    }
    if fuzzed {
        command.envs(FUZZED);
    }
    let library = folder.join(&target).join(PROFILE).join(FILE);
    let ended = command
        .status()
        .map_err(|e| format!("cannot start `{command:?}`: {e}"))?;
    if !ended.success() {
        let why = format!("cannot build the simulated driver library: {ended}; see above");
        return Err(why.into());
    }
    if !library.is_file() {
        let why = format!(
            "no {}: can {target} have shared libraries?",
            library.display()
        );
        return Err(why.into());
    }
    Ok(library)
}
