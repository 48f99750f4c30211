//! Stand-in for NVIDIA's container runtime with the simulated driver. It runs before runc and adds
//! the driver's library and all of its device nodes to containers whose environment has
//! `NVIDIA_VISIBLE_DEVICES=all`. Other containers go to runc unchanged.

use std::{os::unix::process::CommandExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result};
use e2e::{device, place};
use serde_json::{Value, json};

/// Variable by which a container requests devices.
const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES=";
/// The variable with the value for all devices.
const ALL: &str = "NVIDIA_VISIBLE_DEVICES=all";
/// Library of the driver.
const LIBRARY: &str = "libnvidia-ml.so.1";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "create") {
        let at = args.iter().position(|arg| arg == "--bundle");
        let bundle = at.and_then(|at| args.get(at + 1));
        edit(Path::new(bundle.context("runc create has no --bundle")?))?;
    }
    let error = Command::new("runc").args(args).exec();
    Err(error).context("cannot start runc (Debian package runc)")
}

/// Adds the driver to the container in `bundle`, if the container requests it.
fn edit(bundle: &Path) -> Result<()> {
    let file = bundle.join("config.json");
    let mut spec: Value = serde_json::from_slice(&fs_err::read(&file)?)?;
    let env = list(&mut spec["process"]["env"]);
    // The pod's own value comes after the image's.
    let is_value = |entry: &&Value| entry.as_str().is_some_and(|text| text.starts_with(VISIBLE));
    if env.iter().rfind(is_value).and_then(Value::as_str) != Some(ALL) {
        return Ok(());
    }
    env.push(json!(format!("OSTLER_SIM_NODE={}", place::DRIVER)));
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let library = format!("{}/{LIBRARY}", place::DRIVER);
    let mounts = list(&mut spec["mounts"]);
    mounts.push(bind(&library, &format!("{folder}/{LIBRARY}")));
    mounts.push(bind(place::DRIVER, place::DRIVER));
    let major = device::major()?;
    for (path, minor) in device::driver_nodes() {
        list(&mut spec["linux"]["devices"]).push(json!({
            "path": path, "type": "c", "major": major, "minor": minor, "fileMode": 0o666,
        }));
        list(&mut spec["linux"]["resources"]["devices"]).push(json!({
            "allow": true, "type": "c", "major": major, "minor": minor, "access": "rwm",
        }));
    }
    Ok(fs_err::write(file, spec.to_string())?)
}

fn bind(from: &str, to: &str) -> Value {
    json!({ "source": from, "destination": to, "type": "bind", "options": ["rbind", "rw"] })
}

/// Array at a place of the spec; created if it is missing.
fn list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut().expect("it was made above")
}
