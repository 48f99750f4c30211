//! Builds the simulated driver library, whose bytes become part of this crate.
//!
//! A second cargo does it: the first hands no crate the file of another (artifact dependencies are
//! not stable), and linked into the program the 398 functions would be in every probe, beside those
//! of the real library.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The package, its profile in the workspace's Cargo.toml, and the file that comes of it.
const PACKAGE: &str = "sim-driver";
const PROFILE: &str = "driver";
const FILE: &str = "libnvidia_ml.so";

/// What the library is made of, beside the crates.
const SHARED: [&str; 3] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];

/// Says how the first cargo compiles, and is not meant for the second: clippy, for one, stands in for
/// the compiler.
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

/// The profile for fuzzing: nothing is hidden from the sanitizer, and wrong arithmetic ends it.
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
        watch(&crates.join(package).join("Cargo.toml"));
        watch(&crates.join(package).join("src"));
    }
    for file in SHARED {
        watch(&workspace.join(file));
    }
    let library = build(&crates.join(PACKAGE).join("Cargo.toml"))?;
    println!("cargo::rustc-env=SIM_DRIVER_LIBRARY={}", library.display());
    Ok(())
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// Builds the library for the target of the first cargo, and gives its path.
fn build(manifest: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = env::var("TARGET")?;
    let folder = PathBuf::from(env::var("OUT_DIR")?).join("driver");
    let mut command = Command::new(env::var("CARGO")?);
    command
        .args(["build", "--locked", "--profile", PROFILE])
        .args(["--target", &target, "--target-dir"])
        .arg(&folder)
        .arg("--manifest-path")
        .arg(manifest)
        // A config file may name one folder for all builds, which the first cargo has locked.
        .env("CARGO_BUILD_BUILD_DIR", &folder)
        .stdout(Stdio::null());
    // cargo-fuzz asks for coverage counters and a sanitizer in all that is fuzzed.
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
