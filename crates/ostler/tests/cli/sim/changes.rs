//! Commands of `ostler sim` that change a node.

use std::process::Command;

use rstest::rstest;
use sim::Effect;

use super::rig::Rig;
use crate::text;

#[rstest]
#[case("2")]
#[case("0000:47:00.0")]
fn a_card_is_lost_and_restored(#[case] target: &str) {
    let rig = Rig::new("dgx-a100");
    let uuid = rig.node().list_gpus().unwrap()[2].uuid.clone();
    let lost = |rig: &Rig| rig.node().list_gpus().unwrap()[2].lost;
    assert_eq!(
        rig.says(&["lose", target]),
        format!("GPU 2 ({uuid}) has fallen off the bus\n")
    );
    assert!(lost(&rig));
    assert!(rig.says(&["show"]).contains("lost"));
    assert_eq!(
        rig.says(&["restore", target]),
        format!("GPU 2 ({uuid}) is back on the bus\n")
    );
    assert!(!lost(&rig));
}

#[test]
fn events_reach_the_driver() {
    let rig = Rig::new("a100-mig");
    let said = rig.says(&["xid", "1:3", "79"]);
    assert!(
        said.starts_with("the driver reports XID 79 (GPU has fallen off the bus)"),
        "{said}"
    );
    assert!(said.contains("MIG device 1:3 (MIG-"), "{said}");
    rig.says(&["ecc", "0", "uncorrected"]);
    let events = fs_err::read_to_string(rig.dir().join("events.jsonl")).unwrap();
    assert_eq!(events.lines().count(), 2);
    assert_eq!(
        rig.node().node_state().unwrap().gpus[0]
            .sensors
            .ecc_uncorrected,
        1
    );
}

#[test]
fn calls_hang_and_fail_until_cleared() {
    let rig = Rig::new("dgx-a100");
    let uuid = rig.node().list_gpus().unwrap()[3].uuid.clone();
    let memory = "nvmlDeviceGetMemoryInfo";
    let said = rig.says(&["hang", memory, "--device", "3", "--for", "10s"]);
    assert_eq!(said, format!("{memory} hangs for 10s on GPU 3 ({uuid})\n"));
    let said = rig.says(&["fail", "*", "gpu_is_lost"]);
    assert_eq!(
        said,
        "every NVML call fails with GPU_IS_LOST on all devices\n"
    );
    let faults = rig.node().node_state().unwrap().faults;
    assert_eq!(faults[0].device, Some(uuid));
    assert_eq!(
        faults[0].effect,
        Effect::Hang {
            millis: Some(10_000)
        }
    );
    assert_eq!(faults[1].effect, Effect::Fail { code: 15 });
    let shown = rig.says(&["show"]);
    assert!(
        shown.contains("fault: nvmlDeviceGetMemoryInfo hangs for 10000 ms"),
        "{shown}"
    );
    assert_eq!(rig.says(&["clear", memory]), "one fault has ended\n");
    assert_eq!(rig.says(&["clear"]), "one fault has ended\n");
    assert!(rig.node().node_state().unwrap().faults.is_empty());
    assert!(rig.says(&["clear"]).contains("no such fault"));
}

#[test]
fn sensors_move() {
    let rig = Rig::new("t4");
    rig.says(&["set", "all", "temperature", "90"]);
    assert_eq!(
        rig.node().node_state().unwrap().gpus[0].sensors.temperature,
        90
    );
    let (code, error) = rig.complains(&["set", "0", "smell", "1"]);
    assert_eq!(code, 1);
    assert!(
        error.contains("`smell`") && error.contains("temperature"),
        "{error}"
    );
}

#[test]
fn cards_come_and_go() {
    let rig = Rig::new("dgx-a100");
    assert!(rig.says(&["remove-gpu", "7"]).contains("is taken out"));
    assert_eq!(rig.node().list_gpus().unwrap().len(), 7);
    assert!(rig.says(&["add-gpu"]).contains("is put in at 0000:bd:00.0"));
    let added = rig.says(&[
        "add-gpu",
        "--pci",
        "0000:f0:00.0",
        "--model",
        "t4",
        "--numa",
        "2",
    ]);
    assert!(added.starts_with("GPU 8 ("), "{added}");
    let gpu = rig.node().list_gpus().unwrap()[8].clone();
    assert_eq!((gpu.name.as_str(), gpu.numa), ("Tesla T4", Some(2)));
}

#[test]
fn mig_devices_come_and_go() {
    let rig = Rig::new("dgx-a100");
    let (code, error) = rig.complains(&["add-mig", "3", "1g.5gb"]);
    assert_eq!(code, 1);
    assert!(error.contains("ostler sim mig on"), "{error}");
    rig.says(&["mig", "on", "3"]);
    assert!(rig.says(&["add-mig", "3", "1g.5gb"]).contains("MIG-"));
    assert_eq!(rig.node().list_migs().unwrap()[0].index, "3:0");
    assert!(rig.says(&["remove-mig", "3:0"]).contains("MIG device 3:0"));
    assert!(rig.node().list_migs().unwrap().is_empty());
    rig.says(&["mig", "off", "3"]);
    assert!(!rig.node().list_gpus().unwrap()[3].mig_enabled);
}

