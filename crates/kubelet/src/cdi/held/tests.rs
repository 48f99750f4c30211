//! A record of a kubelet 1.36, and others.

use rstest::rstest;

use super::*;

/// Two containers, the second with one resource by annotation and one without CDI.
const REAL: &str = r#"{"Data":{"PodDeviceEntries":[
{"PodUID":"8c1f","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"0":["GPU-a"]},
"AllocResp":"KigKJms4cy5kZXZpY2UtcGx1Z2luLm52aWRpYS5jb20vZ3B1PUdQVS1h"},
{"PodUID":"9d20","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["GPU-b"]},
"AllocResp":"IjwKDGNkaS5rOHMuaW8veBIsazhzLmRldmljZS1wbHVnaW4ubnZpZGlhLmNvbS9ncHU9MCxhLmNvbS9iPTE="},
{"PodUID":"9d20","ContainerName":"main","ResourceName":"a.com/b","DeviceIDs":{"-1":["1"]},"AllocResp":""}
],"RegisteredDevices":{"nvidia.com/gpu":["GPU-a","GPU-b"]}},"Checksum":2745286417}"#;

fn names(names: &[&str]) -> BTreeSet<String> {
    let ours = names.iter().map(|name| format!("{VENDOR}/{name}"));
    ours.collect()
}

#[test]
fn names_are_found_in_both_places() {
    let held = parse(REAL).unwrap();
    assert_eq!(held.names, names(&["gpu=GPU-a", "gpu=0"]));
    assert_eq!(held.containers, 2);
}

#[rstest]
#[case::none(r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}"#)]
#[case::no_answer(
    r#"{"Data":{"PodDeviceEntries":[{"PodUID":"a","ContainerName":"b","AllocResp":null}]}}"#
)]
fn a_record_without_names_holds_nothing(#[case] text: &str) {
    assert_eq!(parse(text), Ok(Held::default()));
}

#[rstest]
#[case::cut_off("{\"Data\":")]
#[case::other_shape("{}")]
#[case::no_base64(
    r#"{"Data":{"PodDeviceEntries":[{"PodUID":"a","ContainerName":"b","AllocResp":"?"}]}}"#
)]
#[case::no_message(
    r#"{"Data":{"PodDeviceEntries":[{"PodUID":"a","ContainerName":"b","AllocResp":"/////w=="}]}}"#
)]
fn a_record_that_is_not_understood_says_so_with_its_path(#[case] text: &str) {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(held(dir.path()), Ok(None));
    fs_err::write(dir.path().join(RECORD), text).unwrap();
    let error = held(dir.path()).unwrap_err();
    assert!(error.contains(RECORD), "{error}");
}

#[test]
fn names_are_asked_for_as_pools_would() {
    assert_eq!(handovers(&BTreeSet::new()), []);
    let all = names(&["gpu=GPU-a", "gpu=3:1", "gds=all", "imex-channel=7"]);
    let wishes = handovers(&all);
    let ids: Vec<_> = wishes.iter().map(|wish| wish.ids).collect();
    assert_eq!(ids, [IdStrategy::Uuid, IdStrategy::Index]);
    assert!(
        wishes
            .iter()
            .map(|wish| &wish.nvidia)
            .all(|wish| wish.gds && !wish.gdrcopy && !wish.mofed)
    );
    assert_eq!(wishes[0].nvidia.imex, [7]);
    let wsl = handovers(&names(&["gpu=all"]));
    assert_eq!(wsl.len(), 1);
}
