//! `preStart`: before a container starts on an exclusive card, no other process may use the card.

mod reset;

use crate::rig::{DGX, GPU, LONG, Running, card, eventually};
use model::CauseKind;
use sim::{
    kubelet::{AdmissionError, Pod, pod},
    state::{GpuProcess, ProcessWork},
};

fn config(pool: &str) -> String {
    format!(
        "probe: {{period: 2s}}\nhealth: {{residueHold: 4s, holdDown: 1s}}\n\
         pools: [{{name: a, resource: {GPU}, placement: first-fit, {pool}}}]\n"
    )
}

/// Puts a process on every card.
fn occupy(running: &Running) {
    let node = &running.rig.node;
    let comm = node.host_root().join("proc/4711/comm");
    fs_err::create_dir_all(comm.parent().unwrap()).unwrap();
    // /proc/PID/comm has the name that the refusal shows (proc(5)).
    fs_err::write(comm, "python3\n").unwrap();
    let process = GpuProcess {
        pid: 4711,
        work: ProcessWork::Compute,
        memory_mib: 700,
        instance: None,
    };
    for index in 0..8 {
        let processes = std::slice::from_ref(&process);
        node.set_processes(&card(index), processes).unwrap();
    }
}

fn clear(running: &Running) {
    for index in 0..8 {
        running.rig.node.set_processes(&card(index), &[]).unwrap();
    }
}

#[tokio::test]
async fn a_card_with_a_process_is_refused_named_and_withheld_for_a_while() {
    let running = Running::start(DGX, &config("preStart: check")).await;
    running.admit(GPU, 2).await.unwrap();
    occupy(&running);
    let refusal = running.admit(GPU, 1).await.unwrap_err();
    let AdmissionError::Start { message, .. } = &refusal else {
        panic!("{refusal}");
    };
    assert!(message.contains("process 4711 (python3)"), "{message}");
    let withheld = running.agent.shows("a card is withheld", |seen| {
        let residue = |e: &&api::ListedDevice| {
            let mut causes = e.verdict.causes.iter();
            causes.any(|cause| cause.kind == CauseKind::Residue)
        };
        seen.devices.iter().filter(residue).count() == 1
    });
    withheld.await;
    running.kubelet.wait_healthy(GPU, 7, LONG).await.unwrap();
    clear(&running);
    running.complete(LONG).await;
    // The pod is still admitted, and its container can start now.
    let pod = pod::PodId {
        namespace: "default".to_owned(),
        name: "guest".to_owned(),
    };
    let again = running.kubelet.restart_container(&pod, "main");
    again.await.unwrap();
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_start_waits_until_the_card_is_free() {
    let running = Running::start(DGX, &config("preStart: wait")).await;
    occupy(&running);
    running.rig.node.trace().unwrap();
    let starting = running.admit(GPU, 1);
    let freeing = async {
        // Two reports have found the process: one for the start, and one while the start waits.
        eventually("the start waits", || {
            let calls = running.rig.node.traced_calls().unwrap();
            let asked = |call: &&String| call.starts_with("nvmlDeviceGetComputeRunningProcesses");
            calls.iter().filter(asked).count() > 2 * 8
        })
        .await;
        clear(&running);
    };
    let (started, ()) = tokio::join!(starting, freeing);
    started.unwrap();
}

#[tokio::test]
async fn a_start_that_waits_gives_up_in_time() {
    let pool = "preStart: wait, preStartLimit: 2s";
    let running = Running::start(DGX, &config(pool)).await;
    occupy(&running);
    let refusal = running.admit(GPU, 1).await.unwrap_err().to_string();
    assert!(refusal.contains("4711"), "{refusal}");
}

#[tokio::test]
async fn a_command_prepares_the_card_and_its_failure_is_told() {
    let mark = tempfile::tempdir().unwrap();
    let file = mark.path().join("done");
    let script = format!("echo $OSTLER_DEVICE $OSTLER_RESOURCE >>{}", file.display());
    let pool = format!("preStart: exec, preStartCommand: '{script}'");
    let running = Running::start(DGX, &config(&pool)).await;
    let granted = running.admit(GPU, 2).await.unwrap();
    let text = fs_err::read_to_string(&file).unwrap();
    for id in &granted.devices[GPU] {
        assert!(text.contains(&format!("{id} {GPU}\n")), "{text}");
    }
    let failing = "preStart: exec, preStartCommand: 'echo cannot prepare; exit 3'";
    running.rewrite(&config(failing));
    eventually("the other command is used", || {
        let log = running.agent.log();
        log.contains("the config was read again")
    })
    .await;
    let refusal = running.admit(GPU, 1).await.unwrap_err().to_string();
    assert!(refusal.contains("cannot prepare"), "{refusal}");
}

/// The kubelet reads `PreStartRequired` once, at registration
/// (pkg/kubelet/cm/devicemanager/manager.go, `callPreStartContainerIfNeeded`).
#[tokio::test]
async fn a_pool_that_begins_to_check_is_registered_anew() {
    let running = Running::start(DGX, &config("preStart: 'off'")).await;
    occupy(&running);
    running.admit(GPU, 1).await.unwrap();
    running.rewrite(&config("preStart: check"));
    let again = |kubelet: &sim::kubelet::Kubelet| kubelet.registrations().len() == 2;
    let wait = running.kubelet.wait_until("a registration", again, LONG);
    wait.await.unwrap();
    running.complete(LONG).await;
    assert!(running.admit(GPU, 1).await.is_err());
}

#[tokio::test]
async fn a_container_that_starts_again_is_checked_again() {
    let running = Running::start(DGX, &config("preStart: check")).await;
    let pod = Pod::new("default", "guest").with_container("main", [(GPU, 1)]);
    let admitted = running.kubelet.admit_pod(pod).await.unwrap();
    occupy(&running);
    let again = running.kubelet.restart_container(&admitted.pod, "main");
    assert!(again.await.is_err());
    clear(&running);
    let again = running.kubelet.restart_container(&admitted.pod, "main");
    again.await.unwrap();
}
