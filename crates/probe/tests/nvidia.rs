//! The NVIDIA backend over the simulated driver library, loaded as the real one would be.
#![expect(clippy::unwrap_used, reason = "a test's helpers may panic too")]

#[path = "rig/backend.rs"]
mod backend;
#[path = "rig/node.rs"]
mod node;

use std::{
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use model::{CallFailure, Device, Kind, NodeRole};
use node::{Rig, target};
use nvml::Calls;
use probe::{
    child::Backend,
    nvidia::{Nvidia, Settings},
    protocol::{EventKind, ProblemKind, Report, Scope},
};
use sim::{Effect, NewGpu};

const NOT_SUPPORTED: Effect = Effect::Fail { code: 3 };
const UNKNOWN: Effect = Effect::Fail { code: 999 };
const HANG: Effect = Effect::Hang { millis: None };

fn ids(report: &Report) -> Vec<&str> {
    report.devices.iter().map(|d| d.id.as_str()).collect()
}

fn cards(report: &Report) -> Vec<&Device> {
    let is_card = |device: &&Device| matches!(device.kind, Kind::Card { .. });
    report.devices.iter().filter(is_card).collect()
}

#[test]
fn reads_every_card_with_its_place_and_nodes() {
    let rig = Rig::new("dgx-a100");
    let report = rig.backend().survey();
    let expected = rig.node.gpus().unwrap();

    assert_eq!(report.problem, None);
    assert_eq!(report.unreadable, []);
    let driver = report.driver.as_ref().unwrap();
    assert_eq!(driver.version, rig.node.state().unwrap().driver.version);
    assert!(driver.cuda.as_ref().unwrap().contains('.'));
    assert_eq!(report.devices.len(), expected.len());
    for (device, gpu) in report.devices.iter().zip(&expected) {
        assert_eq!(device.id.as_str(), gpu.uuid);
        assert_eq!(device.model, gpu.name);
        assert_eq!(device.pci, Some(gpu.pci));
        assert_eq!(device.numa, gpu.numa);
        assert_eq!(device.memory_bytes, Some(gpu.memory_bytes));
        assert_eq!(device.index, Some(gpu.index.to_string()));
        assert_eq!(device.compute_capability.as_deref(), Some("8.0"));
        assert_eq!(device.nodes[0].path, format!("/dev/nvidia{}", gpu.minor));
        assert!(
            device
                .nodes
                .iter()
                .any(|node| node.path == "/dev/nvidiactl")
        );
        assert!(
            device.links.is_empty() && device.failures.is_empty(),
            "{device:?}"
        );
    }
}

#[test]
fn links_come_after_the_first_look_and_are_asked_for_once() {
    let rig = Rig::new("dgx-a100");
    let calls = Arc::new(Calls::default());
    let mut backend = rig.backend_with(Scope::All, Arc::clone(&calls));
    let mut report = backend.survey();
    assert!(backend.links(&mut report, false));
    for device in &report.devices {
        assert_eq!(device.links.len(), 7);
        assert!(
            device
                .links
                .iter()
                .all(|link| link.fabric && link.ancestor.is_some())
        );
    }
    let mut again = backend.survey();
    assert_eq!(again, report);
    let made = calls.made();
    assert!(!backend.links(&mut again, false));
    assert_eq!(calls.made(), made, "links that are known cost no call");
    assert!(backend.links(&mut again, true));
    assert_eq!(again, report);
}

#[test]
fn counts_the_lanes_between_two_cards_the_same_from_both_ends() {
    let rig = Rig::new("dgx1-v100");
    let mut backend = rig.backend();
    let mut report = backend.survey();
    backend.links(&mut report, false);
    let lanes = |from: &Device, to: &Device| {
        let link = from.links.iter().find(|link| link.peer == to.id).unwrap();
        assert!(!link.fabric);
        link.lanes
    };
    let mut most = 0;
    for one in &report.devices {
        let all: u32 = one.links.iter().map(|link| link.lanes).sum();
        assert_eq!(all, 6, "a V100 has six lanes");
        for two in report.devices.iter().filter(|two| two.id != one.id) {
            assert_eq!(lanes(one, two), lanes(two, one));
            most = most.max(lanes(one, two));
        }
    }
    assert_eq!(most, 2);
}

#[test]
fn partitions_have_their_shape_and_capability_nodes() {
    let rig = Rig::new("a100-mig");
    let report = rig.backend().survey();
    let expected = rig.node.migs().unwrap();
    assert!(!expected.is_empty());
    let parts: Vec<&Device> = report
        .devices
        .iter()
        .filter(|device| matches!(device.kind, Kind::Partition { .. }))
        .collect();
    assert_eq!(parts.len(), expected.len());
    for (device, mig) in parts.iter().zip(&expected) {
        assert_eq!(device.id.as_str(), mig.uuid);
        assert_eq!(device.index.as_deref(), Some(mig.index.as_str()));
        assert_eq!(
            device.kind,
            Kind::Partition {
                parent: mig.gpu.as_str().into(),
                profile: mig.profile.clone(),
                gpu_instance: mig.gpu_instance,
                compute_instance: mig.compute_instance,
            }
        );
        let role = |role| device.nodes.iter().filter(|node| node.role == role).count();
        assert_eq!(
            (role(NodeRole::Own), role(NodeRole::Capability)),
            (1, 2),
            "{device:?}"
        );
    }
    let gpus = rig.node.gpus().unwrap();
    for (card, gpu) in cards(&report).iter().zip(&gpus) {
        let partitioned = gpu.mig_enabled;
        assert_eq!(card.kind, Kind::Card { partitioned });
    }
}

#[test]
fn a_lost_card_is_named_and_the_others_stay_as_they_are() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let mut before = backend.survey();
    backend.links(&mut before, false);
    let lost = rig.node.gpus().unwrap()[3].pci;
    rig.node.lose(&target("3")).unwrap();

    let after = backend.survey();
    assert_eq!(after.unreadable.len(), 1);
    assert_eq!(after.unreadable[0].pci, Some(lost));
    assert!(after.unreadable[0].failure.fatal);
    assert_eq!(after.unreadable[0].failure.code, "GPU_IS_LOST");
    assert_eq!(after.devices.len(), 7);
    for device in &after.devices {
        let old = before
            .devices
            .iter()
            .find(|old| old.id == device.id)
            .unwrap();
        assert_eq!(
            (&old.index, &old.nodes, old.pci),
            (&device.index, &device.nodes, device.pci)
        );
        assert_eq!(device.links.len(), 6, "links to the others are kept");
    }

    rig.node.restore(&target("3")).unwrap();
    let mut back = backend.survey();
    backend.links(&mut back, false);
    assert_eq!(back, before);
}

