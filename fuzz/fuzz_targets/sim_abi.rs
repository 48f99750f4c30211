//! Simulated NVML through its C ABI: any calls in any order with any handles, sizes, versions and
//! buffers return a code, write only to the given buffers, and do not crash.
#![no_main]

use std::{
    path::PathBuf,
    sync::{LazyLock, Mutex},
};

use libfuzzer_sys::fuzz_target;
use sim::{Node, NodeProfile};

#[path = "../../crates/sim/tests/abi/chaos.rs"]
mod chaos;
#[path = "../../crates/sim/tests/abi/drive.rs"]
#[expect(dead_code, reason = "the tests of the crate use more of it")]
mod drive;

/// The loaded library, the state file of its node, and the original content of that file.
static DRIVER: LazyLock<Mutex<(drive::Driver, PathBuf, Vec<u8>)>> = LazyLock::new(|| {
    let dir = tempfile::tempdir()
        .expect("there is room for a folder")
        .keep();
    let profile = NodeProfile::find_profile("a100-mig").expect("it comes with the program");
    let node = Node::create_node(&dir, &profile).expect("a new folder takes a node");
    let table = include_str!("../../crates/sim/tests/symbols.txt");
    let driver = drive::Driver::new(&node.driver_library(), table);
    let state = dir.join("node.json");
    let good = std::fs::read(&state).expect("the node was just made");
    Mutex::new((driver, state, good))
});

fuzz_target!(|bytes: &[u8]| {
    let (driver, state, good) = &mut *DRIVER.lock().expect("one run at a time");
    // Each run starts with the same node, whatever the previous run changed.
    if std::fs::read(&state).ok().as_ref() != Some(good) {
        std::fs::write(&state, &good).expect("the folder is ours");
    }
    chaos::run(driver, bytes);
});
