//! NVIDIA's backend over the simulated driver library, which is loaded as the real one is.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

#[path = "../rig/backend.rs"]
mod backend;
mod checks;
mod driver;
mod driver_files;
mod events;
mod facts;
mod failures;
mod machines;
#[path = "../rig/node.rs"]
mod node;
mod numa;
mod processes;
mod shapes;

use std::{
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use config::NvidiaProbe;
use model::{CallFailure, Device, Kind, NodeRole};
use node::{Rig, target};
use nvidia_probe::NvmlBackend;
use probe::{
    CallTable,
    child::ProbeBackend,
    protocol::{Configure, FileSearch, ProblemKind, Report, Scope},
};
use sim::{Effect, NewGpu};

const NOT_SUPPORTED: Effect = Effect::Fail { code: 3 };
const UNKNOWN: Effect = Effect::Fail { code: 999 };
const HANG: Effect = Effect::Hang { millis: None };

fn ids(report: &Report) -> Vec<&str> {
    report.devices.iter().map(|d| d.id.as_str()).collect()
}

fn cards(report: &Report) -> Vec<&Device> {
    let is_card = |device: &&Device| matches!(device.kind, Kind::Card { .. });
    report.devices.iter().filter(is_card).collect()
}
