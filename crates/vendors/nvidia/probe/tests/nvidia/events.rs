//! Events of the driver, and the behaviour without them.

use super::*;

#[test]
fn events_name_the_card_or_the_partition() {
    let rig = Rig::new("a100-mig");
    let mut backend = rig.backend();
    backend.survey_devices();
    let mut events = backend.open_events().unwrap();
    // The first wait makes the event set; earlier events are not reported.
    assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);

    let gpus = rig.node.list_gpus().unwrap();
    let whole = gpus.iter().find(|gpu| !gpu.mig_enabled).unwrap();
    let mig = &rig.node.list_migs().unwrap()[0];
    for (name, xid) in [(&whole.uuid, 79), (&mig.uuid, 94)] {
        rig.node.raise_xid(&target(name), xid).unwrap();
        let heard = node::wait_for(|| {
            let heard = events.wait_events(Duration::from_millis(200)).unwrap();
            heard.first().cloned()
        });
        assert_eq!(heard.device.as_str(), name);
        assert_eq!(heard.code.as_str(), format!("xid:{xid}"));
    }
}

#[test]
fn memory_errors_are_heard_with_their_kind_and_the_device_they_are_of() {
    let rig = Rig::new("a100-mig");
    let mut backend = rig.backend();
    backend.survey_devices();
    let mut events = backend.open_events().unwrap();
    assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);
    let mig = &rig.node.list_migs().unwrap()[0];
    for (name, kind, code) in [
        (&mig.gpu, sim::EccKind::Corrected, "ecc:corrected"),
        (&mig.gpu, sim::EccKind::Uncorrected, "ecc:uncorrected"),
        (&mig.uuid, sim::EccKind::Uncorrected, "ecc:uncorrected"),
    ] {
        rig.node.count_ecc_error(&target(name), kind).unwrap();
        let heard = node::wait_for(|| {
            let heard = events.wait_events(Duration::from_millis(200)).unwrap();
            heard.first().cloned()
        });
        let told = (heard.device.as_str(), heard.code.as_str());
        assert_eq!(told, (name.as_str(), code));
    }
}

#[test]
fn the_event_set_follows_the_cards() {
    let rig = Rig::new("dgx-a100");
    rig.node.remove_gpu(&target("7")).unwrap();
    let mut backend = rig.backend();
    backend.survey_devices();
    let mut events = backend.open_events().unwrap();
    assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);
    let new = rig.node.add_gpu(&NewGpu::default()).unwrap();
    backend.survey_devices();
    assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);
    rig.node.raise_xid(&target(&new.uuid), 48).unwrap();
    let heard = node::wait_for(|| {
        let heard = events.wait_events(Duration::from_millis(200)).unwrap();
        heard.first().cloned()
    });
    assert_eq!(heard.device.as_str(), new.uuid);
}

#[test]
fn cards_without_events_are_asked_once_and_keep_no_other_from_being_heard() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    backend.survey_devices();
    let mut events = backend.open_events().unwrap();
    let register = "nvmlDeviceRegisterEvents";
    rig.node.set_fault(register, None, NOT_SUPPORTED).unwrap();
    rig.node.trace().unwrap();
    for _ in 0..5 {
        assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);
    }
    let calls = rig.node.traced_calls().unwrap();
    let asked = calls.iter().filter(|call| call.starts_with(register));
    assert_eq!(asked.count(), 8);
    assert!(
        events.list_warnings().is_empty(),
        "no events are no failure"
    );

    rig.node.clear_faults(None).unwrap();
    rig.node
        .set_fault(register, Some(&target("0")), UNKNOWN)
        .unwrap();
    let mut events = backend.open_events().unwrap();
    assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);
    rig.node.raise_xid(&target("1"), 48).unwrap();
    let heard = node::wait_for(|| {
        let heard = events.wait_events(Duration::from_millis(200)).unwrap();
        heard.first().cloned()
    });
    assert_eq!(heard.device.as_str(), rig.node.list_gpus().unwrap()[1].uuid);
}

#[test]
fn a_card_whose_events_are_not_heard_is_named_until_they_are() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    backend.survey_devices();
    let mut events = backend.open_events().unwrap();
    let register = "nvmlDeviceRegisterEvents";
    for card in ["5", "2"] {
        rig.node
            .set_fault(register, Some(&target(card)), UNKNOWN)
            .unwrap();
    }
    let gpus = rig.node.list_gpus().unwrap();
    let sentence = |at: usize| {
        let card = gpus[at].pci;
        format!("events of {card} are not heard: {register}: UNKNOWN")
    };
    for _ in 0..2 {
        events.wait_events(Duration::from_millis(1)).unwrap();
        assert_eq!(events.list_warnings(), [sentence(2), sentence(5)]);
    }
    // It is right that an absent card is not listened to.
    rig.node.lose_cards(&target("5")).unwrap();
    backend.survey_devices();
    events.wait_events(Duration::from_millis(1)).unwrap();
    assert_eq!(events.list_warnings(), [sentence(2)]);
    // The event set is made anew when a card appears.
    rig.node.clear_faults(None).unwrap();
    rig.node.restore_cards(&target("5")).unwrap();
    backend.survey_devices();
    events.wait_events(Duration::from_millis(1)).unwrap();
    assert!(events.list_warnings().is_empty());
}

#[test]
fn a_driver_without_events_is_no_failure() {
    let rig = Rig::new("t4");
    let mut backend = rig.backend();
    backend.survey_devices();
    for call in ["nvmlEventSetCreate", "nvmlEventSetWait"] {
        rig.node.set_fault(call, None, NOT_SUPPORTED).unwrap();
        let mut events = backend.open_events().unwrap();
        assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);
        assert!(events.list_warnings().is_empty());
        rig.node.clear_faults(None).unwrap();
    }
}
