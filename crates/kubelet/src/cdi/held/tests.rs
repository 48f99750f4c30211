//! Tests with a checkpoint of a kubelet 1.36, and with broken ones.

use rstest::rstest;

use super::*;

/// Checkpoint of two containers. The second has one resource by annotation and one without CDI.
const REAL: &str = r#"{"Data":{"PodDeviceEntries":[
{"PodUID":"8c1f","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"0":["GPU-a"]},
"AllocResp":"KigKJms4cy5kZXZpY2UtcGx1Z2luLm52aWRpYS5jb20vZ3B1PUdQVS1h"},
{"PodUID":"9d20","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["GPU-b"]},
"AllocResp":"IjwKDGNkaS5rOHMuaW8veBIsazhzLmRldmljZS1wbHVnaW4ubnZpZGlhLmNvbS9ncHU9MCxhLmNvbS9iPTE="},
{"PodUID":"9d20","ContainerName":"main","ResourceName":"a.com/b","DeviceIDs":{"-1":["1"]},"AllocResp":""}
],"RegisteredDevices":{"nvidia.com/gpu":["GPU-a","GPU-b"]}},"Checksum":2745286417}"#;

const KIND: &str = "k8s.device-plugin.nvidia.com/gpu";

#[test]
fn names_are_found_in_both_places() {
    let held = parse_checkpoint(REAL, &[KIND]).unwrap();
    let names = ["GPU-a", "0"].map(|name| format!("{KIND}={name}"));
    assert_eq!(held.names, names.into());
    assert_eq!(held.containers, 2);
}

#[rstest]
#[case::none(r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}"#)]
#[case::no_answer(
    r#"{"Data":{"PodDeviceEntries":[{"PodUID":"a","ContainerName":"b","AllocResp":null}]}}"#
)]
fn a_record_without_names_holds_nothing(#[case] text: &str) {
    assert_eq!(parse_checkpoint(text, &[KIND]), Ok(HeldNames::default()));
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
    assert_eq!(read_held_names(dir.path(), &[KIND]), Ok(None));
    fs_err::write(dir.path().join(RECORD), text).unwrap();
    let error = read_held_names(dir.path(), &[KIND]).unwrap_err();
    assert!(error.contains(RECORD), "{error}");
}