#[test]
fn the_driver_comes_and_goes() {
    let rig = Rig::new("t4");
    rig.says(&["unplug-driver"]);
    assert!(!rig.node().driver_library().exists());
    assert!(rig.says(&["show"]).contains("ostler sim plug-driver"));
    rig.says(&["plug-driver"]);
    assert!(rig.node().driver_library().exists());
}

#[test]
fn calls_are_recorded_once_asked_for() {
    let rig = Rig::new("t4");
    assert_eq!(rig.says(&["calls"]), "");
    rig.says(&["trace"]);
    let node = rig.node();
    let devices = Command::new(env!("CARGO_BIN_EXE_ostler"))
        .args(["devices", "--control-socket"])
        .arg(rig.folder.path().join("none.sock"))
        .arg("--host-root")
        .arg(node.host_root())
        .arg("--nvml-library")
        .arg(node.driver_library())
        .output()
        .unwrap();
    assert!(text(&devices.stdout).contains("Tesla T4"));
    assert!(rig.says(&["calls"]).contains("nvmlInit"));
}

#[rstest]
#[case(&["lose", "9"], 1, "there is no device 9 on this node; `ostler sim show`")]
#[case(&["xid", "GPU-0", "79"], 1, "there is no device GPU-0")]
#[case(&["lose", "first"], 64, "`first` names no device")]
#[case(&["xid", "0"], 64, "<XID>")]
#[case(&["hang", "memory"], 1, "`memory` is no NVML function")]
#[case(&["hang", "nvmlInit", "--for", "soon"], 64, "`soon` is not a length of time")]
#[case(&["fail", "nvmlInit", "BROKEN"], 64, "GPU_IS_LOST")]
#[case(&["mig", "on", "0"], 1, "has no MIG")]
#[case(&["add-gpu", "--model", "h900"], 1, "no model `h900`")]
#[case(&["dance"], 64, "dance")]
fn a_wrong_command_is_refused_with_the_remedy(
    #[case] args: &[&str],
    #[case] status: i32,
    #[case] remedy: &str,
) {
    let rig = Rig::new("t4");
    let before = rig.node().node_state().unwrap();
    let (code, error) = rig.complains(args);
    assert_eq!(code, status, "{error}");
    assert!(error.contains(remedy), "{error}");
    assert_eq!(rig.node().node_state().unwrap(), before);
}

#[test]
fn says_who_has_a_card_open_and_resets_none_that_somebody_has() {
    let rig = Rig::new("dgx-a100");
    let me = std::process::id().to_string();
    let open = fs_err::File::open(rig.node().host_root().join("dev/nvidia2")).unwrap();
    let table = rig.says(&["open"]);
    let row = table.lines().find(|line| line.contains("/dev/nvidia2"));
    assert!(row.unwrap().contains(&me), "{table}");

    rig.says(&["set", "all", "recovery-action", "1"]);
    let refused = rig.on_node(&["reset", "2"]);
    assert!(!refused.status.success());
    let why = text(&refused.stderr);
    assert!(why.contains(&me) && why.contains("--force"), "{why}");
    assert!(!rig.on_node(&["reload-driver"]).status.success());
    rig.says(&["reset", "3", "--for", "1ms"]);
    rig.says(&["reset", "2", "--force", "--for", "1ms"]);
    let actions = || -> Vec<u64> {
        let gpus = rig.node().node_state().unwrap().gpus.into_iter();
        gpus.map(|gpu| gpu.sensors.recovery_action).collect()
    };
    assert_eq!(actions(), [1, 1, 0, 0, 1, 1, 1, 1]);
    drop(open);
    rig.says(&["reload-driver"]);
    assert_eq!(actions(), [0; 8]);
    rig.says(&["reboot"]);
    assert_eq!(rig.node().node_state().unwrap().reboots, 1);
}

#[test]
fn puts_processes_on_a_card_and_takes_links_down() {
    let rig = Rig::new("dgx-a100");
    let said = rig.says(&["processes", "1", "4711:2048", "12"]);
    assert!(said.starts_with("2 processes compute on GPU 1"), "{said}");
    rig.says(&["link", "1", "4", "down"]);
    let state = rig.node().node_state().unwrap();
    let processes = state.gpus[1].processes.iter();
    let processes: Vec<_> = processes.map(|p| (p.pid, p.memory_mib)).collect();
    assert_eq!(processes, [(4711, 2048), (12, 0)]);
    assert!(!state.gpus[1].links[4].active && state.gpus[1].links[3].active);
    rig.says(&["link", "1", "4", "up"]);
    rig.says(&["processes", "1"]);
    let state = rig.node().node_state().unwrap();
    assert!(state.gpus[1].processes.is_empty() && state.gpus[1].links[4].active);
}
