use std::thread;

use super::{run::TAIL, *};

fn check(script: &str, limit: Duration) -> DeepCheck {
    DeepCheck {
        command: ["sh", "-c", script].map(str::to_owned).into(),
        period: Duration::from_secs(3600),
        limit,
        last_ago: Duration::ZERO,
    }
}

fn cards() -> Vec<Patient> {
    ["a", "b"]
        .map(|id| Patient {
            id: format!("GPU-{id}").into(),
            pci: format!("0000:0{id}:00.0").parse().ok(),
            index: (id == "a").then(|| Index::of_card(7)),
        })
        .into()
}

/// With a round under way.
fn begun(check: DeepCheck) -> Deep {
    let now = Instant::now();
    let due = now + check.period;
    let mut deep = Deep::new(check, now);
    assert_eq!(deep.next(now), due);
    deep.begin(|| panic!("the first round is an hour away"), now);
    deep.begin(cards, due);
    deep
}

/// Runs a round to its end.
fn round(check: DeepCheck, busy: impl Fn(&DeviceId) -> Option<String>) -> Vec<(String, Outcome)> {
    let mut deep = begun(check);
    let mut told = Vec::new();
    for _ in 0..1000 {
        told.extend(deep.go_on(&busy, Instant::now()));
        if told.len() == 2 {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    deep.begin(|| panic!("the next round is an hour away"), Instant::now());
    told.into_iter()
        .map(|checkup| match checkup.reading.values {
            Values::Deep(outcome) => (checkup.device.to_string(), outcome),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_command_is_told_its_card_and_its_last_words_are_kept() {
    let script = r#"head -c 9000 /dev/zero | tr '\0' x; echo
        echo "$OSTLER_DEVICE $OSTLER_DEVICE_PCI $OSTLER_DEVICE_INDEX" >&2
        [ "$OSTLER_DEVICE" = GPU-a ]"#;
    let told = round(check(script, Duration::from_secs(60)), |_| None);
    let (device, first) = &told[0];
    assert_eq!((device.as_str(), first.passed), ("GPU-a", Some(true)));
    let words = "x\nGPU-a 0000:0a:00.0 7";
    assert!(first.output.ends_with(words), "{}", first.output);
    assert!(first.output.len() <= TAIL);
    let (device, second) = &told[1];
    assert_eq!((device.as_str(), second.passed), ("GPU-b", Some(false)));
    assert!(
        second
            .output
            .ends_with("GPU-b 0000:0b:00.0\nexit status: 1"),
        "{}",
        second.output
    );
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_has_failed() {
    let told = round(
        check("echo begun; exec sleep 1000", Duration::from_millis(300)),
        |_| None,
    );
    assert_eq!(told[0].1.passed, Some(false));
    assert!(told[0].1.output.contains("took longer than"), "{told:?}");
}

#[test]
fn a_round_is_due_a_period_after_the_last_and_not_at_once() {
    let now = Instant::now();
    let due = |ago| {
        let mut check = check("true", Duration::from_secs(60));
        check.last_ago = Duration::from_secs(ago);
        Deep::new(check, now)
            .next(now)
            .duration_since(now)
            .as_secs()
    };
    assert_eq!(due(0), 3600, "nobody knows of one");
    assert_eq!(due(3000), 600);
    assert_eq!(due(3590), 360);
    assert_eq!(due(1_000_000), 360, "it is overdue");
}

#[test]
fn a_busy_card_is_left_alone_and_the_reason_told() {
    let busy = |id: &DeviceId| (id.as_str() == "GPU-a").then(|| "process 7 is on it".to_owned());
    let told = round(check("true", Duration::from_secs(60)), busy);
    assert_eq!(told[0].1.passed, None);
    assert_eq!(told[0].1.output, "not run: process 7 is on it");
    assert_eq!(told[1].1.passed, Some(true));
}

#[test]
fn a_command_that_does_not_exist_is_named_and_no_verdict() {
    let mut absent = check("", Duration::from_secs(60));
    absent.command = vec!["/no/such/program".to_owned()];
    let told = round(absent, |_| None);
    assert_eq!(told[0].1.passed, None);
    assert!(told[0].1.output.starts_with("cannot run /no/such/program:"));
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("pid");
    let script = format!(
        "sh -c 'sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait' & wait",
        mark.display()
    );
    let mut deep = begun(check(&script, Duration::from_secs(60)));
    assert!(deep.go_on(|_| None, Instant::now()).is_empty());
    let pid = wait_for(|| fs_err::read_to_string(&mark).ok());
    let alive = || {
        let path = format!("/proc/{}/stat", pid.trim());
        let stat = fs_err::read_to_string(path).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(alive());
    let told = deep.go_on(
        |_| Some("busy".to_owned()),
        Instant::now() + Duration::from_secs(61),
    );
    assert_eq!(told.len(), 2);
    wait_for(|| (!alive()).then_some(()));
    wait_for(|| {
        deep.go_on(|_| None, Instant::now());
        deep.leaving.is_empty().then_some(())
    });
}

#[test]
fn a_command_that_does_not_end_keeps_the_next_off_its_card_and_no_other() {
    let mut deep = begun(check("true", Duration::from_secs(60)));
    let sleep = ["sleep", "1000"].map(str::to_owned);
    let run = Run::start(&sleep, &cards()[0], Instant::now()).unwrap();
    let why = format!("not run: process {} was killed and has not ended", run.id());
    deep.leaving.push(run);
    let told = deep.go_on(|_| None, Instant::now());
    assert_eq!(told.len(), 1);
    match &told[0].reading.values {
        Values::Deep(outcome) => assert_eq!(outcome.output, why),
        other => panic!("{other:?}"),
    }
    let running = deep.running.as_ref().map(|run| run.patient.id.as_str());
    assert_eq!(running, Some("GPU-b"));
}

fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1500 {
        if let Some(found) = what() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("it did not come about")
}
