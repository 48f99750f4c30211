//! Comparing, on recordings written by hand.

use rstest::rstest;

use super::*;
use crate::differential::recording::{Allocate, Answer, Device, Grant, Outcome, Refusal, Resource};

fn device(numa: i64) -> Device {
    Device {
        health: "Healthy".to_owned(),
        numa: vec![numa],
    }
}

fn resource(socket: &str, ids: &[&str]) -> Resource {
    let devices = ids.iter().map(|&id| (id.to_owned(), device(0)));
    Resource {
        socket: socket.to_owned(),
        preferred: true,
        devices: devices.collect(),
        ..Resource::default()
    }
}

fn recording(resources: Vec<(&str, Resource)>) -> Recording {
    let resources = resources.into_iter().map(|(name, r)| (name.to_owned(), r));
    Recording {
        program: "a program".to_owned(),
        outcome: Outcome::Serves(resources.collect()),
        cdi: BTreeMap::new(),
    }
}

/// One that answers the call "two" with this.
fn answers(answer: Answer<Grant>) -> Recording {
    let mut resource = resource("gpu.sock", &["a", "b"]);
    resource.allocate = vec![Allocate {
        name: "two".to_owned(),
        ids: vec!["a".to_owned(), "b".to_owned()],
        answer,
    }];
    recording(vec![("nvidia.com/gpu", resource)])
}

fn sees(devices: &str) -> Grant {
    let name = "NVIDIA_VISIBLE_DEVICES".to_owned();
    Grant {
        env: [(name, devices.to_owned())].into(),
        ..Grant::default()
    }
}

fn refused(message: &str) -> Answer<Grant> {
    Answer::Refused(Refusal {
        code: "Unknown".to_owned(),
        message: message.to_owned(),
    })
}

fn case(flags: &[&str]) -> Case {
    Case {
        name: "t4/test".to_owned(),
        profile: "t4".to_owned(),
        layout: None,
        flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
        env: BTreeMap::new(),
        config: None,
        ours: crate::differential::case::Ours::Same,
        node: crate::differential::case::Traits::default(),
    }
}

fn places(verdict: &Verdict) -> Vec<String> {
    verdict.different.iter().map(|d| d.at.to_string()).collect()
}

#[test]
fn equal_recordings_are_equal() {
    let one = recording(vec![("nvidia.com/gpu", resource("gpu.sock", &["a", "b"]))]);
    let verdict = compare(&case(&[]), &one, &one.clone(), &Known::default());
    assert_eq!(verdict.different, []);
    assert!(verdict.explained.is_empty());
    assert_eq!(verdict.facts, 8);
}

#[test]
fn an_undocumented_difference_is_one() {
    let upstream = recording(vec![("nvidia.com/gpu", resource("gpu.sock", &["a"]))]);
    let ours = recording(vec![("nvidia.com/gpu", resource("gpu-1.sock", &["a"]))]);
    let verdict = compare(&case(&[]), &upstream, &ours, &Known::default());
    assert_eq!(places(&verdict), ["nvidia.com/gpu › socket"]);
}

#[test]
fn a_documented_difference_is_explained() {
    let upstream = recording(vec![("nvidia.com/gpu", resource("gpu.sock", &["a"]))]);
    let ours = recording(vec![("nvidia.com/gpu", resource("gpu-1.sock", &["a"]))]);
    let verdict = compare(&case(&[]), &upstream, &ours, &Known::of(&["socket-name"]));
    assert_eq!(verdict.different, []);
    assert_eq!(verdict.explained["socket-name"], 1);
}

#[test]
fn a_missing_resource_is_one_difference() {
    let upstream = recording(vec![("nvidia.com/gpu", resource("gpu.sock", &["a", "b"]))]);
    let ours = recording(vec![("nvidia.com/mig-1g.5gb", resource("x.sock", &["m"]))]);
    let verdict = compare(&case(&[]), &upstream, &ours, &Known::default());
    assert_eq!(
        places(&verdict),
        ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb"]
    );
    assert_eq!(verdict.different[0].upstream.as_deref(), Some("there"));
    assert_eq!(verdict.different[0].ours, None);
}

