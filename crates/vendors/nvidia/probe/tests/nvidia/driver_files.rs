//! Driver files of a simulated node.

use model::{DriverFiles, FileKind, FileLink};

use super::*;

fn find(rig: &Rig) -> Arc<DriverFiles> {
    let configure = Configure {
        driver_files: FileSearch::Now,
        ..rig.configure(Scope::All)
    };
    let report = rig.backend_as(&configure).survey_devices();
    report.extras.files.unwrap()
}

#[test]
fn the_first_report_has_them_where_they_are_asked_for() {
    let rig = Rig::new("l40s-pcie");
    assert_eq!(rig.backend().survey_devices().extras.files, None);
    let found = find(&rig);
    assert_eq!(found.problems, [""; 0]);
    let cuda = "/usr/lib/x86_64-linux-gnu/libcuda.so";
    let library = found
        .files
        .iter()
        .find(|file| file.path == format!("{cuda}.580.95.05"));
    let links = [
        (cuda.to_owned(), "libcuda.so.1"),
        (format!("{cuda}.1"), "libcuda.so.580.95.05"),
    ];
    let links = links.map(|(path, target)| FileLink {
        path,
        target: target.to_owned(),
    });
    assert_eq!(library.unwrap().links, links);
    for kind in [
        FileKind::Binary,
        FileKind::Firmware,
        FileKind::Ipc,
        FileKind::Config,
    ] {
        assert!(found.files.iter().any(|file| file.kind == kind), "{kind:?}");
    }
    assert_eq!(
        found.hooks,
        ["/usr/bin/nvidia-cdi-hook", "/usr/bin/nvidia-ctk"]
    );
    let nodes = ["/dev/dri/card2", "/dev/dri/renderD129"];
    assert_eq!(found.drm[&"0000:61:00.0".parse().unwrap()], nodes);
}

#[test]
fn every_machine_has_its_files_without_a_problem() {
    for (profile, count) in [
        ("dgx-a100", 54),
        ("gb200-nvl", 53),
        ("vgpu", 53),
        ("mixed", 53),
    ] {
        let found = find(&Rig::new(profile));
        assert_eq!(found.problems, [""; 0], "{profile}");
        assert_eq!(found.files.len(), count, "{profile}: {:#?}", found.files);
    }
}

#[test]
fn a_card_that_is_tried_alone_needs_none() {
    let rig = Rig::new("t4");
    let configure = Configure {
        driver_files: FileSearch::Now,
        ..rig.configure(Scope::Only("0000:00:1e.0".parse().unwrap()))
    };
    let report = rig.backend_as(&configure).survey_devices();
    assert_eq!((report.devices.len(), report.extras.files), (1, None));
}

#[test]
fn the_driver_is_found_by_its_root_too() {
    let rig = Rig::new("t4");
    let configure = Configure {
        driver_files: FileSearch::Now,
        ..rig.configure(Scope::All)
    };
    let section = NvidiaProbe {
        driver_path: Some(rig.node.host_root()),
        ..NvidiaProbe::default()
    };
    let mut backend = NvmlBackend::new(&configure, section, Arc::default());
    let report = backend.survey_devices();
    assert_eq!(report.problem, None);
    assert_eq!(report.devices.len(), 1);
    let library = report.driver.unwrap().library.unwrap();
    assert!(
        library.starts_with(rig.node.host_root().to_str().unwrap()),
        "{library}"
    );

    rig.node.unplug_driver().unwrap();
    let problem = backend.survey_devices().problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::NoDriver);
    rig.node.plug_driver().unwrap();
    assert_eq!(backend.survey_devices().devices.len(), 1);
}

#[test]
fn who_may_need_them_later_does_not_wait_for_them_in_the_first_report() {
    let rig = Rig::new("t4");
    let configure = Configure {
        driver_files: FileSearch::Later,
        ..rig.configure(Scope::All)
    };
    rig.node.unplug_driver().unwrap();
    let mut backend = rig.backend_as(&configure);
    let mut none = backend.survey_devices();
    assert!(
        !backend.add_driver_files(&mut none),
        "there is no driver yet"
    );
    rig.node.plug_driver().unwrap();
    let mut first = backend.survey_devices();
    assert_eq!((first.devices.len(), &first.extras.files), (1, &None));
    assert!(backend.add_driver_files(&mut first));
    assert!(!first.extras.files.as_ref().unwrap().files.is_empty());
    let mut second = backend.survey_devices();
    assert_eq!(second, first);
    assert!(!backend.add_driver_files(&mut second), "they are there");
}