#[test]
fn no_call_but_the_id_is_needed_to_have_a_card() {
    let rig = Rig::new("a100-mig");
    let whole = rig.backend().survey();
    rig.node.trace().unwrap();
    let mut backend = rig.backend();
    let mut report = backend.survey();
    backend.links(&mut report, false);
    backend.samples();
    let mut names: Vec<String> = rig.node.calls().unwrap();
    names
        .iter_mut()
        .for_each(|name| name.truncate(name.find(' ').unwrap_or(name.len())));
    names.sort();
    names.dedup();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        if name.contains("Init") || name.contains("Handle") || name.contains("UUID") {
            continue;
        }
        for effect in [NOT_SUPPORTED, UNKNOWN] {
            rig.node.fault(&name, None, effect).unwrap();
            let mut report = backend.survey();
            backend.links(&mut report, true);
            backend.samples();
            assert_eq!(
                cards(&report).len(),
                cards(&whole).len(),
                "{name} {effect:?}: {report:?}"
            );
            // Without its number a card's node is not known, and the card cannot be used.
            if effect == NOT_SUPPORTED && name != "nvmlDeviceGetMinorNumber" {
                let failed = report
                    .devices
                    .iter()
                    .any(|device| !device.failures.is_empty());
                assert!(!failed, "{name} is not supported, which is no failure");
            }
            rig.node.clear_faults(None).unwrap();
        }
    }
    assert_eq!(backend.survey().devices.len(), whole.devices.len());
}

#[test]
fn a_failing_call_is_held_against_its_card_only() {
    let rig = Rig::new("dgx-a100");
    rig.node
        .fault("nvmlDeviceGetMemoryInfo", Some(&target("2")), UNKNOWN)
        .unwrap();
    let report = rig.backend().survey();
    let bad: Vec<usize> = (0..8)
        .filter(|at| !report.devices[*at].failures.is_empty())
        .collect();
    assert_eq!(bad, [2]);
    assert_eq!(report.devices[2].failures[0].code, "UNKNOWN");
    assert!(!report.devices[2].failures[0].fatal);
    assert_eq!(report.devices[2].memory_bytes, None);
}

