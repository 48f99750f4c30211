//! The report, on verdicts written by hand.

use super::*;
use crate::differential::fact::Place;

fn report(complete: bool) -> Report {
    let difference = Difference {
        at: Place::new(&["nvidia.com/gpu", "socket"]),
        upstream: Some("nvidia-gpu.sock".to_owned()),
        ours: None,
    };
    let equal = Verdict {
        facts: 12,
        ..Verdict::default()
    };
    let explained = Verdict {
        explained: [("device-nodes".to_owned(), 3)].into(),
        ..equal.clone()
    };
    let different = Verdict {
        different: vec![difference],
        ..explained.clone()
    };
    let cases = [
        ("a/equal", Done::Compared(equal)),
        ("b/explained", Done::Compared(explained)),
        ("c/different", Done::Compared(different)),
        ("d/pending", Done::Pending),
        ("e/failed", Done::Failed("no kubelet".to_owned())),
    ];
    let cases = cases.map(|(name, done)| (name.to_owned(), done));
    let known = Known::of(&["device-nodes", "socket-name"]);
    Report::new(cases.into(), &known, complete)
}

#[test]
fn a_person_sees_each_case_and_each_difference() {
    insta::assert_snapshot!(report(true).text(), @r"
    case         facts  verdict
    a/equal         12  equal
    b/explained     12  explained by device-nodes (3)
    c/different     12  DIFFERENT in 1 facts; others explained by device-nodes (3)
    d/pending           pending
    e/failed            FAILED: no kubelet

    c/different
      nvidia.com/gpu › socket
        - upstream: nvidia-gpu.sock
        + ostler:   (absent)

    5 cases: 1 equal, 1 explained, 1 different, 1 failed, 1 pending (only NVIDIA's side is recorded)
    warning: documented and not seen in any case: socket-name
    ");
}

#[test]
fn a_part_of_the_cases_says_nothing_of_unseen_rows() {
    assert!(!report(false).text().contains("warning"));
}

#[test]
fn json_has_the_same() {
    let json: serde_json::Value = serde_json::from_str(&report(true).json().unwrap()).unwrap();
    assert_eq!(json["equal"], 1);
    assert_eq!(json["failed"], 1);
    assert_eq!(json["unseen"][0], "socket-name");
    assert_eq!(json["cases"][2]["verdict"], "DIFFERENT");
    let difference = &json["cases"][2]["differences"][0];
    assert_eq!(difference["at"], "nvidia.com/gpu › socket");
    assert_eq!(difference["ours"], serde_json::Value::Null);
}

#[test]
fn only_what_is_unexplained_fails() {
    assert!(report(true).fails());
    let known = Known::default();
    let fine = vec![("d/pending".to_owned(), Done::Pending)];
    assert!(!Report::new(fine, &known, true).fails());
}
