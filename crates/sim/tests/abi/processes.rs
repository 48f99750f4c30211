//! Tests with several processes on one node, each with the library as a user of the node finds it.

use std::{
    ffi::CStr,
    path::Path,
    process::{Command, Stdio},
};

use nvml_wrapper_sys::bindings::NvmlLib;
use sim::{Effect, Node, ScratchNode};

use crate::rig::*;

/// Environment variable with the library for the child.
const LIBRARY: &str = "OSTLER_SIM_TEST_LIBRARY";

/// Starts this program again to run [`child`], and returns its output.
fn ask(library: &Path, node: Option<&Path>) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::child", "--ignored", "--nocapture"]);
    command
        .env(LIBRARY, library)
        .env_remove("OSTLER_SIM_NODE")
        .stderr(Stdio::inherit());
    if let Some(node) = node {
        command.env("OSTLER_SIM_NODE", node);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("found "))
        .map(str::to_owned)
        .collect()
}

#[test]
#[ignore = "the other tests run it in a process of its own"]
fn child() {
    let library = std::env::var_os(LIBRARY).unwrap();
    // SAFETY: the library's initialisers do nothing.
    let lib = unsafe { NvmlLib::new(library) }.unwrap();
    let code = code!(lib.nvmlInit_v2());
    if code != SUCCESS {
        let text = code!(lib.nvmlErrorString(code));
        // SAFETY: the library's texts live for ever.
        let text = unsafe { CStr::from_ptr(text) };
        println!("\nfound {}", text.to_str().unwrap());
        return;
    }
    let count = number::<u32>(|o| code!(lib.nvmlDeviceGetCount_v2(o))).unwrap();
    for index in 0..count {
        let mut device = std::ptr::null_mut();
        ok!(lib.nvmlDeviceGetHandleByIndex_v2(index, &raw mut device));
        let uuid = text(|b, n| code!(lib.nvmlDeviceGetUUID(device, b, n))).unwrap();
        println!("\nfound {uuid}");
    }
}

fn uuids(node: &Node) -> Vec<String> {
    node.list_gpus()
        .unwrap()
        .into_iter()
        .map(|gpu| gpu.uuid)
        .collect()
}

#[test]
fn the_node_is_the_folder_the_library_was_loaded_from() {
    let one = ScratchNode::from_name("dgx1-v100").unwrap();
    let two = ScratchNode::from_name("t4").unwrap();
    assert!(!one.driver_library().is_symlink());
    assert_eq!(ask(&one.driver_library(), None), uuids(&one));
    assert_eq!(ask(&two.driver_library(), None), uuids(&two));
}

#[test]
fn the_node_may_be_named_in_the_environment() {
    let node = ScratchNode::from_name("t4").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let library = elsewhere.path().join("library.so");
    sim::library::write_library(&library).unwrap();
    assert_eq!(ask(&library, Some(node.node_dir())), uuids(&node));
    assert_eq!(ask(&library, None), ["Driver Not Loaded"]);
}

#[test]
fn a_fault_reaches_every_process() {
    let rig = Rig::cold("t4");
    rig.node
        .set_fault("nvmlInit", None, Effect::Fail { code: 18 })
        .unwrap();
    assert_eq!(
        ask(&rig.node.driver_library(), None),
        ["Driver/library version mismatch"]
    );
    assert_eq!(code!(rig.lib.nvmlInit_v2()), 18);
    rig.node.clear_faults(None).unwrap();
    assert_eq!(ask(&rig.node.driver_library(), None), uuids(&rig.node));
}
