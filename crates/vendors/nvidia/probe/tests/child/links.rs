//! Links of the cards: the schedule of the calls, and the effect of a call that hangs.

use model::{Tier, Work};
use probe::protocol::{Message, Report};

use crate::{
    HANG,
    node::{Rig, target, wait_for},
    process::{Kind, Process},
    stuck,
};

#[test]
fn a_call_that_hangs_while_links_are_read_belongs_to_the_links() {
    let rig = Rig::new("dgx-a100");
    let call = "nvmlDeviceGetTopologyCommonAncestor";
    rig.node.set_fault(call, None, HANG).unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    let stuck = stuck(&mut process);
    assert_eq!((stuck.call.as_str(), stuck.work), (call, Work::Links));
}

#[test]
fn links_that_nobody_wants_are_not_asked_for() {
    let rig = Rig::new("dgx-a100");
    for call in [
        "nvmlDeviceGetTopologyCommonAncestor",
        "nvmlDeviceGetNvLinkState",
    ] {
        rig.node.set_fault(call, None, HANG).unwrap();
    }
    let mut process = Process::start_with(&rig, Kind::Supervised, |c| c.links = false);
    assert_eq!(process.report().devices.len(), 8);
    process.wait(|message| matches!(message, Message::Sample(_)).then_some(()));
    process.command(r#"{"type":"refresh"}"#);
    let report = process.report();
    assert!(report.devices.iter().all(|device| device.links.is_empty()));
}

/// Returns the recorded calls that read links.
fn about_links(rig: &Rig) -> Vec<String> {
    let mut calls = rig.node.traced_calls().unwrap();
    calls.retain(|call| call.contains("Topology") || call.contains("NvLink"));
    calls
}

/// Returns the recorded calls that read shapes.
fn about_shapes(rig: &Rig) -> Vec<String> {
    let mut calls = rig.node.traced_calls().unwrap();
    calls.retain(|call| call.contains("ProfileInfo") || call.contains("Placements"));
    calls
}

#[test]
fn a_refresh_asks_for_no_links_and_no_shapes() {
    let rig = Rig::new("dgx-a100");
    let mut process = Process::start(&rig, Kind::Supervised);
    let tiers = |process: &mut Process| process.checkup().reading.values.tier();
    wait_for(|| (tiers(&mut process) == Tier::Trend).then_some(()));
    rig.node.trace().unwrap();
    for _ in 0..3 {
        process.command(r#"{"type":"refresh"}"#);
        let report = process.report();
        assert!(report.devices.iter().all(|device| device.links.len() == 7));
        assert!(report.devices.iter().all(|device| device.shapes.len() == 7));
        process.checkup();
    }
    let looks = rig.node.traced_calls().unwrap();
    let looks = looks.iter().filter(|call| call.contains("GetMemoryInfo"));
    assert!(looks.count() >= 3 * 8);
    assert_eq!(about_links(&rig), [""; 0]);
    assert_eq!(about_shapes(&rig), [""; 0]);
}

#[test]
fn links_are_asked_for_again_now_and_then() {
    let rig = Rig::new("dgx1-v100");
    let mut process = Process::start_asking_for_links(&rig, "100");
    let lanes = |report: &Report| -> u32 {
        let links = report.devices.iter().flat_map(|device| &device.links);
        links.map(|link| link.lanes).sum()
    };
    process.report();
    let all = lanes(&process.report());
    rig.node.set_link(&target("0"), 1, false).unwrap();
    let fewer = wait_for(|| Some(lanes(&process.report())).filter(|lanes| *lanes < all));
    rig.node.set_link(&target("0"), 1, true).unwrap();
    wait_for(|| (lanes(&process.report()) > fewer).then_some(()));
}
