use super::*;

const HELLO: &str = r#"{"type":"hello","protocol":2,"probe":"x","version":"1"}"#;

/// Returns the complaints about lines that arrive one second after another.
fn complaints(lines: &[&str]) -> Vec<String> {
    let allow = vec!["/dev/crypto*".parse().unwrap()];
    let mut checker = LineChecker::new(Some(allow));
    let mut found = Vec::new();
    for (second, line) in (0..).zip(lines) {
        found.extend(checker.check_line(line.as_bytes(), Duration::from_secs(second)));
    }
    found.extend(checker.check_end());
    found.iter().map(ToString::to_string).collect()
}

fn report(id: &str, node: &str) -> String {
    format!(
        r#"{{"type":"report","devices":[{{"id":"{id}","nodes":[{{"path":"{node}","role":"own"}}]}}]}}"#
    )
}

#[test]
fn a_probe_that_holds_to_the_protocol_has_no_complaints() {
    let report = report("c0", "/dev/crypto0");
    let sample = r#"{"type":"sample","device":"c0","telemetry":{}}"#;
    let lines = [HELLO, &report, sample, r#"{"type":"beat"}"#];
    assert_eq!(complaints(&lines), [""; 0]);
}

#[test]
fn every_fault_is_told_with_its_line_and_a_remedy() {
    let (mine, foreign) = (report("c0", "/dev/crypto0"), report("c0", "/dev/mem"));
    let lines = [
        r#"{"type":"hello","protocol":1,"probe":"x","version":"1"}"#,
        "nonsense",
        r#"{"type":"song"}"#,
        &mine,
        &mine,
        &foreign,
        r#"{"type":"event","device":"c9","at":"2026-01-01T00:00:00Z","code":"a:1"}"#,
        r#"{"type":"report","devices":[{"id":"c0","kind":{"dream":{}}}]}"#,
    ];
    insta::assert_snapshot!(complaints(&lines).join("\n"));
}

#[test]
fn silence_is_noticed() {
    let mut checker = LineChecker::new(None);
    assert_eq!(checker.check_line(HELLO.as_bytes(), Duration::ZERO), []);
    let late = checker.check_line(br#"{"type":"beat"}"#, Duration::from_secs(9));
    assert_eq!(late[0].fault, "nothing was written for 9 s");
    assert!(!late[0].is_error);
}

#[test]
fn a_flood_is_complained_about_once_a_second() {
    let mut checker = LineChecker::new(None);
    checker.check_line(HELLO.as_bytes(), Duration::ZERO);
    let mut faults = Vec::new();
    for second in 1..=2 {
        for _ in 0..=LINES_LIMIT + 1 {
            let found = checker.check_line(br#"{"type":"beat"}"#, Duration::from_secs(second));
            faults.extend(found.into_iter().map(|complaint| complaint.fault));
        }
        assert!(checker.is_flooded());
    }
    assert_eq!(faults, ["more than 5000 lines within a second"; 2]);
    checker.check_line(br#"{"type":"beat"}"#, Duration::from_secs(3));
    assert!(!checker.is_flooded());
}

#[test]
fn a_report_after_a_refresh_may_say_nothing_new() {
    let mut checker = LineChecker::new(None);
    let report = report("c0", "/dev/crypto0");
    checker.check_line(HELLO.as_bytes(), Duration::ZERO);
    checker.check_line(report.as_bytes(), Duration::ZERO);
    checker.refreshed();
    assert_eq!(checker.check_line(report.as_bytes(), Duration::ZERO), []);
    assert_eq!(
        checker.check_line(report.as_bytes(), Duration::ZERO).len(),
        1
    );
}
