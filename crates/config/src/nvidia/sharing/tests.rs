//! Forms of the section `sharing`.

use rstest::rstest;

use super::*;
use crate::nvidia::{V1File, parse_v1};

const UUID: &str = "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c";

fn file(json: &str) -> Result<V1File, String> {
    parse_v1("x", json).map_err(|error| error.to_string())
}

/// Reads the one resource of a section `sharing.timeSlicing`.
fn resource(json: &str) -> Result<ReplicatedResource, String> {
    let text = format!(r#"{{"sharing": {{"timeSlicing": {{"resources": [{json}]}}}}}}"#);
    file(&text).map(|file| file.time_slicing.unwrap().resources.remove(0))
}

fn devices(json: &str) -> Result<SharedDevices, String> {
    let text = format!(r#"{{"name": "gpu", "replicas": 2, "devices": {json}}}"#);
    resource(&text).map(|resource| resource.devices.value)
}

#[rstest]
#[case("0", DeviceRef::Index("0".to_owned()))]
#[case("12", DeviceRef::Index("12".to_owned()))]
#[case("0:1", DeviceRef::MigIndex("0:1".to_owned()))]
#[case("GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c", uuid("GPU-", ""))]
#[case("MIG-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c", uuid("MIG-", ""))]
#[case(
    "MIG-GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c/3/0",
    uuid("MIG-GPU-", "/3/0")
)]
fn a_device_is_an_index_or_an_id(#[case] text: &str, #[case] expected: DeviceRef) {
    assert_eq!(text.parse(), Ok(expected.clone()));
    assert_eq!(expected.as_str(), text);
}

fn uuid(prefix: &str, rest: &str) -> DeviceRef {
    DeviceRef::Uuid(format!("{prefix}{UUID}{rest}"))
}

#[rstest]
#[case("")]
#[case("-1")]
#[case("1.0")]
#[case("0:")]
#[case(":0")]
#[case("0:1:2")]
#[case("GPU-123")]
#[case("MIG-GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c")]
#[case("MIG-GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c/3")]
#[case("MIG-GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c/a/b")]
#[case("CPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c")]
#[case("GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16g")]
fn other_texts_are_no_devices(#[case] text: &str) {
    let error = text.parse::<DeviceRef>().unwrap_err();
    assert!(error.contains(&format!("`{text}`")), "{error}");
}

fn list(refs: &[&str]) -> Option<SharedDevices> {
    Some(SharedDevices::List(
        refs.iter().map(|text| text.parse().unwrap()).collect(),
    ))
}

#[rstest]
#[case(r#""all""#, Some(SharedDevices::All))]
#[case("all", Some(SharedDevices::All))]
#[case(r#""All""#, None)]
#[case(r#""some""#, None)]
#[case(r#""2""#, None)]
#[case("1", Some(SharedDevices::Count(1)))]
#[case("2", Some(SharedDevices::Count(2)))]
#[case("0", None)]
#[case("-2", None)]
#[case("2.0", None)]
#[case("true", None)]
#[case("{}", None)]
#[case("[]", None)]
#[case("[0]", list(&["0"]))]
#[case("[0, 1, 2]", list(&["0", "1", "2"]))]
#[case(r#"["0", "1"]"#, list(&["0", "1"]))]
#[case(r#"[0, "1"]"#, list(&["0", "1"]))]
#[case(r#"["0:0", "0:1"]"#, list(&["0:0", "0:1"]))]
#[case(r#"[0, "1:0"]"#, list(&["0", "1:0"]))]
#[case("[-1]", None)]
#[case("[1.5]", None)]
#[case(r#"["all"]"#, None)]
#[case(r#"["GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"]"#,
    list(&["GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"]))]
#[case(r#"["MIG-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"]"#,
    list(&["MIG-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"]))]
#[case(r#"["MIG-GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c/0/0"]"#,
    list(&["MIG-GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c/0/0"]))]
#[case(r#"[0, "GPU-nonsense"]"#, None)]
fn devices_are_all_a_number_or_a_list(#[case] json: &str, #[case] expected: Option<SharedDevices>) {
    assert_eq!(devices(json).ok(), expected);
}

