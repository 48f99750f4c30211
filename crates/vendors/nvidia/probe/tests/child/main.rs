//! The probe process as the agent runs it: a separate process that is controlled through its
//! streams.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

#[path = "../../../../../probe/tests/supervisor/agent.rs"]
mod agent;
mod checks;
mod links;
#[path = "../rig/node.rs"]
mod node;
#[path = "../rig/process.rs"]
mod process;
mod release;

use std::{thread, time::Duration};

use model::{CardRef, StuckCall, Work};
use node::{Rig, target};
use probe::protocol::{FileSearch, Message, ProblemKind};
use process::{Kind, Process};
use rustix::process::Signal;
use sim::Effect;
use tokio::time::Instant;

/// Generous: no test takes nearly as long.
const DEADLINE: Duration = Duration::from_secs(60);

const HANG: Effect = Effect::Hang { millis: None };

/// Returns the first call that a beat names.
fn stuck(process: &mut Process) -> StuckCall {
    process.wait(|message| match message {
        Message::Beat(beat) => beat.calls.first().cloned(),
        _ => None,
    })
}

/// Waits for the first report with these warnings.
fn warned(process: &mut Process, warnings: &[String]) {
    process.wait(|message| match message {
        Message::Report(report) if report.warnings == warnings => Some(()),
        _ => None,
    });
}

/// Not a test: the other tests start this program again as the probe.
#[test]
fn probe_process() {
    process::run_if_asked();
}

#[test]
fn says_who_it_is_then_what_it_sees_then_how_that_hangs_together() {
    let rig = Rig::new("dgx-a100");
    let mut process = Process::start(&rig, Kind::Supervised);
    let Message::Hello(hello) = process.next() else {
        panic!("the first line is not hello");
    };
    assert_eq!((hello.protocol, hello.probe.as_str()), (2, "nvidia"));
    let first = process.report();
    assert_eq!(first.devices.len(), 8);
    assert!(first.devices.iter().all(|device| device.links.is_empty()));
    let second = process.report();
    assert!(second.devices.iter().all(|device| device.links.len() == 7));
    process.wait(|message| matches!(message, Message::Sample(_)).then_some(()));
    let made = process.wait(|message| match message {
        Message::Beat(beat) if beat.made > 0 => Some(beat.calls.clone()),
        _ => None,
    });
    assert_eq!(made, []);
}

#[test]
fn the_drivers_files_follow_the_first_report_at_once() {
    let rig = Rig::new("t4");
    let mut process = Process::start_with(&rig, Kind::Supervised, |configure| {
        configure.driver_files = FileSearch::Later;
    });
    assert_eq!(process.report().extras.files, None);
    // Before the survey has ended.
    let next = process.wait(|message| match message {
        Message::Report(report) => Some(report.extras.files.is_some()),
        Message::Sample(_) => Some(false),
        _ => None,
    });
    assert!(next);
}

#[test]
fn ends_with_its_input_and_leaves_signals_to_the_agent() {
    let rig = Rig::new("t4");
    let mut process = Process::start(&rig, Kind::Supervised);
    process.report();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        process.signal(signal);
    }
    process.command(r#"{"type":"refresh"}"#);
    assert_eq!(process.report().devices.len(), 1);
    process.close();
    assert!(process.ended().success());
}

