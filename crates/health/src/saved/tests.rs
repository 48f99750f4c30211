mod prune;

use std::time::Duration;

use nvidia_rules::{VENDORS, xid};
use rstest::rstest;

use super::*;
use crate::{DeviceRecord, HealthPolicy, Now};

fn at(seconds: u64) -> Now {
    let uptime = Duration::from_secs(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH + uptime,
        uptime,
    }
}

/// Default policy, with NVIDIA's events.
fn policy() -> HealthPolicy {
    HealthPolicy {
        vendors: VENDORS,
        ..HealthPolicy::default()
    }
}

fn now() -> Now {
    at(0)
}

fn file() -> SavedHealth {
    let mut record = DeviceRecord::default();
    record.happen(xid::xid_code(48), &policy(), now());
    SavedHealth {
        boot_id: "boot-1".to_owned(),
        drivers: [("nvidia".to_owned(), "load-1".to_owned())].into(),
        devices: [("GPU-0".into(), record.to_saved(now()))].into(),
        ..SavedHealth::default()
    }
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let text = serde_json::to_string(&file()).unwrap();
    assert_eq!(serde_json::from_str::<SavedHealth>(&text).unwrap(), file());
}

#[test]
fn an_empty_object_is_a_file_without_devices() {
    let empty: SavedHealth = serde_json::from_str("{}").unwrap();
    assert_eq!(empty, SavedHealth::default());
}

#[test]
fn a_file_of_a_newer_version_is_read_as_far_as_it_is_understood() {
    let text = r#"{
        "boot_id": "boot-1",
        "weather": {"sun": true},
        "devices": {
            "GPU-0": {"cordon": {"since": "2026-01-01T00:00:00Z", "by": "ann"}, "colour": "red"},
            "GPU-1": "a text"
        },
        "history": [
            {"at": "2026-01-01T00:00:00Z", "device": "GPU-0", "from": "Healthy", "to": "Dreaming"},
            {"at": "2026-01-01T00:00:00Z", "device": "GPU-0", "from": "Healthy", "to": "Unknown"}
        ]
    }"#;
    let file: SavedHealth = serde_json::from_str(text).unwrap();
    assert_eq!(file.history.len(), 1);
    let kept: Vec<&str> = file.devices.keys().map(DeviceId::as_str).collect();
    assert_eq!(kept, ["GPU-0"]);
    let cordon = file.devices["GPU-0"].cordon.as_ref().unwrap();
    assert_eq!(cordon.reason, "");
}

#[rstest]
#[case("RowRemap", model::CauseKind::MemoryRepair)]
#[case("PageRetirement", model::CauseKind::MemoryRepair)]
#[case("NvLink", model::CauseKind::Link)]
#[case("Fabric", model::CauseKind::Condition)]
fn changes_that_were_kept_with_an_older_name_are_still_read(
    #[case] name: &str,
    #[case] kind: model::CauseKind,
) {
    let text = format!(
        r#"{{"history": [{{"at": "2026-01-01T00:00:00Z", "device": "GPU-0", "from": "Healthy",
            "to": "Unhealthy", "ended": [], "began": [{{"kind": "{name}", "evidence": "x",
            "since": "2026-01-01T00:00:00Z", "ends_when": "y"}}]}}]}}"#
    );
    let file: SavedHealth = serde_json::from_str(&text).unwrap();
    assert_eq!(file.history[0].began[0].kind, kind);
}

#[rstest]
#[case::nothing_changed("boot-1", "nvidia", Some("load-1"), true, true)]
#[case::a_reboot("boot-2", "nvidia", Some("load-2"), false, false)]
#[case::a_reload("boot-1", "nvidia", Some("load-2"), true, false)]
#[case::not_known_now("boot-1", "nvidia", None, true, true)]
#[case::not_known_then("boot-1", "amd", Some("load-7"), true, true)]
fn a_driver_that_is_not_known_counts_as_the_same(
    #[case] boot: &str,
    #[case] backend: &str,
    #[case] instance: Option<&str>,
    #[case] same_boot: bool,
    #[case] same_driver: bool,
) {
    let continuity = Continuity {
        same_boot,
        same_driver,
    };
    assert_eq!(file().continuity(boot, backend, instance), continuity);
}