#[test]
fn cards_left_out_are_not_touched() {
    let rig = Rig::new("dgx-a100");
    let gpus = rig.node.gpus().unwrap();
    let all = rig.backend().survey();
    rig.node.trace().unwrap();
    let skipped = gpus[3].pci.to_string().parse().unwrap();
    let report = rig.backend_for(Scope::Skip(vec![skipped])).survey();
    assert_eq!(report.skipped, [gpus[3].pci.to_string()]);
    assert_eq!(report.devices.len(), 7);
    let touched = rig.node.calls().unwrap();
    assert!(
        touched.iter().all(|call| !call.contains(&gpus[3].uuid)),
        "{touched:?}"
    );

    let report = rig.backend_for(Scope::Only(skipped)).survey();
    assert_eq!(ids(&report), [all.devices[3].id.as_str()]);
}

#[test]
fn a_machine_without_a_pci_bus_is_read_by_index() {
    let rig = Rig::new("t4");
    let empty = tempfile::tempdir().unwrap();
    let mut backend = Nvidia::new(
        Settings {
            host_root: empty.path().to_owned(),
            nvml_library: Some(rig.node.library()),
            ..Settings::default()
        },
        Arc::default(),
    );
    let report = backend.survey();
    let gpus = rig.node.gpus().unwrap();
    assert_eq!(ids(&report), [gpus[0].uuid.as_str()]);
    assert_eq!(report.devices[0].pci, Some(gpus[0].pci));
    assert_eq!(report.devices[0].nodes, []);
}

#[test]
fn a_driver_that_is_missing_goes_and_comes_is_followed() {
    let rig = Rig::new("t4");
    rig.node.unplug_driver().unwrap();
    let mut backend = rig.backend();
    for _ in 0..2 {
        let report = backend.survey();
        let problem = report.problem.unwrap();
        assert_eq!(problem.kind, ProblemKind::NoDriver);
        let file = rig.node.library().display().to_string();
        assert!(problem.message.contains(&file), "{}", problem.message);
        assert!(report.devices.is_empty() && report.driver.is_none());

        rig.node.plug_driver().unwrap();
        assert_eq!(backend.survey().devices.len(), 1);
        rig.node.unplug_driver().unwrap();
    }
}

#[test]
fn a_driver_that_does_not_start_is_quoted_and_tried_again() {
    let rig = Rig::new("t4");
    rig.node
        .fault("nvmlInit", None, Effect::Fail { code: 18 })
        .unwrap();
    let mut backend = rig.backend();
    let problem = backend.survey().problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::DriverFailed);
    assert!(
        problem.message.contains("LIB_RM_VERSION_MISMATCH"),
        "{}",
        problem.message
    );
    rig.node.clear_faults(None).unwrap();
    assert_eq!(backend.survey().devices.len(), 1);
}

#[test]
fn a_file_that_is_no_library_is_a_driver_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libnvidia-ml.so.1");
    fs_err::write(&file, "not a library").unwrap();
    let settings = Settings {
        driver_path: Some(folder.path().to_owned()),
        ..Settings::default()
    };
    let problem = Nvidia::new(settings, Arc::default())
        .survey()
        .problem
        .unwrap();
    assert_eq!(problem.kind, ProblemKind::DriverFailed);
    assert!(
        problem.message.contains(&file.display().to_string()),
        "{}",
        problem.message
    );
}

#[test]
fn cards_and_partitions_come_and_go() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let before = backend.survey();
    rig.node.remove_gpu(&target("5")).unwrap();
    let without = backend.survey();
    assert_eq!(without.devices.len(), 7);
    assert_eq!(without.unreadable, []);
    rig.node.add_gpu(&NewGpu::default()).unwrap();
    assert_eq!(backend.survey().devices, before.devices);

    rig.node.set_mig(&target("0"), true).unwrap();
    let made = rig.node.add_mig(&target("0"), "3g.20gb").unwrap();
    let cut = backend.survey();
    assert_eq!(ids(&cut)[1], made[0]);
    assert_eq!(cut.devices[0].kind, Kind::Card { partitioned: true });
    rig.node.remove_mig(&target("0:0")).unwrap();
    assert_eq!(backend.survey().devices.len(), 8);
}

