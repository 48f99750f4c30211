//! Processes on a card.

use super::*;

#[test]
fn processes_are_told_where_they_are_asked_for() {
    let rig = Rig::new("dgx-a100");
    let mut silent = rig.backend();
    silent.survey_devices();
    assert!(
        silent
            .read_samples()
            .iter()
            .all(|s| s.telemetry.processes.is_none())
    );

    let mut configure = rig.configure(Scope::All);
    configure.processes = true;
    let mut backend = rig.backend_as(&configure);
    let report = backend.survey_devices();
    let process = |pid, work| sim::state::GpuProcess {
        pid,
        work,
        memory_mib: 3,
        instance: None,
    };
    use sim::state::ProcessWork;
    let processes = [
        process(4711, ProcessWork::Compute),
        process(12, ProcessWork::Mps),
        process(99, ProcessWork::Graphics),
    ];
    rig.node.set_processes(&target("1"), &processes).unwrap();
    let comm = rig.node.host_root().join("proc/4711/comm");
    fs_err::create_dir_all(comm.parent().unwrap()).unwrap();
    fs_err::write(comm, "python3\n").unwrap();
    let samples = backend.read_samples();
    let of = |id: &str| {
        let sample = samples.iter().find(|s| s.device.as_str() == id).unwrap();
        sample.telemetry.processes.clone().unwrap()
    };
    assert_eq!(of(ids(&report)[0]), []);
    let told = of(ids(&report)[1]);
    let told: Vec<_> = told
        .iter()
        .map(|p| (p.pid, p.name.as_deref(), p.memory_bytes))
        .collect();
    let bytes = Some(3 << 20);
    assert_eq!(told, [(12, None, bytes), (4711, Some("python3"), bytes)]);
}

#[test]
fn more_processes_than_were_expected_are_all_told() {
    let rig = Rig::new("t4");
    let mut configure = rig.configure(Scope::All);
    configure.processes = true;
    let mut backend = rig.backend_as(&configure);
    backend.survey_devices();
    let processes: Vec<_> = (1..=200)
        .map(|pid| sim::state::GpuProcess {
            pid,
            work: sim::state::ProcessWork::Compute,
            memory_mib: 1,
            instance: None,
        })
        .collect();
    rig.node.set_processes(&target("0"), &processes).unwrap();
    let samples = backend.read_samples();
    assert_eq!(samples[0].telemetry.processes.as_ref().unwrap().len(), 200);
}

/// Deep checks run on cards whose samples have neither processes nor utilization.
#[test]
fn an_idle_card_has_no_processes_and_no_work() {
    let rig = Rig::new("t4");
    let mut configure = rig.configure(Scope::All);
    configure.processes = true;
    let mut backend = rig.backend_as(&configure);
    backend.survey_devices();
    let mut found = || {
        let telemetry = backend.read_samples()[0].telemetry.clone();
        (telemetry.processes.unwrap(), telemetry.utilization_percent)
    };
    assert_eq!(found(), (Vec::new(), Some(0)));
    rig.node.set_sensor(&target("0"), "utilization", 3).unwrap();
    assert_eq!(found(), (Vec::new(), Some(3)));
    rig.node.set_sensor(&target("0"), "utilization", 0).unwrap();
    let process = sim::state::GpuProcess {
        pid: 4711,
        work: sim::state::ProcessWork::Compute,
        memory_mib: 0,
        instance: None,
    };
    rig.node.set_processes(&target("0"), &[process]).unwrap();
    assert_eq!(found().0[0].pid, 4711);
}