#[rstest]
#[case(r#"{"name": "gpu", "replicas": 2}"#, Some(("nvidia.com/gpu", 2, None)))]
#[case(r#"{"name": "nvidia.com/gpu", "replicas": 2}"#, Some(("nvidia.com/gpu", 2, None)))]
#[case(r#"{"name": "mig-1g.5gb", "replicas": 10}"#, Some(("nvidia.com/mig-1g.5gb", 10, None)))]
#[case(r#"{"name": "gpu", "replicas": 2, "rename": "fast"}"#,
    Some(("nvidia.com/gpu", 2, Some("nvidia.com/fast"))))]
#[case(r#"{"NAME": "gpu", "Replicas": 2, "ReName": "nvidia.com/fast"}"#,
    Some(("nvidia.com/gpu", 2, Some("nvidia.com/fast"))))]
#[case(r#"{"name": "gpu"}"#, None)]
#[case(r#"{"replicas": 2}"#, None)]
#[case(r#"{}"#, None)]
#[case(r#"{"name": "gpu", "replicas": 1}"#, None)]
#[case(r#"{"name": "gpu", "replicas": 0}"#, None)]
#[case(r#"{"name": "gpu", "replicas": -1}"#, None)]
#[case(r#"{"name": "gpu", "replicas": "2"}"#, None)]
#[case(r#"{"name": "gpu", "replicas": 2.5}"#, None)]
#[case(r#"{"name": "", "replicas": 2}"#, None)]
#[case(r#"{"name": "$invalid$", "replicas": 2}"#, None)]
#[case(r#"{"name": "other.com/gpu", "replicas": 2}"#, None)]
#[case(r#"{"name": "gpu", "replicas": 2, "rename": "Fast"}"#, None)]
#[case(
    r#"{"name": "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij123", "replicas": 2}"#,
    None
)]
#[case(r#"{"name": "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij12", "replicas": 2}"#,
    Some(("nvidia.com/abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij12", 2, None)))]
fn a_resource_has_a_name_and_replicas(
    #[case] json: &str,
    #[case] expected: Option<(&str, u32, Option<&str>)>,
) {
    let found = resource(json).ok();
    let found = found.as_ref().map(|found| {
        let rename = found.rename.as_ref().map(|said| said.value.as_str());
        (found.name.value.as_str(), found.replicas.value, rename)
    });
    assert_eq!(found, expected);
}

#[rstest]
#[case("{}", None)]
#[case(r#"{"resources": []}"#, None)]
#[case(r#"{"renameByDefault": true}"#, None)]
#[case(r#"{"resources": [{"name": "gpu", "replicas": 2}]}"#, Some((false, None, 1)))]
#[case(r#"{"resources": [{"name": "gpu", "replicas": 2}, {"name": "b", "replicas": 3}]}"#,
    Some((false, None, 2)))]
#[case(r#"{"renameByDefault": true, "failRequestsGreaterThanOne": false,
    "resources": [{"name": "gpu", "replicas": 2}]}"#, Some((true, Some(false), 1)))]
#[case(r#"{"failRequestsGreaterThanOne": true, "resources": [{"name": "gpu", "replicas": 2}]}"#,
    Some((false, Some(true), 1)))]
#[case(r#"{"resources": {"name": "gpu", "replicas": 2}}"#, None)]
fn a_section_has_at_least_one_resource(
    #[case] json: &str,
    #[case] expected: Option<(bool, Option<bool>, usize)>,
) {
    for section in ["timeSlicing", "mps"] {
        let file = file(&format!(r#"{{"sharing": {{"{section}": {json}}}}}"#)).ok();
        let found = file.and_then(|file| file.time_slicing.or(file.mps));
        let found = found.map(|found| {
            let fail = found.fail_requests_greater_than_one.map(|said| said.value);
            (found.rename_by_default, fail, found.resources.len())
        });
        assert_eq!(found, expected, "{section}");
    }
}
