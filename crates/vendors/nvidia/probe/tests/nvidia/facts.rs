//! Facts about cards, partitions and links when all is well.

use model::names;
use rstest::rstest;

use super::*;

#[test]
fn reads_every_card_with_its_place_and_nodes() {
    let rig = Rig::new("dgx-a100");
    let report = rig.backend().survey_devices();
    let expected = rig.node.list_gpus().unwrap();

    assert_eq!(report.problem, None);
    assert_eq!(report.unreadable, []);
    let driver = report.driver.as_ref().unwrap();
    assert_eq!(
        driver.version,
        rig.node.node_state().unwrap().driver.version
    );
    assert!(driver.cuda.as_ref().unwrap().contains('.'));
    assert_eq!(report.devices.len(), expected.len());
    for (device, gpu) in report.devices.iter().zip(&expected) {
        assert_eq!(device.id.as_str(), gpu.uuid);
        assert_eq!(device.product_name(), Some(gpu.name.as_str()));
        assert_eq!(device.pci, Some(rig.pci(gpu.index)));
        assert_eq!(device.numa, gpu.numa);
        assert_eq!(device.memory_bytes(), Some(gpu.memory_bytes));
        assert_eq!(device.index, gpu.index.to_string().parse().ok());
        assert_eq!(
            nvidia_rules::names::compute_capability(device)
                .unwrap()
                .as_str(),
            "8.0"
        );
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
    let calls = Arc::new(CallTable::default());
    let mut backend = rig.backend_with(Scope::All, Arc::clone(&calls));
    let mut report = backend.survey_devices();
    assert!(backend.add_new_links(&mut report, false));
    for device in &report.devices {
        assert_eq!(device.links.len(), 7);
        assert!(
            device
                .links
                .iter()
                .all(|link| link.switched && link.ancestor.is_some())
        );
    }
    let mut again = backend.survey_devices();
    assert_eq!(again, report);
    let made = calls.made();
    assert!(!backend.add_new_links(&mut again, false));
    assert_eq!(calls.made(), made, "links that are known cost no call");
    assert!(backend.add_new_links(&mut again, true));
    assert_eq!(again, report);
}

#[test]
fn counts_the_lanes_between_two_cards_the_same_from_both_ends() {
    let rig = Rig::new("dgx1-v100");
    let mut backend = rig.backend();
    let mut report = backend.survey_devices();
    backend.add_new_links(&mut report, false);
    let lanes = |from: &Device, to: &Device| {
        let link = from.links.iter().find(|link| link.peer == to.id).unwrap();
        assert!(!link.switched);
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

#[rstest]
#[case("a100-mig")]
#[case("a100-mig-odd")]
fn partitions_have_their_shape_and_capability_nodes(#[case] profile: &str) {
    let rig = Rig::new(profile);
    let report = rig.backend().survey_devices();
    let expected = rig.node.list_migs().unwrap();
    assert!(!expected.is_empty());
    let parts: Vec<&Device> = report
        .devices
        .iter()
        .filter(|device| matches!(device.kind, Kind::Partition { .. }))
        .collect();
    assert_eq!(parts.len(), expected.len());
    for (device, mig) in parts.iter().zip(&expected) {
        assert_eq!(device.id.as_str(), mig.uuid);
        assert_eq!(device.index, mig.index.parse().ok());
        assert_eq!(
            device.kind,
            Kind::Partition {
                parent: mig.gpu.as_str().into(),
                profile: Some(mig.profile.clone()),
            }
        );
        for (name, number) in [
            (nvidia_rules::names::GPU_INSTANCE, mig.gpu_instance),
            (nvidia_rules::names::COMPUTE_INSTANCE, mig.compute_instance),
        ] {
            assert_eq!(device.attributes.get(&name), Some(&number.into()));
        }
        assert_eq!(device.attributes[&names::ARCHITECTURE], "Ampere".into());
        let role = |role| device.nodes.iter().filter(|node| node.role == role).count();
        assert_eq!(
            (role(NodeRole::Own), role(NodeRole::Capability)),
            (1, 2),
            "{device:?}"
        );
    }
    let gpus = rig.node.list_gpus().unwrap();
    for (card, gpu) in cards(&report).iter().zip(&gpus) {
        let partitioned = gpu.mig_enabled;
        assert_eq!(card.kind, Kind::Card { partitioned });
    }
}

#[test]
fn cards_left_out_are_not_touched() {
    let rig = Rig::new("dgx-a100");
    let gpus = rig.node.list_gpus().unwrap();
    let all = rig.backend().survey_devices();
    rig.node.trace().unwrap();
    let skipped = gpus[3].pci.to_string().parse().unwrap();
    let report = rig.backend_for(Scope::Skip(vec![skipped])).survey_devices();
    assert_eq!(report.skipped, [skipped]);
    assert_eq!(report.devices.len(), 7);
    let touched = rig.node.traced_calls().unwrap();
    assert!(
        touched.iter().all(|call| !call.contains(&gpus[3].uuid)),
        "{touched:?}"
    );

    let report = rig.backend_for(Scope::Only(skipped)).survey_devices();
    assert_eq!(ids(&report), [all.devices[3].id.as_str()]);
}

#[test]
fn a_machine_without_a_pci_bus_is_read_by_index() {
    let rig = Rig::new("t4");
    let empty = tempfile::tempdir().unwrap();
    let mut backend = rig.backend_as(&Configure {
        host_root: empty.path().to_owned(),
        ..Configure::default()
    });
    let report = backend.survey_devices();
    let gpus = rig.node.list_gpus().unwrap();
    assert_eq!(ids(&report), [gpus[0].uuid.as_str()]);
    assert_eq!(report.devices[0].pci, Some(rig.pci(0)));
    assert_eq!(report.devices[0].nodes, []);
}

#[test]
fn cards_and_partitions_come_and_go() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let before = backend.survey_devices();
    rig.node.remove_gpu(&target("5")).unwrap();
    let without = backend.survey_devices();
    assert_eq!(without.devices.len(), 7);
    assert_eq!(without.unreadable, []);
    rig.node.add_gpu(&NewGpu::default()).unwrap();
    assert_eq!(backend.survey_devices().devices, before.devices);

    rig.node.set_mig(&target("0"), true).unwrap();
    let made = rig.node.add_mig(&target("0"), "3g.20gb").unwrap();
    let cut = backend.survey_devices();
    assert_eq!(ids(&cut)[1], made[0]);
    assert_eq!(cut.devices[0].kind, Kind::Card { partitioned: true });
    rig.node.remove_mig(&target("0:0")).unwrap();
    assert_eq!(backend.survey_devices().devices.len(), 8);
}

#[test]
fn samples_every_device() {
    let rig = Rig::new("a100-mig");
    let mut backend = rig.backend();
    let report = backend.survey_devices();
    for (sensor, value) in [
        ("temperature", 77),
        ("power", 123_456),
        ("ecc-uncorrected", 3),
    ] {
        rig.node.set_sensor(&target("0"), sensor, value).unwrap();
    }
    let samples = backend.read_samples();
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
fn the_only_card_of_a_machine_is_left_out_by_index_too() {
    let rig = Rig::new("t4");
    rig.node.trace().unwrap();
    let card = rig.node.list_gpus().unwrap()[0].pci.to_string();
    let card = card.parse().unwrap();
    let skip = Scope::Skip(vec![card]);
    let report = rig.backend_for(skip).survey_devices();
    assert_eq!((report.devices.len(), report.skipped), (0, vec![card]));
    let calls = rig.node.traced_calls().unwrap();
    assert!(
        !calls.iter().any(|call| call.contains("Handle")),
        "{calls:?}"
    );
}