#[test]
fn a_missing_device_is_one_difference() {
    let upstream = recording(vec![("nvidia.com/gpu", resource("gpu.sock", &["a", "b"]))]);
    let ours = recording(vec![("nvidia.com/gpu", resource("gpu.sock", &["a"]))]);
    let verdict = compare(&case(&[]), &upstream, &ours, &Known::default());
    assert_eq!(places(&verdict), ["nvidia.com/gpu › device › b"]);
}

#[test]
fn a_numa_node_that_differs_is_seen() {
    let upstream = recording(vec![("nvidia.com/gpu", resource("gpu.sock", &["a"]))]);
    let mut other = resource("gpu.sock", &["a"]);
    other.devices.insert("a".to_owned(), device(3));
    let ours = recording(vec![("nvidia.com/gpu", other)]);
    let verdict = compare(&case(&[]), &upstream, &ours, &Known::default());
    assert_eq!(places(&verdict), ["nvidia.com/gpu › device › a › numa"]);
    assert_eq!(verdict.different[0].upstream.as_deref(), Some("[0]"));
    assert_eq!(verdict.different[0].ours.as_deref(), Some("[3]"));
}

#[rstest]
#[case(&["--device-id-strategy=index"], 0)]
#[case(&[], 1)]
fn the_order_counts_unless_devices_are_named_by_index(
    #[case] flags: &[&str],
    #[case] differences: usize,
) {
    let upstream = answers(Answer::Given(sees("1,0")));
    let ours = answers(Answer::Given(sees("0,1")));
    let verdict = compare(&case(flags), &upstream, &ours, &Known::default());
    assert_eq!(verdict.different.len(), differences);
}

#[test]
fn the_random_end_of_an_annotation_is_none() {
    let annotated = |end: &str| {
        let key = format!("cdi.k8s.io/nvidia-device-plugin_{end}");
        let annotations = [(key, "nvidia.com/gpu=a".to_owned())].into();
        answers(Answer::Given(Grant {
            annotations,
            ..Grant::default()
        }))
    };
    let upstream = annotated("0b1ce1bd-8bdf-46ad-92a5-6f9e1aa0a5f4");
    let ours = annotated("5b6a2b5f-37c2-4bb8-97a5-1f6f6a4c0f2d");
    let verdict = compare(&case(&[]), &upstream, &ours, &Known::default());
    assert_eq!(verdict.different, []);
}

#[test]
fn a_node_that_is_handed_over_twice_is_seen() {
    let node = "/dev/nvidia0:/dev/nvidia0:rw".to_owned();
    let nodes = |count: usize| {
        let nodes = vec![node.clone(); count];
        answers(Answer::Given(Grant {
            nodes,
            ..Grant::default()
        }))
    };
    let verdict = compare(&case(&[]), &nodes(2), &nodes(1), &Known::default());
    let value = verdict.different[0].upstream.as_deref();
    assert_eq!(value, Some("/dev/nvidia0 rw, 2 times"));
}

#[test]
fn other_words_for_a_refusal_are_explained_and_a_grant_is_not() {
    let known = Known::of(&["refusal-words"]);
    let upstream = answers(refused("no such device"));
    let verdict = compare(&case(&[]), &upstream, &answers(refused("what?")), &known);
    assert_eq!(verdict.explained["refusal-words"], 1);
    assert_eq!(verdict.different, []);
    let ours = answers(Answer::Given(sees("a")));
    let verdict = compare(&case(&[]), &upstream, &ours, &known);
    assert!(places(&verdict).contains(&"nvidia.com/gpu › allocate › two › outcome".to_owned()));
}

#[test]
fn a_program_that_dies_differs_from_one_that_serves() {
    let upstream = Recording {
        program: "a program".to_owned(),
        outcome: Outcome::Dies("no driver".to_owned()),
        cdi: BTreeMap::new(),
    };
    let ours = recording(Vec::new());
    let verdict = compare(&case(&[]), &upstream, &ours, &Known::default());
    assert_eq!(places(&verdict), ["outcome", "outcome › reason"]);
}
