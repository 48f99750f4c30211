//! One card fails, is unhealthy for its cause, is repaired and is healthy again. No other card
//! changes, and the agent runs on.

use std::time::Duration;

use api::DevicePage;
use model::CauseKind;
use serde_json::json;
use sim::{
    DeviceTarget, EccKind, Effect, NewGpu, Node,
    state::{GpuProcess, ProcessWork},
};
use tokio::time::sleep;

use super::STRICT;
use crate::{
    process::Agent,
    rig::{DGX, GPU, LONG, QUICK, Rig, Running, eventually},
};

/// Card that fails.
const VICTIM: usize = 3;
/// `NVML_ERROR_GPU_IS_LOST` of nvml.h.
const GPU_IS_LOST: u32 = 15;

/// Breaks the victim with `breaks`, waits until it is unhealthy for this kind of cause, and repairs
/// it with `cures`.
async fn circle(
    running: &Running,
    kind: CauseKind,
    breaks: impl AsyncFnOnce(&Node, DeviceTarget),
    cures: impl AsyncFnOnce(&Node, DeviceTarget),
) {
    let (pid, id) = (running.agent.pid(), running.rig.uuid(VICTIM));
    let (node, target) = (&running.rig.node, || DeviceTarget::Uuid(id.clone()));
    breaks(node, target()).await;
    held(running, &id, kind).await;
    running.sick(GPU, &[&id]).await;
    cures(node, target()).await;
    running.complete(LONG).await;
    assert_eq!(running.agent.pid(), pid);
    assert_eq!(running.kubelet.registrations().len(), 1);
    assert_eq!(running.breaches(), [""; 0]);
}

/// Waits until a device's verdict has a cause of this kind.
async fn held(running: &Running, id: &str, kind: CauseKind) {
    let is_held = |seen: &DevicePage| {
        let entry = seen.find_listed(id);
        entry.is_some_and(|entry| entry.verdict.causes.iter().any(|c| c.kind == kind))
    };
    let what = format!("{id} is out for {kind:?}");
    running.agent.shows(&what, is_held).await;
}

#[tokio::test]
async fn a_card_that_is_lost() {
    let running = Running::start(DGX, QUICK).await;
    let lose = async |node: &Node, card| node.lose_cards(&card).unwrap();
    let restore = async |node: &Node, card| node.restore_cards(&card).unwrap();
    circle(&running, CauseKind::Lost, lose, restore).await;
}

#[tokio::test]
async fn a_card_whose_driver_gives_no_handle_to_it() {
    let running = Running::start(DGX, QUICK).await;
    let refuse = async |node: &Node, card| {
        let lost = Effect::Fail { code: GPU_IS_LOST };
        let call = "nvmlDeviceGetHandleByPciBusId";
        node.set_fault(call, Some(&card), lost).unwrap();
    };
    let clear = async |node: &Node, _| assert_eq!(node.clear_faults(None).unwrap(), 1);
    circle(&running, CauseKind::Lost, refuse, clear).await;
}

#[tokio::test]
async fn a_card_without_its_device_node() {
    let running = Running::start(DGX, QUICK).await;
    let minor = running.rig.node.list_gpus().unwrap()[VICTIM].minor;
    let file = running
        .rig
        .node
        .host_root()
        .join(format!("dev/nvidia{minor}"));
    let aside = running.rig.path("aside");
    let remove = async |_: &Node, _| fs_err::rename(&file, &aside).unwrap();
    let put_back = async |_: &Node, _| fs_err::rename(&aside, &file).unwrap();
    circle(&running, CauseKind::Lost, remove, put_back).await;
}

#[tokio::test]
async fn a_card_that_is_taken_out() {
    let running = Running::start(DGX, QUICK).await;
    let remove = async |node: &Node, card| node.remove_gpu(&card).unwrap();
    let put_in = async |node: &Node, _| drop(node.add_gpu(&NewGpu::default()).unwrap());
    circle(&running, CauseKind::Gone, remove, put_in).await;
}

#[tokio::test]
async fn a_card_that_does_not_answer() {
    let config = "probe: {period: 500ms, callLimit: 1s, retryPause: 500ms}\n\
                  health: {unansweredGrace: 1s, holdDown: 500ms, passes: 2}\n";
    let running = Running::start(DGX, config).await;
    let hang = async |node: &Node, card| {
        let hang = Effect::Hang { millis: None };
        node.set_fault("nvmlDeviceGetMemoryInfo", Some(&card), hang)
            .unwrap();
    };
    let clear = async |node: &Node, _| assert_eq!(node.clear_faults(None).unwrap(), 1);
    circle(&running, CauseKind::NotAnswering, hang, clear).await;
}

#[tokio::test]
async fn a_card_with_an_xid() {
    let running = Running::start(DGX, QUICK).await;
    running.rig.listening().await;
    let xid = async |node: &Node, card| node.raise_xid(&card, 79).unwrap();
    let reset = async |node: &Node, card| reset_when_counted(&running, node, card).await;
    circle(&running, CauseKind::Event, xid, reset).await;
}