#[test]
fn samples_every_device() {
    let rig = Rig::new("a100-mig");
    let mut backend = rig.backend();
    let report = backend.survey();
    for (sensor, value) in [
        ("temperature", 77),
        ("power", 123_456),
        ("ecc-uncorrected", 3),
    ] {
        rig.node.set(&target("0"), sensor, value).unwrap();
    }
    let samples = backend.samples();
    let sampled: Vec<&str> = samples
        .iter()
        .map(|sample| sample.device.as_str())
        .collect();
    assert_eq!(sampled, ids(&report));
    let first = &samples[0].telemetry;
    assert_eq!(first.temperature_celsius, Some(77));
    assert_eq!(first.power_milliwatts, Some(123_456));
    assert_eq!(first.ecc.unwrap().uncorrected, 3);
    assert!(
        samples
            .iter()
            .all(|sample| sample.telemetry.memory_used_bytes.is_some())
    );
}

#[test]
fn events_name_the_card_or_the_partition() {
    let rig = Rig::new("a100-mig");
    let mut backend = rig.backend();
    backend.survey();
    let mut events = backend.events().unwrap();
    // The set is made by the first wait; what happened before is history.
    assert_eq!(events.wait(Duration::from_millis(1)).unwrap(), []);

    let gpus = rig.node.gpus().unwrap();
    let whole = gpus.iter().find(|gpu| !gpu.mig_enabled).unwrap();
    let mig = &rig.node.migs().unwrap()[0];
    for (name, xid) in [(&whole.uuid, 79), (&mig.uuid, 94)] {
        rig.node.xid(&target(name), xid).unwrap();
        let heard = node::wait_for(|| {
            let heard = events.wait(Duration::from_millis(200)).unwrap();
            heard.first().cloned()
        });
        assert_eq!(heard.device.as_str(), name);
        assert_eq!(heard.event, EventKind::Xid(xid));
    }
}

#[test]
fn the_event_set_follows_the_cards() {
    let rig = Rig::new("dgx-a100");
    rig.node.remove_gpu(&target("7")).unwrap();
    let mut backend = rig.backend();
    backend.survey();
    let mut events = backend.events().unwrap();
    assert_eq!(events.wait(Duration::from_millis(1)).unwrap(), []);
    let new = rig.node.add_gpu(&NewGpu::default()).unwrap();
    backend.survey();
    assert_eq!(events.wait(Duration::from_millis(1)).unwrap(), []);
    rig.node.xid(&target(&new.uuid), 48).unwrap();
    let heard = node::wait_for(|| {
        let heard = events.wait(Duration::from_millis(200)).unwrap();
        heard.first().cloned()
    });
    assert_eq!(heard.device.as_str(), new.uuid);
}

#[test]
fn a_hanging_call_is_named_with_its_card() {
    let rig = Rig::new("dgx-a100");
    let card = rig.node.gpus().unwrap()[3].pci;
    for call in [
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetHandleByPciBusId",
    ] {
        let calls = Arc::new(Calls::default());
        rig.node.fault(call, Some(&target("3")), HANG).unwrap();
        let mut backend = rig.backend_with(Scope::All, Arc::clone(&calls));
        let started = SystemTime::now();
        thread::scope(|scope| {
            let survey = scope.spawn(|| backend.survey());
            let named = node::wait_for(|| calls.overdue().pop());
            assert!(named.call.starts_with(call), "{named:?}");
            assert_eq!(named.device, Some(nvml::Locator::Pci(card)));
            assert!(named.since >= started);
            rig.node.clear_faults(None).unwrap();
            assert_eq!(survey.join().unwrap().devices.len(), 8);
        });
        assert_eq!(calls.overdue(), []);
    }
}

