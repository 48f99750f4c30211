//! Tests of the files around the library: open files, symlinks, permissions.

use std::{path::Path, thread};

use sim::{Node, NodeProfile, ScratchNode};

use crate::rig::*;

/// True if this process has a file open.
fn held(path: &Path) -> bool {
    let path = path.canonicalize().unwrap();
    let open = fs_err::read_dir("/proc/self/fd").unwrap();
    open.flatten()
        .any(|fd| fs_err::read_link(fd.path()).is_ok_and(|to| to == path))
}

#[test]
fn device_files_are_held_from_the_first_handle_until_shutdown() {
    let rig = Rig::new("dgx-a100");
    let node = |minor: u32| rig.node.host_root().join(format!("dev/nvidia{minor}"));
    assert!(!held(&node(3)));
    rig.device(3);
    assert!(held(&node(3)) && !held(&node(4)));
    rig.node
        .set_sensor(&target("3"), "temperature", 44)
        .unwrap();
    assert!(held(&node(3)));
    ok!(rig.lib.nvmlShutdown());
    assert!(!held(&node(3)));
}

#[test]
fn every_function_of_the_real_library_is_there() {
    let rig = Rig::cold("t4");
    // SAFETY: the library's initialisers do nothing.
    let library = unsafe { libloading::Library::new(rig.node.driver_library()) }.unwrap();
    for line in include_str!("../symbols.txt").lines() {
        let name = line.split(' ').next().unwrap();
        // SAFETY: the address is only compared, never called.
        let symbol = unsafe { library.get::<*const ()>(name.as_bytes()) };
        assert!(symbol.is_ok(), "{name}");
    }
}

#[test]
fn functions_without_a_simulation_are_not_supported() {
    let rig = Rig::new("t4");
    let code = code!(rig.lib.nvmlDeviceSetGpuOperationMode(rig.device(0), 0));
    assert_eq!(code, NOT_SUPPORTED);
}

#[test]
fn calls_are_recorded_only_when_asked() {
    let rig = Rig::new("t4");
    let device = rig.device(0);
    assert!(rig.node.traced_calls().unwrap().is_empty());
    rig.node.trace().unwrap();
    rig.temperature(device).unwrap();
    number::<u32>(|o| code!(rig.lib.nvmlDeviceGetCount_v2(o))).unwrap();
    let uuid = rig.uuid(device);
    assert_eq!(
        rig.node.traced_calls().unwrap(),
        [
            format!("nvmlDeviceGetTemperature {uuid}"),
            "nvmlDeviceGetCount_v2 -".to_owned(),
            format!("nvmlDeviceGetUUID {uuid}"),
        ]
    );
}

#[test]
fn a_driver_can_be_taken_away_and_put_back() {
    let node = ScratchNode::from_name("t4").unwrap();
    node.unplug_driver().unwrap();
    node.unplug_driver().unwrap();
    assert!(!node.driver_library().exists());
    node.plug_driver().unwrap();
    node.plug_driver().unwrap();
    assert!(node.driver_library().exists());
}

#[test]
fn a_folder_holds_one_node() {
    let dir = sim::scratch().unwrap();
    let profile = NodeProfile::find_profile("t4").unwrap();
    Node::create_node(dir.path(), &profile).unwrap();
    let error = Node::create_node(dir.path(), &profile)
        .unwrap_err()
        .to_string();
    assert!(error.contains("already"), "{error}");
    assert_eq!(
        Node::open_node(dir.path())
            .unwrap()
            .list_gpus()
            .unwrap()
            .len(),
        1
    );
    assert!(Node::open_node(&dir.path().join("none")).is_err());
}

#[test]
fn no_command_is_lost_when_many_write_at_once() {
    let rig = Rig::new("dgx-a100");
    thread::scope(|scope| {
        for gpu in 0..8 {
            let node = Node::open_node(rig.node.node_dir()).unwrap();
            scope.spawn(move || {
                for _ in 0..5 {
                    node.count_ecc_error(&target(&gpu.to_string()), sim::EccKind::Corrected)
                        .unwrap();
                }
            });
        }
        for _ in 0..200 {
            assert_eq!(
                number(|o| code!(rig.lib.nvmlDeviceGetCount_v2(o))),
                Ok(8_u32)
            );
        }
    });
    let state = rig.node.node_state().unwrap();
    assert!(state.gpus.iter().all(|gpu| gpu.sensors.ecc_corrected == 5));
    assert_eq!(state.generation, 41);
}
