//! Tests of event sets: XIDs and memory errors.

use std::{mem::zeroed, thread, time::Duration};

use nvml_wrapper_sys::bindings::*;
use sim::EccKind;

use crate::rig::*;

const XID: u64 = 8;

/// Event set with all events of the cards at these indices.
fn set(rig: &Rig, cards: &[u32]) -> nvmlEventSet_t {
    let mut set = std::ptr::null_mut();
    ok!(rig.lib.nvmlEventSetCreate(&raw mut set));
    for card in cards {
        let device = rig.device(*card);
        let kinds = number(|o| code!(rig.lib.nvmlDeviceGetSupportedEventTypes(device, o)));
        assert_eq!(kinds.unwrap() & 0xb, 0xb);
        ok!(rig.lib.nvmlDeviceRegisterEvents(device, 0xb, set));
    }
    set
}

fn wait(rig: &Rig, set: nvmlEventSet_t, millis: u32) -> Result<nvmlEventData_t, u32> {
    // SAFETY: a struct of numbers and a pointer.
    let mut data: nvmlEventData_t = unsafe { zeroed() };
    match code!(rig.lib.nvmlEventSetWait_v2(set, &raw mut data, millis)) {
        SUCCESS => Ok(data),
        code => Err(code),
    }
}

#[test]
fn an_xid_reaches_those_who_wait_for_its_card() {
    let rig = Rig::new("dgx-a100");
    rig.node.raise_xid(&target("3"), 13).unwrap();
    let set = set(&rig, &[3]);
    rig.node.raise_xid(&target("2"), 48).unwrap();
    rig.node.raise_xid(&target("3"), 79).unwrap();
    let event = wait(&rig, set, 5000).unwrap();
    assert_eq!(
        (event.device, event.eventType, event.eventData),
        (rig.device(3), XID, 79)
    );
    assert_eq!(
        (event.gpuInstanceId, event.computeInstanceId),
        (u32::MAX, u32::MAX)
    );
    assert_eq!(wait(&rig, set, 0).map(|_| ()), Err(TIMEOUT));
    ok!(rig.lib.nvmlEventSetFree(set));
    assert_eq!(wait(&rig, set, 0).map(|_| ()), Err(INVALID_ARGUMENT));
}

#[test]
fn a_waiting_call_wakes_when_the_event_comes() {
    let rig = Rig::new("t4");
    let set = set(&rig, &[0]);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            rig.node.raise_xid(&target("0"), 62).unwrap();
        });
        assert_eq!(wait(&rig, set, 30_000).unwrap().eventData, 62);
    });
}

#[test]
fn an_xid_of_a_partition_names_its_instances() {
    let rig = Rig::new("a100-mig");
    let set = set(&rig, &[1]);
    rig.node.raise_xid(&target("1:2"), 43).unwrap();
    let event = wait(&rig, set, 5000).unwrap();
    let mig = rig
        .node
        .list_migs()
        .unwrap()
        .into_iter()
        .find(|mig| mig.index == "1:2")
        .unwrap();
    assert_eq!(event.device, rig.device(1));
    assert_eq!(event.gpuInstanceId, mig.gpu_instance);
    assert_eq!(event.computeInstanceId, mig.compute_instance);
}

#[test]
fn memory_errors_are_events_too() {
    let rig = Rig::new("t4");
    let set = set(&rig, &[0]);
    rig.node
        .count_ecc_error(&target("0"), EccKind::Corrected)
        .unwrap();
    rig.node
        .count_ecc_error(&target("0"), EccKind::Uncorrected)
        .unwrap();
    assert_eq!(wait(&rig, set, 5000).unwrap().eventType, 1);
    assert_eq!(wait(&rig, set, 5000).unwrap().eventType, 2);
}

#[test]
fn each_set_has_its_own_view() {
    let rig = Rig::new("dgx-a100");
    let (one, two) = (set(&rig, &[0, 1]), set(&rig, &[1]));
    rig.node.raise_xid(&target("all"), 31).unwrap();
    assert_eq!(wait(&rig, one, 5000).unwrap().device, rig.device(0));
    assert_eq!(wait(&rig, one, 5000).unwrap().device, rig.device(1));
    assert_eq!(wait(&rig, two, 5000).unwrap().device, rig.device(1));
    assert_eq!(wait(&rig, two, 0).map(|_| ()), Err(TIMEOUT));
}

#[test]
fn broken_and_half_written_lines_are_passed_over() {
    let rig = Rig::new("t4");
    let set = set(&rig, &[0]);
    let path = rig.node.node_dir().join("events.jsonl");
    let mut bytes = fs_err::read(&path).unwrap();
    bytes.extend(b"\xff\xfe nonsense\n\n{\"gpu\": 5}\n");
    bytes.extend(vec![b'x'; 200_000]);
    bytes.push(b'\n');
    fs_err::write(&path, &bytes).unwrap();
    rig.node.raise_xid(&target("0"), 95).unwrap();
    assert_eq!(wait(&rig, set, 5000).unwrap().eventData, 95);
    let half = b"{\"gpu\"";
    bytes = fs_err::read(&path).unwrap();
    bytes.extend(half);
    fs_err::write(&path, bytes).unwrap();
    assert_eq!(wait(&rig, set, 0).map(|_| ()), Err(TIMEOUT));
}