#[test]
fn a_file_that_hangs_is_named_with_its_card_and_not_read_once_the_card_is_left_out() {
    let rig = Rig::new("dgx-a100");
    let gpus = rig.node.gpus().unwrap();
    let card = gpus[3].pci;
    let file = rig.hang_file(card, "numa_node");
    let calls = Arc::new(Calls::default());
    let mut backend = rig.backend_with(Scope::All, Arc::clone(&calls));
    thread::scope(|scope| {
        let survey = scope.spawn(|| backend.survey());
        let named = node::wait_for(|| calls.overdue().pop());
        let call = format!("read /sys/bus/pci/devices/{card}/numa_node");
        assert_eq!(named.call, call);
        assert_eq!(named.device, Some(nvml::Locator::Pci(card)));

        let skip = Scope::Skip(vec![card.to_string().parse().unwrap()]);
        let report = rig.backend_for(skip).survey();
        assert_eq!(report.devices.len(), 7);
        assert_eq!(report.skipped, [card.to_string()]);
        let other = Scope::Only(gpus[4].pci.to_string().parse().unwrap());
        assert_eq!(ids(&rig.backend_for(other).survey()), [&gpus[4].uuid]);

        fs_err::write(&file, "3\n").unwrap();
        assert_eq!(survey.join().unwrap().devices[3].numa, Some(3));
    });
}

#[test]
fn the_only_card_of_a_machine_is_left_out_by_index_too() {
    let rig = Rig::new("t4");
    rig.node.trace().unwrap();
    let card = rig.node.gpus().unwrap()[0].pci.to_string();
    let skip = Scope::Skip(vec![card.parse().unwrap()]);
    let report = rig.backend_for(skip).survey();
    assert_eq!((report.devices.len(), report.skipped), (0, vec![card]));
    let calls = rig.node.calls().unwrap();
    assert!(
        !calls.iter().any(|call| call.contains("Handle")),
        "{calls:?}"
    );
}

#[test]
fn the_numa_node_is_the_bus_s_and_not_the_one_of_the_cards_own_memory() {
    let rig = Rig::new("dgx-a100");
    let card = rig.node.gpus().unwrap()[3].pci;
    fs_err::write(rig.bus_file(card, "numa_node"), "-1\n").unwrap();
    rig.node.trace().unwrap();
    assert_eq!(rig.backend().survey().devices[3].numa, None);
    let calls = rig.node.calls().unwrap();
    assert!(!calls.iter().any(|call| call.contains("Numa")), "{calls:?}");
}

#[test]
fn a_card_without_its_device_node_is_not_usable_where_the_hosts_nodes_are_visible() {
    let rig = Rig::new("dgx-a100");
    let whole = rig.backend().survey();
    let minor = rig.node.gpus().unwrap()[3].minor;
    let dev = rig.node.root().join("dev");
    fs_err::remove_file(dev.join(format!("nvidia{minor}"))).unwrap();
    let mut report = rig.backend().survey();
    let expected = CallFailure {
        call: format!("open /dev/nvidia{minor}"),
        code: "NO_DEVICE_NODE".to_owned(),
        fatal: true,
    };
    assert_eq!(report.devices[3].failures, [expected]);
    report.devices[3].failures.clear();
    report.devices[3].nodes.clone_from(&whole.devices[3].nodes);
    assert_eq!(report, whole, "nothing else is different");

    fs_err::remove_file(dev.join("nvidiactl")).unwrap();
    let unseen = rig.backend().survey();
    assert_eq!(unseen.devices[3].failures, []);
}

#[test]
fn an_old_driver_lacks_facts_and_no_card() {
    let rig = Rig::new("dgx1-v100");
    let newest = rig.backend().survey();
    rig.remove_symbols(&[
        "nvmlInit_v2",
        "nvmlDeviceGetHandleByPciBusId_v2",
        "nvmlDeviceGetHandleByIndex_v2",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetNvLinkRemotePciInfo_v2",
        "nvmlDeviceGetNvLinkRemoteDeviceType",
        "nvmlDeviceGetMigMode",
        "nvmlSystemGetCudaDriverVersion",
        "nvmlSystemGetCudaDriverVersion_v2",
        "nvmlEventSetWait_v2",
    ]);
    let mut backend = rig.backend();
    let mut report = backend.survey();
    assert_eq!(report.devices, newest.devices);
    assert_eq!(report.driver.as_ref().unwrap().cuda, None);
    assert!(backend.links(&mut report, false));
    let lanes: u32 = report.devices[0].links.iter().map(|link| link.lanes).sum();
    assert_eq!(lanes, 6);
    let mut events = backend.events().unwrap();
    assert_eq!(events.wait(Duration::from_millis(1)).unwrap(), []);
    rig.node.xid(&target("1"), 48).unwrap();
    let heard = node::wait_for(|| {
        let heard = events.wait(Duration::from_millis(200)).unwrap();
        heard.first().cloned()
    });
    assert_eq!(heard.device, report.devices[1].id);
}

