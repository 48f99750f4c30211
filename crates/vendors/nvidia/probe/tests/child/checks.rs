//! Check-ups of a probe process: their schedule, and their effect on surveys.

use std::{collections::BTreeSet, time::Duration};

use model::{Tier, Values, Work};
use probe::protocol::Message;
use sim::Effect;

use crate::{
    node::{Rig, target, wait_for},
    process::{Kind, Process},
};

#[test]
fn the_first_checks_follow_the_first_report_and_its_links() {
    let rig = Rig::new("dgx-a100");
    let mut process = Process::start(&rig, Kind::Supervised);
    let mut kinds = Vec::new();
    let mut tiers = BTreeSet::new();
    let mut cards = BTreeSet::new();
    while tiers.len() < 3 || cards.len() < 8 {
        match process.next() {
            Message::Report(_) => kinds.push("report"),
            Message::Checkup(checkup) => {
                kinds.push("checkup");
                tiers.insert(checkup.reading.values.tier());
                cards.insert(checkup.device);
            }
            _ => {}
        }
    }
    assert_eq!(kinds[..3], ["report", "report", "checkup"]);
    assert_eq!(
        tiers.into_iter().collect::<Vec<_>>(),
        [Tier::Working, Tier::Performing, Tier::Trend]
    );
}

#[test]
fn a_tier_comes_again_with_its_period_and_the_others_do_not() {
    let rig = Rig::new("t4");
    let mut process = Process::start_with(&rig, Kind::Supervised, |configure| {
        configure.checks.working = Duration::from_millis(200);
    });
    let mut tiers = Vec::new();
    while tiers.iter().filter(|tier| **tier == Tier::Working).count() < 4 {
        tiers.push(process.checkup().reading.values.tier());
    }
    let others = tiers.iter().filter(|tier| **tier != Tier::Working);
    assert_eq!(others.count(), 2, "{tiers:?}");
}

#[test]
fn a_card_that_comes_is_checked_at_once() {
    let rig = Rig::new("dgx-a100");
    rig.node.lose_cards(&target("5")).unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    for _ in 0..3 * 7 {
        process.checkup();
    }
    rig.node.restore_cards(&target("5")).unwrap();
    let id = rig.node.list_gpus().unwrap()[5].uuid.clone();
    wait_for(|| (process.checkup().device.as_str() == id).then_some(()));
}

#[test]
fn a_new_loading_of_the_driver_is_checked_at_once() {
    let rig = Rig::new("t4");
    rig.node
        .set_sensor(&target("0"), "ecc-uncorrected", 3)
        .unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    let uncorrected = |process: &mut Process| {
        wait_for(|| match process.checkup().reading.values {
            Values::Working(working) => working.ecc_uncorrected,
            _ => None,
        })
    };
    assert_eq!(uncorrected(&mut process), 3);
    rig.node.reload_driver().unwrap();
    assert_eq!(uncorrected(&mut process), 0);
}

#[test]
fn a_refresh_checks_whether_the_cards_work() {
    let rig = Rig::new("t4");
    let mut process = Process::start(&rig, Kind::Supervised);
    for _ in 0..3 {
        process.checkup();
    }
    process.command(r#"{"type":"refresh"}"#);
    assert_eq!(process.checkup().reading.values.tier(), Tier::Working);
}

#[test]
fn a_check_that_hangs_is_named_with_its_card_as_a_part_of_the_checks() {
    let rig = Rig::new("dgx-a100");
    let call = "nvmlDeviceGetRemappedRows";
    let hang = Effect::Hang { millis: None };
    rig.node.set_fault(call, Some(&target("3")), hang).unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    let stuck = process.wait(|message| match message {
        Message::Beat(beat) => beat.calls.first().cloned(),
        _ => None,
    });
    let card = rig.node.list_gpus().unwrap()[3].pci.to_string();
    assert_eq!((stuck.call.as_str(), stuck.work), (call, Work::Checks));
    assert_eq!(stuck.device, card.parse().ok());
}

#[test]
fn links_that_nobody_wants_are_left_out_of_the_checks_too() {
    let rig = Rig::new("dgx-a100");
    let hang = Effect::Hang { millis: None };
    rig.node
        .set_fault("nvmlDeviceGetNvLinkState", None, hang)
        .unwrap();
    let mut without = Process::start_with(&rig, Kind::Supervised, |c| c.links = false);
    let performing = wait_for(|| match without.checkup().reading.values {
        Values::Performing(performing) => Some(performing),
        _ => None,
    });
    assert_eq!(performing.links_down, None);
    assert_eq!(performing.throttled, Some(Vec::new()));
}

#[test]
fn what_a_probe_has_open_is_closed_with_it() {
    let rig = Rig::new("dgx-a100");
    let mut process = Process::start(&rig, Kind::Supervised);
    process.report();
    process.checkup();
    let id = process.id();
    let held = || {
        let cards = rig.node.holders().unwrap();
        cards.iter().filter(|card| card.pids.contains(&id)).count()
    };
    assert_eq!(held(), 8);
    process.close();
    process.ended();
    assert_eq!(held(), 0);
}
