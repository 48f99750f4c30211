//! The driver library: absent, broken, old, replaced.

use super::*;

#[test]
fn a_driver_that_is_missing_goes_and_comes_is_followed() {
    let rig = Rig::new("t4");
    rig.node.unplug_driver().unwrap();
    let mut backend = rig.backend();
    for _ in 0..2 {
        let report = backend.survey_devices();
        let problem = report.problem.unwrap();
        assert_eq!(problem.kind, ProblemKind::NoDriver);
        let file = rig.node.driver_library().display().to_string();
        assert!(problem.message.contains(&file), "{}", problem.message);
        assert!(report.devices.is_empty() && report.driver.is_none());

        rig.node.plug_driver().unwrap();
        assert_eq!(backend.survey_devices().devices.len(), 1);
        rig.node.unplug_driver().unwrap();
    }
}

#[test]
fn a_driver_that_does_not_start_is_quoted_and_tried_again() {
    let rig = Rig::new("t4");
    rig.node
        .set_fault("nvmlInit", None, Effect::Fail { code: 18 })
        .unwrap();
    let mut backend = rig.backend();
    let problem = backend.survey_devices().problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::DriverFailed);
    assert!(
        problem.message.contains("LIB_RM_VERSION_MISMATCH"),
        "{}",
        problem.message
    );
    rig.node.clear_faults(None).unwrap();
    assert_eq!(backend.survey_devices().devices.len(), 1);
}

#[test]
fn a_file_that_is_no_library_is_a_driver_that_fails() {
    let folder = sim::scratch().unwrap();
    let file = folder.path().join("libnvidia-ml.so.1");
    fs_err::write(&file, "not a library").unwrap();
    let section = NvidiaProbe {
        driver_path: Some(folder.path().to_owned()),
        ..NvidiaProbe::default()
    };
    let problem = NvmlBackend::new(&Configure::default(), section, Arc::default())
        .survey_devices()
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
fn an_old_driver_lacks_facts_and_no_card() {
    let newest = Rig::new("dgx1-v100").backend().survey_devices();
    // A node of its own: the loader returns the library that it has once loaded under a path.
    let rig = Rig::new("dgx1-v100");
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
    let mut report = backend.survey_devices();
    assert_eq!(report.devices, newest.devices);
    assert_eq!(report.driver.as_ref().unwrap().cuda, None);
    assert!(backend.add_new_links(&mut report, false));
    let lanes: u32 = report.devices[0].links.iter().map(|link| link.lanes).sum();
    assert_eq!(lanes, 6);
    let mut events = backend.open_events().unwrap();
    assert_eq!(events.wait_events(Duration::from_millis(1)).unwrap(), []);
    rig.node.raise_xid(&target("1"), 48).unwrap();
    let heard = node::wait_for(|| {
        let heard = events.wait_events(Duration::from_millis(200)).unwrap();
        heard.first().cloned()
    });
    assert_eq!(heard.device, report.devices[1].id);
}

#[test]
fn a_library_that_is_none_of_nvidias_is_a_driver_that_fails() {
    let rig = Rig::new("t4");
    rig.remove_symbols(&["nvmlInit_v2", "nvmlInit"]);
    let problem = rig.backend().survey_devices().problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::DriverFailed);
    assert!(problem.message.contains("nvmlInit"), "{}", problem.message);
}

#[test]
fn a_card_that_the_library_does_not_know_yet_makes_it_start_anew_once() {
    let rig = Rig::new("dgx-a100");
    let mut backend = rig.backend();
    let all = backend.survey_devices();
    let unknown = Effect::Fail { code: 6 };
    rig.node
        .set_fault("nvmlDeviceGetHandleByPciBusId", Some(&target("3")), unknown)
        .unwrap();
    rig.node.trace().unwrap();
    for _ in 0..3 {
        let report = backend.survey_devices();
        assert_eq!(report.devices.len(), 7);
        assert_eq!(Some(report.unreadable[0].card), all.devices[3].card_ref());
        assert_eq!(report.unreadable[0].failure.code, "NOT_FOUND");
    }
    let calls = rig.node.traced_calls().unwrap();
    let starts = calls.iter().filter(|call| call.starts_with("nvmlInit"));
    assert_eq!(starts.count(), 1);
    rig.node.clear_faults(None).unwrap();
    assert_eq!(backend.survey_devices(), all);
}

#[test]
fn each_loading_of_the_driver_has_a_name_of_its_own() {
    let rig = Rig::new("t4");
    let instance = || {
        rig.backend()
            .survey_devices()
            .driver
            .unwrap()
            .instance
            .unwrap()
    };
    let mut seen = vec![instance()];
    assert_eq!(instance(), seen[0], "nothing happened");
    for _ in 0..3 {
        rig.node.reload_driver().unwrap();
        let new = instance();
        assert!(!seen.contains(&new), "{new} in {seen:?}");
        seen.push(new);
    }
    let boot = || {
        let file = rig.node.host_root().join("proc/sys/kernel/random/boot_id");
        fs_err::read_to_string(file).unwrap()
    };
    let before = boot();
    rig.node.reboot().unwrap();
    assert_ne!(boot(), before);
    assert!(!seen.contains(&instance()));
}