#[test]
fn a_library_that_is_none_of_nvidias_is_a_driver_that_fails() {
    let rig = Rig::new("t4");
    rig.remove_symbols(&["nvmlInit_v2", "nvmlInit"]);
    let problem = rig.backend().survey().problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::DriverFailed);
    assert!(problem.message.contains("nvmlInit"), "{}", problem.message);
}

#[test]
fn a_card_that_the_library_does_not_know_yet_makes_it_start_anew_once() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let all = backend.survey();
    let unknown = Effect::Fail { code: 6 };
    rig.node
        .fault("nvmlDeviceGetHandleByPciBusId", Some(&target("3")), unknown)
        .unwrap();
    rig.node.trace().unwrap();
    for _ in 0..3 {
        let report = backend.survey();
        assert_eq!(report.devices.len(), 7);
        assert_eq!(report.unreadable[0].pci, all.devices[3].pci);
        assert_eq!(report.unreadable[0].failure.code, "NOT_FOUND");
    }
    let calls = rig.node.calls().unwrap();
    let starts = calls.iter().filter(|call| call.starts_with("nvmlInit"));
    assert_eq!(starts.count(), 1);
    rig.node.clear_faults(None).unwrap();
    assert_eq!(backend.survey(), all);
}

#[test]
fn cards_without_events_are_asked_once_and_keep_no_other_from_being_heard() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    backend.survey();
    let mut events = backend.events().unwrap();
    let register = "nvmlDeviceRegisterEvents";
    rig.node.fault(register, None, NOT_SUPPORTED).unwrap();
    rig.node.trace().unwrap();
    for _ in 0..5 {
        assert_eq!(events.wait(Duration::from_millis(1)).unwrap(), []);
    }
    let calls = rig.node.calls().unwrap();
    let asked = calls.iter().filter(|call| call.starts_with(register));
    assert_eq!(asked.count(), 8);
    assert!(events.warnings().is_empty(), "no events are no failure");

    rig.node.clear_faults(None).unwrap();
    rig.node
        .fault(register, Some(&target("0")), UNKNOWN)
        .unwrap();
    let mut events = backend.events().unwrap();
    assert_eq!(events.wait(Duration::from_millis(1)).unwrap(), []);
    rig.node.xid(&target("1"), 48).unwrap();
    let heard = node::wait_for(|| {
        let heard = events.wait(Duration::from_millis(200)).unwrap();
        heard.first().cloned()
    });
    assert_eq!(heard.device.as_str(), rig.node.gpus().unwrap()[1].uuid);
}

#[test]
fn a_card_whose_events_are_not_heard_is_named_until_they_are() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    backend.survey();
    let mut events = backend.events().unwrap();
    let register = "nvmlDeviceRegisterEvents";
    for card in ["5", "2"] {
        rig.node
            .fault(register, Some(&target(card)), UNKNOWN)
            .unwrap();
    }
    let gpus = rig.node.gpus().unwrap();
    let sentence = |at: usize| {
        let card = gpus[at].pci;
        format!("events of {card} are not heard: {register}: UNKNOWN")
    };
    for _ in 0..2 {
        events.wait(Duration::from_millis(1)).unwrap();
        assert_eq!(events.warnings(), [sentence(2), sentence(5)]);
    }
    // A card that is not there is not listened to by right.
    rig.node.lose(&target("5")).unwrap();
    backend.survey();
    events.wait(Duration::from_millis(1)).unwrap();
    assert_eq!(events.warnings(), [sentence(2)]);
    // The set is made anew when a card comes.
    rig.node.clear_faults(None).unwrap();
    rig.node.restore(&target("5")).unwrap();
    backend.survey();
    events.wait(Duration::from_millis(1)).unwrap();
    assert!(events.warnings().is_empty());
}

#[test]
fn a_driver_without_events_is_no_failure() {
    let rig = Rig::new("t4");
    let mut backend = rig.backend();
    backend.survey();
    for call in ["nvmlEventSetCreate", "nvmlEventSetWait"] {
        rig.node.fault(call, None, NOT_SUPPORTED).unwrap();
        let mut events = backend.events().unwrap();
        assert_eq!(events.wait(Duration::from_millis(1)).unwrap(), []);
        assert!(events.warnings().is_empty());
        rig.node.clear_faults(None).unwrap();
    }
}
