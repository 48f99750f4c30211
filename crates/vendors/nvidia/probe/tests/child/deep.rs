//! Deep checks: the command that a user names, and what becomes of what it starts.

use std::time::Duration;

use model::Values;
use probe::protocol::{DeepCheck, Message};
use rstest::rstest;

use crate::{
    node::{Rig, target, wait_for},
    process::{Kind, Process},
};

/// A deep check that is this shell script.
fn deep(script: String) -> Option<DeepCheck> {
    Some(DeepCheck {
        command: vec!["sh".to_owned(), "-c".to_owned(), script],
        period: Duration::from_millis(500),
        limit: Duration::from_secs(600),
        last_ago: Duration::ZERO,
    })
}

#[test]
fn a_deep_check_runs_on_idle_cards_only_while_the_survey_goes_on() {
    let rig = Rig::new("dgx1-v100");
    rig.node.set(&target("1"), "utilization", 50).unwrap();
    let (begun, go) = (rig.node.dir().join("begun"), rig.node.dir().join("go"));
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo $OSTLER_DEVICE_PCI; \
         [ $OSTLER_DEVICE != {} ]",
        begun.display(),
        go.display(),
        rig.node.gpus().unwrap()[2].uuid
    );
    let mut process = Process::start_with(&rig, Kind::Supervised, |c| c.deep = deep(script));
    process.report();
    wait_for(|| begun.exists().then_some(()));
    let cards = rig.node.gpus().unwrap();
    rig.node.lose(&target("7")).unwrap();
    process.wait(|message| match message {
        Message::Report(report) if !report.unreadable.is_empty() => Some(()),
        _ => None,
    });
    fs_err::write(&go, "").unwrap();
    let mut found = Vec::new();
    while found.len() < 8 {
        let checkup = process.checkup();
        if let Values::Deep(deep) = checkup.reading.values {
            found.push((checkup.device.to_string(), deep.passed, deep.output));
        }
    }
    found.sort_by_key(|(id, ..)| cards.iter().position(|card| card.uuid == *id));
    let passed: Vec<_> = found.iter().map(|(_, passed, _)| *passed).collect();
    let yes = Some(true);
    assert_eq!(passed, [yes, None, Some(false), yes, yes, yes, yes, None]);
    assert_eq!(found[0].2, cards[0].pci.to_string());
    assert!(found[1].2.starts_with("not run: "), "{found:?}");
    assert!(found[7].2.starts_with("not run: "), "{found:?}");
}

/// Starts a process and writes its id down, in one step.
const START: &str = "sleep 1000 & echo $! > MARK.new; mv MARK.new MARK";

/// A probe whose deep check is this script, and the process that it started.
fn start(rig: &Rig, script: &str) -> (Process, String) {
    let mark = rig.node.dir().join("pid");
    let script = script.replace("MARK", &mark.display().to_string());
    let mut process = Process::start_with(rig, Kind::Supervised, |c| c.deep = deep(script));
    process.report();
    let pid = wait_for(|| fs_err::read_to_string(&mark).ok());
    (process, pid.trim().to_owned())
}

/// A process as the kernel shows it; nothing where it is gone.
fn status(pid: &str) -> String {
    fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

fn is_alive(pid: &str) -> bool {
    let status = status(pid);
    !status.is_empty() && !status.contains("State:\tZ")
}

#[rstest]
#[case::told_to_end(false)]
#[case::killed_with_its_group(true)]
fn a_deep_check_ends_with_its_probe(#[case] killed: bool) {
    let rig = Rig::new("t4");
    // The command starts another process, which must not be left behind either.
    let (mut process, pid) = start(&rig, &format!("{START}; wait"));
    assert!(is_alive(&pid));
    if killed {
        process.kill_group();
        return wait_for(|| (!is_alive(&pid)).then_some(()));
    }
    process.close();
    process.ended();
    assert!(!is_alive(&pid), "a probe that has ended holds nothing open");
}

#[test]
fn what_left_the_probes_group_ends_with_it_too() {
    let rig = Rig::new("t4");
    let (mut process, pid) = start(&rig, &format!("(setsid sh -c '{START}' &); sleep 1000"));
    assert!(is_alive(&pid));
    process.close();
    process.ended();
    assert!(!is_alive(&pid));
}

/// As a daemon does it: two forks, a session of its own, no parent.
#[test]
fn what_a_command_leaves_behind_is_ended_and_reaped_while_the_probe_goes_on() {
    let rig = Rig::new("t4");
    let (mut process, pid) = start(&rig, &format!("(setsid sh -c '{START}' &) ; echo begun"));
    let passed = wait_for(|| match process.checkup().reading.values {
        Values::Deep(deep) => Some(deep.passed),
        _ => None,
    });
    assert_eq!(passed, Some(true));
    wait_for(|| {
        process.next();
        status(&pid).is_empty().then_some(())
    });
    process.close();
    process.ended();
}
