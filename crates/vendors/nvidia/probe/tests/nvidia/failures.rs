//! One bad card affects that card only.

use super::*;

#[test]
fn a_lost_card_is_named_and_the_others_stay_as_they_are() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let mut before = backend.survey_devices();
    backend.add_new_links(&mut before, false);
    let lost = rig.pci(3);
    rig.node.lose_cards(&target("3")).unwrap();

    let after = backend.survey_devices();
    assert_eq!(after.unreadable.len(), 1);
    assert_eq!(after.unreadable[0].card, model::CardRef::Pci(lost));
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

    rig.node.restore_cards(&target("3")).unwrap();
    let mut back = backend.survey_devices();
    backend.add_new_links(&mut back, false);
    assert_eq!(back, before);
}

#[test]
fn no_call_but_the_id_is_needed_to_have_a_card() {
    let rig = Rig::new("a100-mig");
    let whole = rig.backend().survey_devices();
    rig.node.trace().unwrap();
    let mut backend = rig.backend();
    let mut report = backend.survey_devices();
    backend.add_new_links(&mut report, false);
    backend.read_samples();
    let mut names: Vec<String> = rig.node.traced_calls().unwrap();
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
            rig.node.set_fault(&name, None, effect).unwrap();
            let mut report = backend.survey_devices();
            backend.add_new_links(&mut report, true);
            backend.read_samples();
            assert_eq!(
                cards(&report).len(),
                cards(&whole).len(),
                "{name} {effect:?}: {report:?}"
            );
            // Without its minor number a card's node is unknown, and the card cannot be used.
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
    assert_eq!(backend.survey_devices().devices.len(), whole.devices.len());
}

#[test]
fn a_failing_call_is_held_against_its_card_only() {
    let rig = Rig::new("dgx-a100");
    rig.node
        .set_fault("nvmlDeviceGetMemoryInfo", Some(&target("2")), UNKNOWN)
        .unwrap();
    let report = rig.backend().survey_devices();
    let bad: Vec<usize> = (0..8)
        .filter(|at| !report.devices[*at].failures.is_empty())
        .collect();
    assert_eq!(bad, [2]);
    assert_eq!(report.devices[2].failures[0].code, "UNKNOWN");
    assert!(!report.devices[2].failures[0].fatal);
    assert_eq!(report.devices[2].memory_bytes(), None);
}

#[test]
fn a_hanging_call_is_named_with_its_card() {
    let rig = Rig::new("dgx-a100");
    let card = rig.pci(3);
    for call in [
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetHandleByPciBusId",
    ] {
        let calls = Arc::new(CallTable::default());
        rig.node.set_fault(call, Some(&target("3")), HANG).unwrap();
        let mut backend = rig.backend_with(Scope::All, Arc::clone(&calls));
        let started = SystemTime::now();
        thread::scope(|scope| {
            let survey = scope.spawn(|| backend.survey_devices());
            let named = node::wait_for(|| calls.overdue().pop());
            assert!(named.call.starts_with(call), "{named:?}");
            assert_eq!(named.device, Some(model::CardRef::Pci(card)));
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
    let gpus = rig.node.list_gpus().unwrap();
    let card = rig.pci(3);
    let file = rig.hang_file(card, "numa_node");
    let calls = Arc::new(CallTable::default());
    let mut backend = rig.backend_with(Scope::All, Arc::clone(&calls));
    thread::scope(|scope| {
        let survey = scope.spawn(|| backend.survey_devices());
        let named = node::wait_for(|| calls.overdue().pop());
        let call = format!("read /sys/bus/pci/devices/{card}/numa_node");
        assert_eq!(named.call, call);
        assert_eq!(named.device, Some(model::CardRef::Pci(card)));

        let skip = Scope::Skip(vec![card.to_string().parse().unwrap()]);
        let report = rig.backend_for(skip).survey_devices();
        assert_eq!(report.devices.len(), 7);
        assert_eq!(report.skipped, [model::CardRef::Pci(card)]);
        let other = Scope::Only(gpus[4].pci.to_string().parse().unwrap());
        assert_eq!(
            ids(&rig.backend_for(other).survey_devices()),
            [&gpus[4].uuid]
        );

        fs_err::write(&file, "3\n").unwrap();
        assert_eq!(survey.join().unwrap().devices[3].numa, Some(3));
    });
}

#[test]
fn a_card_without_its_device_node_is_not_usable_where_the_hosts_nodes_are_visible() {
    let rig = Rig::new("dgx-a100");
    let whole = rig.backend().survey_devices();
    let minor = rig.node.list_gpus().unwrap()[3].minor;
    let dev = rig.node.host_root().join("dev");
    fs_err::remove_file(dev.join(format!("nvidia{minor}"))).unwrap();
    let mut report = rig.backend().survey_devices();
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
    let unseen = rig.backend().survey_devices();
    assert_eq!(unseen.devices[3].failures, []);
}