#[tokio::test]
async fn a_card_with_a_memory_error_of_which_an_event_tells() {
    let running = Running::start(DGX, QUICK).await;
    running.rig.listening().await;
    let error =
        async |node: &Node, card| node.count_ecc_error(&card, EccKind::Uncorrected).unwrap();
    let reset = async |node: &Node, card| reset_when_counted(&running, node, card).await;
    circle(&running, CauseKind::Ecc, error, reset).await;
}

/// Resets the victim after the agent has written its counters to the state file: the agent recognises
/// the reset by them.
async fn reset_when_counted(running: &Running, node: &Node, card: DeviceTarget) {
    running.rig.counted(VICTIM).await;
    reset(node, card).await;
}

/// Resets a card. It is away for no time, so that no report sees that.
async fn reset(node: &Node, card: DeviceTarget) {
    node.reset_cards(&card, Duration::ZERO).unwrap();
}

#[tokio::test]
async fn a_card_on_which_the_command_of_the_user_fails() {
    let rig = Rig::new(DGX);
    let (sick, id) = (rig.path("sick"), rig.uuid(VICTIM));
    fs_err::write(&sick, "").unwrap();
    let command = format!(
        "{STRICT}  deep: 500ms\n  deepCommand: '! grep -q $OSTLER_DEVICE {}'\n",
        sick.display()
    );
    let running = Running::on(rig, &command).await;
    let fails = async |_: &Node, _| fs_err::write(&sick, &id).unwrap();
    let passes = async |_: &Node, _| fs_err::write(&sick, "").unwrap();
    circle(&running, CauseKind::Deep, fails, passes).await;
}

#[tokio::test]
async fn a_card_with_a_process_of_somebody_else() {
    let config = format!(
        "probe: {{period: 500ms}}\npools: [{{name: a, resource: {GPU}, preStart: check}}]\n"
    );
    let running = Running::start(DGX, &config).await;
    let occupy = async |node: &Node, card| {
        let process = GpuProcess {
            pid: 4711,
            work: ProcessWork::Compute,
            memory_mib: 700,
            instance: None,
        };
        node.set_processes(&card, &[process]).unwrap();
        running.admit(GPU, 8).await.unwrap_err();
    };
    let leave = async |node: &Node, card| node.set_processes(&card, &[]).unwrap();
    circle(&running, CauseKind::Residue, occupy, leave).await;
}

#[tokio::test]
async fn a_card_that_an_operator_cordons() {
    let running = Running::start(DGX, QUICK).await;
    let cordon = async |_: &Node, card| order(&running.agent, "cordon", &card).await;
    let uncordon = async |_: &Node, card| order(&running.agent, "uncordon", &card).await;
    circle(&running, CauseKind::Cordoned, cordon, uncordon).await;
}

#[tokio::test]
async fn a_card_that_an_operator_releases() {
    let running = Running::start(DGX, QUICK).await;
    let release = async |_: &Node, card| order(&running.agent, "release", &card).await;
    let resume = async |_: &Node, card| order(&running.agent, "resume", &card).await;
    circle(&running, CauseKind::Released, release, resume).await;
}

/// Sends an operator's order to the agent.
async fn order(agent: &Agent, order: &str, card: &DeviceTarget) {
    let device = json!({"device": card.to_string()});
    let action = format!("/v1/{order}");
    let sent = web::client::post(&agent.control, &action, &device);
    sent.await.unwrap();
}

#[tokio::test]
async fn a_mean_power_above_its_limit() {
    const LIMIT: u64 = 100;
    let config = format!("{STRICT}  thresholds: {{meanWatts: {LIMIT}, meanTime: 1s}}\n");
    let running = Running::start(DGX, &config).await;
    running.rig.node.trace().unwrap();
    eventually("the energy was read", || {
        let calls = running.rig.node.traced_calls().unwrap();
        let energy = |call: &&String| call.starts_with("nvmlDeviceGetTotalEnergyConsumption");
        calls.iter().filter(energy).count() > 8
    })
    .await;
    let burn = async |node: &Node, card: DeviceTarget| {
        let state = node.node_state().unwrap();
        let gpu = &state.gpus[VICTIM];
        let before = gpu.energy_millijoules(&state.models[&gpu.model]);
        // The energy that the limit allows for a whole day, in mJ.
        let day = LIMIT * 1000 * 24 * 60 * 60;
        node.set_sensor(&card, "energy", before + day).unwrap();
    };
    // After a reset the mean is that of an idle card.
    circle(&running, CauseKind::Trend, burn, reset).await;
}

#[tokio::test]
async fn a_monitor_that_stays_away() {
    // Every probe is killed as soon as it starts.
    let config = "probe: {period: 500ms}\n\
                  health: {onMonitorLoss: drain, monitorLossGrace: 1s, holdDown: 500ms, passes: 1}\n";
    let running = Running::start(DGX, config).await;
    let pid = running.agent.pid();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let killing = async {
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            running.agent.kill_probes();
            sleep(Duration::from_millis(20)).await;
        }
    };
    let watching = async {
        held(&running, &running.rig.uuid(VICTIM), CauseKind::MonitorDown).await;
        running.kubelet.wait_healthy(GPU, 0, LONG).await.unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    tokio::join!(killing, watching);
    running.complete(LONG).await;
    assert_eq!(running.agent.pid(), pid);
}
