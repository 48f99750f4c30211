//! The probe as a process: its name, its signals, and its end with the agent.

use std::process::{Child, Command, Stdio};

use model::Phase;
use rustix::process::Signal;
use sim::kubelet::Era;

use crate::{
    process::{Agent, is_probe, isolated, ostler, parent, words},
    rig::{DGX, GPU, LONG, QUICK, Rig, Running, card, eventually, unhealthy},
};

#[tokio::test]
async fn an_agent_that_is_killed_leaves_no_probe_behind() {
    let mut running = Running::start(DGX, QUICK).await;
    let probes = running.agent.probes();
    assert_eq!(probes.len(), 1);
    running.agent.signal(Signal::KILL);
    running.agent.ended().await;
    eventually("the probe is gone", || !is_probe(probes[0])).await;
}

/// NVIDIA's config-manager signals the first process whose `argv[0]` is the plugin's name, which the
/// agent may have (k8s-device-plugin, cmd/config-manager/main.go).
#[tokio::test]
async fn a_probe_has_a_name_of_its_own_and_inherits_the_environment() {
    let rig = Rig::new(DGX);
    fs_err::write(rig.path("ostler.yaml"), QUICK).unwrap();
    let mut command = crate::process::ostler();
    command.env("A_VARIABLE_OF_THE_POD", "its value");
    let agent = Agent::spawn(&rig, "ostler", command);
    eventually("a probe runs", || !agent.probes().is_empty()).await;
    let probe = agent.probes()[0];
    let arguments = words(probe, "cmdline");
    assert_eq!(arguments[0], "ostler-probe");
    let environment = words(probe, "environ");
    let inherited = "A_VARIABLE_OF_THE_POD=its value".to_owned();
    assert!(environment.contains(&inherited), "{environment:?}");
}

#[tokio::test]
async fn a_killed_probe_comes_back_and_the_kubelet_sees_nothing_of_it() {
    let running = Running::start(DGX, QUICK).await;
    let Running { agent, kubelet, .. } = &running;
    let before = agent.probes();
    agent.kill_probes();
    eventually("another probe runs", || {
        let now = agent.probes();
        now.len() == 1 && now != before
    })
    .await;
    agent
        .shows("its report", |seen| {
            seen.backends[0].phase == Phase::Running && seen.backends[0].message.is_empty()
        })
        .await;
    assert_eq!(unhealthy(&kubelet.resource_devices(GPU)), [""; 0]);
    for list in kubelet.device_lists(GPU) {
        let healthy = list.devices.iter().filter(|d| d.health == "Healthy");
        assert_eq!(healthy.count(), 8);
    }
    assert_eq!(kubelet.registrations().len(), 1);
    agent.logged("the probe is started again").await;
}

#[tokio::test]
async fn a_lost_card_stays_out_while_its_probe_is_killed_or_replaced() {
    let running = Running::start(DGX, QUICK).await;
    let Running {
        agent,
        kubelet,
        rig,
    } = &running;
    let lost = rig.uuid(5);
    rig.node.lose_cards(&card(5)).unwrap();
    running.sick(GPU, &[&lost]).await;
    let told = kubelet.device_lists(GPU).len();
    for _ in 0..2 {
        let before = agent.probes();
        agent.kill_probes();
        eventually("another probe runs", || {
            let now = agent.probes();
            now.len() == 1 && now != before
        })
        .await;
    }
    let other = QUICK.replace("period: 500ms", "period: 400ms");
    fs_err::write(rig.path("ostler.yaml"), other).unwrap();
    agent.signal(Signal::HUP);
    rig.node.restore_cards(&card(5)).unwrap();
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    let lists = kubelet.device_lists(GPU).len() - told;
    assert_eq!(lists, 1, "nothing is told but its return");
}

/// Starts an agent that logs everything to `stderr`.
fn talkative(rig: &Rig, stderr: Stdio) -> Child {
    let flags = [
        ("--kubelet-dir", rig.kubelet_dir()),
        ("--host-root", rig.node.host_root()),
        ("--nvml-library", rig.node.driver_library()),
        ("--control-socket", rig.path("control.sock")),
        ("--cdi-dir", rig.cdi_dir()),
    ];
    let mut command = ostler();
    command.args(["run", "--log", "trace"]).stderr(stderr);
    for (flag, path) in flags {
        command.arg(flag).arg(path);
    }
    command.spawn().unwrap()
}

#[tokio::test]
async fn an_agent_whose_log_cannot_be_written_or_is_not_read_goes_on() {
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_36).await;
    // Every write to /dev/full fails with ENOSPC (full(4)).
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    for stderr in [Stdio::from(full.unwrap()), Stdio::piped()] {
        let mut agent = talkative(&rig, stderr);
        kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
        rig.listening().await;
        rig.node.raise_xid(&card(5), 79).unwrap();
        kubelet.wait_healthy(GPU, 7, LONG).await.unwrap();
        assert!(agent.try_wait().unwrap().is_none(), "it runs");
        agent.kill().unwrap();
        agent.wait().unwrap();
        kubelet.wait_healthy(GPU, 0, LONG).await.unwrap();
        // The next agent must not know of the XID.
        let _ = fs_err::remove_file(rig.path("kubelet/ostler-state.json"));
    }
}

/// In a container the agent may be PID 1: every orphan becomes its child.
#[tokio::test]
async fn orphans_come_to_the_agent_and_are_reaped() {
    let rig = Rig::new(DGX);
    fs_err::write(rig.path("ostler.yaml"), QUICK).unwrap();
    // The shell becomes the agent by exec. Before that it starts a child, which waits, starts a
    // process, and leaves it behind.
    let script = "
        ( while [ ! -e \"$GO\" ]; do sleep 0.1; done
          sleep 3 & echo $! >\"$GO.part\"; mv \"$GO.part\" \"$GO.orphan\" ) &
        exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_ostler")]);
    command.env("GO", rig.path("go"));
    let agent = Agent::spawn(&rig, "ostler", isolated(command));
    agent
        .shows("a first look", |seen| !seen.devices.is_empty())
        .await;

    fs_err::write(rig.path("go"), "").unwrap();
    let note = rig.path("go.orphan");
    eventually("there is an orphan", || note.exists()).await;
    let orphan: u32 = fs_err::read_to_string(&note)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    eventually("the orphan comes to the agent", || {
        parent(orphan) == Some(agent.pid())
    })
    .await;
    eventually("the orphan is reaped", || parent(orphan).is_none()).await;
    assert_eq!(agent.probes().len(), 1, "the probe is left alone");
}