#[test]
fn ends_when_told_to() {
    let rig = Rig::new("t4");
    let mut process = Process::start(&rig, Kind::Supervised);
    process.report();
    process.command("nonsense");
    process.command(r#"{"type":"stop"}"#);
    assert!(process.ended().success());
}

#[test]
fn ends_when_nobody_reads() {
    let rig = Rig::new("t4");
    let mut process = Process::start(&rig, Kind::Supervised);
    process.report();
    process.deafen();
    assert!(process.ended().success());
}

#[test]
fn without_input_it_gives_one_whole_look() {
    let rig = Rig::new("dgx-a100");
    let mut process = Process::start(&rig, Kind::Person);
    process.close();
    let first = process.report();
    let second = process.report();
    assert!(first.devices[0].links.is_empty() && second.devices[0].links.len() == 7);
    assert!(process.ended().success());
}

#[test]
fn beats_go_on_and_name_the_call_that_hangs() {
    let rig = Rig::new("dgx-a100");
    let card = rig.node.list_gpus().unwrap()[3].pci.to_string();
    rig.node
        .set_fault("nvmlDeviceGetMemoryInfo", Some(&target("3")), HANG)
        .unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    for _ in 0..2 {
        let stuck = stuck(&mut process);
        assert!(
            stuck.call.starts_with("nvmlDeviceGetMemoryInfo"),
            "{stuck:?}"
        );
        assert_eq!(stuck.device, card.parse().ok());
        assert_eq!(stuck.work, Work::Survey);
    }
    process.close();
    assert!(process.ended().success(), "a hanging call does not keep it");
}

#[test]
fn a_file_in_which_the_survey_hangs_is_named_like_a_call() {
    let rig = Rig::new("dgx-a100");
    let card = rig.pci(3);
    rig.hang_file(card, "numa_node");
    let mut process = Process::start(&rig, Kind::Supervised);
    let stuck = stuck(&mut process);
    let call = format!("read /sys/bus/pci/devices/{card}/numa_node");
    let card = CardRef::Pci(card);
    assert_eq!((stuck.call, stuck.device), (call, Some(card)));
}

#[test]
fn a_registration_that_hangs_is_held_against_its_card() {
    let rig = Rig::new("dgx-a100");
    let card = rig.node.list_gpus().unwrap()[2].pci.to_string();
    let call = "nvmlDeviceRegisterEvents";
    rig.node.set_fault(call, Some(&target("2")), HANG).unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    let stuck = stuck(&mut process);
    assert_eq!((stuck.call.as_str(), stuck.work), (call, Work::Survey));
    assert_eq!(stuck.device, card.parse().ok());
}

#[test]
fn a_driver_that_comes_later_is_found() {
    let rig = Rig::new("t4");
    rig.node.unplug_driver().unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    let report = process.report();
    assert_eq!(report.problem.unwrap().kind, ProblemKind::NoDriver);
    rig.node.plug_driver().unwrap();
    assert_eq!(process.report().devices.len(), 1);
}

#[test]
fn a_driver_that_the_loader_finds_is_named_and_followed() {
    let rig = Rig::new("t4");
    let mut process = Process::start(&rig, Kind::ByName);
    let library = process.report().driver.unwrap().library.unwrap();
    assert_eq!(library, rig.node.driver_library().display().to_string());
    rig.node.unplug_driver().unwrap();
    let gone = process.report();
    assert_eq!(gone.problem.unwrap().kind, ProblemKind::NoDriver);
    rig.node.plug_driver().unwrap();
    assert_eq!(process.report().devices.len(), 1);
}

/// Waits until all cards are registered for events.
fn listening(rig: &Rig) {
    rig.node.trace().unwrap();
    let begun = Instant::now();
    loop {
        let calls = rig.node.traced_calls().unwrap();
        if calls
            .iter()
            .any(|call| call.starts_with("nvmlEventSetWait"))
        {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "nobody listens");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_wait_for_events_is_named_only_when_it_is_late() {
    let rig = Rig::new("t4");
    let mut process = Process::start(&rig, Kind::Supervised);
    process.report();
    listening(&rig);
    for _ in 0..2 {
        assert_eq!(process.beat().calls, [], "waiting is no hanging");
    }
    rig.node.set_fault("nvmlEventSetWait", None, HANG).unwrap();
    let late = stuck(&mut process);
    assert!(late.call.starts_with("nvmlEventSetWait"), "{late:?}");
    assert_eq!((late.device, late.work), (None, Work::Events));
    process.command(r#"{"type":"refresh"}"#);
    assert_eq!(process.report().devices.len(), 1, "the survey goes on");
}

#[test]
fn an_event_is_passed_on_and_followed_by_a_look() {
    let rig = Rig::new("dgx-a100");
    let mut process = Process::start(&rig, Kind::Supervised);
    process.report();
    process.report();
    listening(&rig);
    let gpu = rig.node.list_gpus().unwrap().remove(2);
    rig.node.lose_cards(&target("2")).unwrap();
    rig.node.raise_xid(&target("2"), 79).unwrap();
    let (mut event, mut report) = (None, None);
    // The survey may find the card lost before its event is heard.
    process.wait(|message| {
        match message {
            Message::Event(heard) => event = Some(heard.clone()),
            Message::Report(seen) if seen.devices.len() == 7 => report = Some(seen.clone()),
            _ => {}
        }
        (event.is_some() && report.is_some()).then_some(())
    });
    let (event, report) = (event.unwrap(), report.unwrap());
    assert_eq!(event.device.as_str(), gpu.uuid);
    assert_eq!(event.code.as_str(), "xid:79");
    assert_eq!(report.unreadable[0].card, CardRef::Pci(rig.pci(2)));
}

#[test]
fn an_event_while_sensors_are_read_makes_no_counter_fall() {
    let rig = Rig::new("dgx-a100");
    // After its first reset, a simulated card counts its energy by the clock.
    rig.node.reset_cards(&target("0"), Duration::ZERO).unwrap();
    let uuid = rig.node.list_gpus().unwrap()[0].uuid.clone();
    let mut process = Process::start(&rig, Kind::Supervised);
    process.report();
    listening(&rig);
    // The counters of card 0 are read but not sent yet.
    let call = "nvmlDeviceGetPowerUsage";
    rig.node.set_fault(call, Some(&target("7")), HANG).unwrap();
    process.command(r#"{"type":"refresh"}"#);
    let stuck = stuck(&mut process);
    assert!(stuck.call.starts_with(call), "{stuck:?}");
    rig.node.raise_xid(&target("0"), 79).unwrap();
    process.wait(|message| matches!(message, Message::Event(_)).then_some(()));
    let mut read = Vec::new();
    let mut energy = |message: &Message| {
        let (device, counts) = match message {
            Message::Sample(sample) => (&sample.device, &sample.since_reset),
            Message::Count(count) => (&count.device, &count.since_reset),
            _ => return,
        };
        if device.as_str() == uuid {
            read.push(counts.energy_millijoules.unwrap());
        }
    };
    // A thread that read the counters because of the event would send them now.
    for _ in 0..2 {
        loop {
            let message = process.next();
            energy(&message);
            if matches!(message, Message::Beat(_)) {
                break;
            }
        }
    }
    rig.node.clear_faults(None).unwrap();
    for _ in 0..3 {
        process.command(r#"{"type":"refresh"}"#);
        loop {
            let message = process.next();
            energy(&message);
            if matches!(message, Message::Report(_)) {
                break;
            }
        }
    }
    assert!(read.len() >= 3, "{read:?}");
    assert!(read.is_sorted(), "a counter fell: {read:?}");
}

#[test]
fn a_driver_that_cannot_be_listened_to_is_no_busy_loop() {
    let rig = Rig::new("t4");
    rig.node
        .set_fault("nvmlEventSetWait", None, Effect::Fail { code: 999 })
        .unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    process.report();
    let before = process.beat().made;
    let made = process.beat().made - before;
    assert!(made < 300, "{made} calls between two beats");
}

#[test]
fn a_monitor_that_fails_is_a_warning_until_it_works_again() {
    let rig = Rig::new("dgx-a100");
    let fail = Effect::Fail { code: 999 };
    let register = "nvmlDeviceRegisterEvents";
    rig.node
        .set_fault(register, Some(&target("2")), fail)
        .unwrap();
    let mut process = Process::start(&rig, Kind::Supervised);
    let card = rig.node.list_gpus().unwrap()[2].pci;
    let unheard = format!("events of {card} are not heard: {register}: UNKNOWN");
    warned(&mut process, &[unheard]);

    rig.node.clear_faults(None).unwrap();
    rig.node.set_fault("nvmlEventSetWait", None, fail).unwrap();
    let deaf = "no events are heard: nvmlEventSetWait_v2: UNKNOWN".to_owned();
    warned(&mut process, &[deaf]);

    rig.node.clear_faults(None).unwrap();
    warned(&mut process, &[]);
}
