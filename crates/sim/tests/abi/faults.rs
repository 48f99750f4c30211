//! Tests of lost cards, and of calls that fail or hang.

use std::{sync::mpsc, thread, time::Duration};

use nvml_wrapper_sys::bindings::*;
use sim::Effect;

use crate::rig::*;

/// Timeout that is enough for any machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_lost_card_answers_nothing_else_and_keeps_its_index() {
    let rig = Rig::new("dgx-a100");
    let gpu = rig.node.list_gpus().unwrap().remove(2);
    let device = rig.device(2);
    rig.node.lose_cards(&target("2")).unwrap();
    assert_eq!(rig.temperature(device), Err(GPU_IS_LOST));
    assert_eq!(rig.by_uuid(&gpu.uuid).0, GPU_IS_LOST);
    assert_eq!(rig.by_pci(&gpu.pci.to_string()).0, GPU_IS_LOST);
    let mut other = std::ptr::null_mut();
    let index = code!(rig.lib.nvmlDeviceGetHandleByIndex_v2(2, &raw mut other));
    assert_eq!(index, GPU_IS_LOST);
    assert_eq!(
        number(|o| code!(rig.lib.nvmlDeviceGetCount_v2(o))),
        Ok(8_u32)
    );
    assert_eq!(rig.temperature(rig.device(3)), Ok(29));
    rig.node.restore_cards(&target("2")).unwrap();
    assert_eq!(rig.temperature(device), Ok(29));
    assert_eq!(rig.device(2), device);
}

#[test]
fn a_removed_card_is_gone_and_may_come_back() {
    let rig = Rig::new("dgx-a100");
    let gpu = rig.node.list_gpus().unwrap().remove(2);
    let device = rig.device(2);
    rig.node.remove_gpu(&target("2")).unwrap();
    assert_eq!(
        number(|o| code!(rig.lib.nvmlDeviceGetCount_v2(o))),
        Ok(7_u32)
    );
    assert_eq!(rig.temperature(device), Err(GPU_IS_LOST));
    assert_eq!(rig.by_uuid(&gpu.uuid).0, NOT_FOUND);
    let back = rig.node.add_gpu(&sim::NewGpu::default()).unwrap();
    assert_eq!((&back.uuid, back.index, back.minor), (&gpu.uuid, 2, 2));
    assert_eq!(rig.temperature(device), Ok(29));
    let new = rig.node.add_gpu(&sim::NewGpu::default()).unwrap();
    assert_eq!((new.index, new.minor), (8, 8));
    assert!(rig.node.host_root().join("dev/nvidia8").exists());
    let taken = sim::NewGpu {
        pci: Some(new.pci),
        ..Default::default()
    };
    assert!(rig.node.add_gpu(&taken).is_err());
}

#[test]
fn a_failing_call_fails_on_its_card_only() {
    let rig = Rig::new("dgx-a100");
    let (one, two) = (rig.device(1), rig.device(2));
    let fail = Effect::Fail { code: UNKNOWN };
    rig.node
        .set_fault("nvmlDeviceGetTemperature", Some(&target("1")), fail)
        .unwrap();
    assert_eq!(rig.temperature(one), Err(UNKNOWN));
    assert_eq!(rig.temperature(two), Ok(29));
    let uuid = text(|b, n| code!(rig.lib.nvmlDeviceGetUUID(one, b, n)));
    assert!(uuid.is_ok());
    assert_eq!(
        rig.node
            .clear_faults(Some("nvmlDeviceGetTemperature"))
            .unwrap(),
        1
    );
    assert_eq!(rig.temperature(one), Ok(29));
}

#[test]
fn every_call_can_be_failed_at_once() {
    let rig = Rig::cold("t4");
    rig.node
        .set_fault("*", None, Effect::Fail { code: 18 })
        .unwrap();
    assert_eq!(code!(rig.lib.nvmlInit_v2()), 18);
    rig.node.clear_faults(None).unwrap();
    ok!(rig.lib.nvmlInit_v2());
    rig.node
        .set_fault("*", None, Effect::Fail { code: 27 })
        .unwrap();
    assert_eq!(
        number::<u32>(|o| code!(rig.lib.nvmlDeviceGetCount_v2(o))),
        Err(27)
    );
}

#[test]
fn a_hanging_call_goes_on_when_the_fault_is_cleared() {
    let rig = Rig::new("dgx-a100");
    let device = rig.device(1) as usize;
    let hang = Effect::Hang { millis: None };
    rig.node
        .set_fault("nvmlDeviceGetMemoryInfo", Some(&target("1")), hang)
        .unwrap();
    rig.node.trace().unwrap();
    let (done, answer) = mpsc::channel();
    thread::scope(|scope| {
        let lib = &rig.lib;
        scope.spawn(move || {
            let mut memory = nvmlMemory_t {
                total: 0,
                free: 0,
                used: 0,
            };
            let device = device as nvmlDevice_t;
            done.send(code!(lib.nvmlDeviceGetMemoryInfo(device, &raw mut memory)))
                .unwrap();
        });
        // Other calls, and the same call for other cards, do not hang.
        assert_eq!(rig.temperature(rig.device(1)), Ok(29));
        let mut memory = nvmlMemory_t {
            total: 0,
            free: 0,
            used: 0,
        };
        ok!(lib.nvmlDeviceGetMemoryInfo(rig.device(2), &raw mut memory));
        assert!(answer.recv_timeout(Duration::from_millis(300)).is_err());
        // Another change of the node does not end the hang.
        rig.node
            .set_sensor(&target("1"), "temperature", 60)
            .unwrap();
        assert!(answer.recv_timeout(Duration::from_millis(300)).is_err());
        rig.node.clear_faults(None).unwrap();
        assert_eq!(answer.recv_timeout(PATIENCE), Ok(SUCCESS));
    });
    let uuid = &rig.node.list_gpus().unwrap()[1].uuid;
    let line = format!("nvmlDeviceGetMemoryInfo {uuid}");
    assert_eq!(
        rig.node
            .traced_calls()
            .unwrap()
            .iter()
            .filter(|call| **call == line)
            .count(),
        1
    );
}

#[test]
fn a_call_that_hangs_for_a_time_goes_on_by_itself() {
    let rig = Rig::new("t4");
    let hang = Effect::Hang { millis: Some(150) };
    rig.node
        .set_fault("nvmlDeviceGetCount", None, hang)
        .unwrap();
    #[expect(clippy::disallowed_types, reason = "there is no runtime in this test")]
    let start = std::time::Instant::now();
    assert_eq!(
        number(|o| code!(rig.lib.nvmlDeviceGetCount_v2(o))),
        Ok(1_u32)
    );
    assert!(start.elapsed() >= Duration::from_millis(150));
}

#[test]
fn commands_for_what_is_not_there_say_so() {
    let rig = Rig::cold("t4");
    let error = rig.node.lose_cards(&target("7")).unwrap_err().to_string();
    assert!(error.contains("no device 7"), "{error}");
    let error = rig
        .node
        .set_sensor(&target("0"), "colour", 1)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`colour`") && error.contains("temperature"),
        "{error}"
    );
    let fail = Effect::Fail { code: 1 };
    let error = rig
        .node
        .set_fault("cudaInit", None, fail)
        .unwrap_err()
        .to_string();
    assert!(error.contains("`cudaInit`"), "{error}");
}
