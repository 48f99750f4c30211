use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn entry() -> DeviceEntry {
    DeviceEntry {
        uid: "u-1".to_owned(),
        container: "main".to_owned(),
        resource: "a.b/c".to_owned(),
        devices: [(0, vec!["x".to_owned()]), (-1, vec!["y".to_owned()])].into(),
        response: ContainerAllocateResponse {
            envs: [("KEY".to_owned(), "value".to_owned())].into(),
            ..Default::default()
        },
    }
}

fn state(entries: Vec<DeviceEntry>) -> KubeletState {
    let mut state = KubeletState {
        entries,
        ..KubeletState::default()
    };
    state.replace_devices("a.b/c", &[]);
    state
}

#[test]
fn reads_back_what_it_wrote() {
    let loaded = decode(encode(&state(vec![entry()])).as_bytes()).unwrap();
    assert_eq!(loaded.entries, [entry()]);
    assert_eq!(loaded.resources, ["a.b/c"]);
}

#[test]
fn writes_the_kubelets_field_names() {
    let json: serde_json::Value = serde_json::from_str(&encode(&state(vec![entry()]))).unwrap();
    let row = &json["Data"]["PodDeviceEntries"][0];
    assert_eq!(row["PodUID"], "u-1");
    assert_eq!(row["ContainerName"], "main");
    assert_eq!(row["ResourceName"], "a.b/c");
    assert_eq!(
        row["DeviceIDs"],
        serde_json::json!({"0": ["x"], "-1": ["y"]})
    );
    // Protobuf of the answer: field 1 with a map entry of "KEY" and "value".
    assert_eq!(row["AllocResp"], "CgwKA0tFWRIFdmFsdWU=");
    assert_eq!(
        json["Data"]["RegisteredDevices"],
        serde_json::json!({"a.b/c": []})
    );
    assert!(json["Checksum"].is_u64());
}

#[test]
fn writes_null_for_no_entries_as_go_does() {
    let text = encode(&state(Vec::new()));
    assert!(text.contains(r#""PodDeviceEntries":null"#), "{text}");
    assert_eq!(decode(text.as_bytes()).unwrap().entries, []);
}

#[test]
fn refuses_a_file_that_was_changed() {
    let text = encode(&state(vec![entry()])).replace("\"x\"", "\"z\"");
    let error = decode(text.as_bytes()).unwrap_err();
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
}

#[test]
fn a_missing_file_is_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        read_checkpoint(dir.path()).unwrap(),
        LoadedCheckpoint::default()
    );
}

#[rstest]
#[case("", "")]
#[case("f", "Zg==")]
#[case("fo", "Zm8=")]
#[case("foo", "Zm9v")]
#[case("foobar", "Zm9vYmFy")]
fn base64_is_the_standard_one(#[case] plain: &str, #[case] coded: &str) {
    assert_eq!(to_base64(plain.as_bytes()), coded);
    assert_eq!(from_base64(coded).unwrap(), plain.as_bytes());
}

#[rstest]
#[case("Zg=")]
#[case("Z===")]
#[case("Z*==")]
#[case("abcde")]
fn refuses_what_is_not_base64(#[case] text: &str) {
    assert_eq!(from_base64(text), None);
}

proptest! {
    #[test]
    fn base64_is_lossless(bytes: Vec<u8>) {
        prop_assert_eq!(from_base64(&to_base64(&bytes)), Some(bytes));
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>, text: String) {
        let _ = decode(&bytes);
        let _ = from_base64(&text);
    }
}
