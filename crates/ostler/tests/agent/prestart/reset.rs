//! `preStart: reset`: a card is released, reset and read again before a container starts on it.

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt as _, path::PathBuf};

use futures_util::future::try_join_all;
use model::{CauseKind, State};
use sim::{
    DeviceTarget, Effect,
    kubelet::{Era, Pod},
};

use super::{clear, config, occupy};
use crate::{
    process::{Agent, ostler, parent},
    rig::{DGX, GPU, LONG, Rig, Running, card, eventually},
};

/// Shell command that runs `ostler sim …` on the node.
fn sim(rig: &Rig, change: &str) -> String {
    let program = env!("CARGO_BIN_EXE_ostler");
    format!(
        "{program} sim --node {} {change}",
        rig.node.node_dir().display()
    )
}

/// Config of a pool whose reset command is `ostler sim` with `change`. The limit is near the kubelet's own,
/// 30 s: a busy machine takes long to start eight commands.
fn by(rig: &Rig, change: &str) -> String {
    let command = sim(rig, change);
    config(&format!(
        "preStart: reset, preStartLimit: 25s, preStartCommand: '{command}'"
    ))
}

/// Writes an `nvidia-smi` that resets cards of the node and records its arguments. Returns its
/// folder.
fn nvidia_smi(rig: &Rig) -> PathBuf {
    let folder = rig.path("bin");
    fs_err::create_dir_all(&folder).unwrap();
    let file = folder.join("nvidia-smi");
    let script = format!(
        "#!/bin/sh\n\
         echo \"$@\" >>{note}\n\
         for card in $(echo $3 | tr , ' '); do {reset} || exit 1; done\n",
        note = rig.path("resets").display(),
        reset = sim(rig, "reset $card --for 300ms"),
    );
    fs_err::write(&file, script).unwrap();
    fs_err::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Used memory of each card, in MiB.
fn memory(rig: &Rig) -> Vec<u64> {
    let gpus = rig.node.node_state().unwrap().gpus;
    gpus.iter().map(|gpu| gpu.sensors.memory_used).collect()
}

/// The simulator refuses to reset a card that a probe has open, as the driver does.
#[tokio::test]
async fn used_cards_are_given_up_reset_together_and_looked_at_and_the_kubelet_hears_nothing() {
    let rig = Rig::new(DGX);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders);
    let path = std::env::join_paths([nvidia_smi(&rig)].into_iter().chain(folders)).unwrap();
    let mut command = ostler();
    command.env("PATH", path);
    let kubelet = rig.kubelet(Era::V1_37).await;
    fs_err::write(rig.path("ostler.yaml"), config("preStart: reset")).unwrap();
    let agent = Agent::spawn(&rig, "ostler", command);
    let running = Running {
        agent,
        kubelet,
        rig,
    };
    running.complete(LONG).await;
    let rig = &running.rig;
    rig.node
        .set_sensor(&DeviceTarget::All, "memory-used", 9000)
        .unwrap();
    let (pid, lists) = (running.agent.pid(), running.kubelet.device_lists(GPU).len());
    let granted = running.borrow(GPU, 2).await;
    let gpus = rig.node.list_gpus().unwrap();
    let reset: BTreeSet<usize> = (0..8).filter(|index| memory(rig)[*index] < 9000).collect();
    let given: BTreeSet<usize> = (0..8)
        .filter(|index| granted.contains(&gpus[*index].uuid))
        .collect();
    assert_eq!(reset, given);
    let commands = fs_err::read_to_string(rig.path("resets")).unwrap();
    let addresses: Vec<String> = given.iter().map(|i| gpus[*i].pci.to_string()).collect();
    let named = commands.strip_prefix("--gpu-reset -i ").unwrap().trim_end();
    let named: BTreeSet<&str> = named.split(',').collect();
    assert_eq!(named, addresses.iter().map(String::as_str).collect());
    for list in &running.kubelet.device_lists(GPU)[lists..] {
        assert!(
            list.devices.iter().all(|d| d.health == "Healthy"),
            "{list:?}"
        );
    }
    assert_eq!(running.agent.pid(), pid);
    assert_eq!(running.kubelet.registrations().len(), 1);
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_card_on_which_a_process_computes_is_refused_and_not_reset() {
    let rig = Rig::new(DGX);
    let config = by(&rig, "set all temperature 99");
    let running = Running::on(rig, &config).await;
    occupy(&running);
    let refusal = running.admit(GPU, 1).await.unwrap_err().to_string();
    assert!(refusal.contains("process 4711 (python3)"), "{refusal}");
    let sensors = &running.rig.node.node_state().unwrap().gpus[0].sensors;
    assert_ne!(sensors.temperature, 99, "no command was run");
    clear(&running);
    running.complete(LONG).await;
}

#[tokio::test]
async fn a_card_whose_reset_fails_is_refused_and_looked_at_again() {
    let rig = Rig::new(DGX);
    let config = by(&rig, "reset 99");
    let running = Running::on(rig, &config).await;
    let refusal = running.admit(GPU, 1).await.unwrap_err().to_string();
    assert!(refusal.contains("there is no device 99"), "{refusal}");
    running.kubelet.wait_healthy(GPU, 7, LONG).await.unwrap();
    // The card is withheld for a while, and then the agent alone has it open.
    running.complete(LONG).await;
    eventually("every card is looked at", || {
        let holders = running.rig.node.holders().unwrap();
        holders.iter().all(|card| !card.pids.is_empty())
    })
    .await;
}

#[tokio::test]
async fn a_card_that_does_not_come_back_is_not_handed_over() {
    let rig = Rig::new(DGX);
    let config = by(&rig, "lose $OSTLER_DEVICE_PCI");
    let running = Running::on(rig, &config).await;
    let refusal = running.admit(GPU, 1).await.unwrap_err().to_string();
    assert!(
        refusal.contains("it was reset, and it is Unhealthy"),
        "{refusal}"
    );
    assert!(refusal.contains("GPU_IS_LOST"), "{refusal}");
    running.rig.node.restore_cards(&DeviceTarget::All).unwrap();
    running.complete(LONG).await;
}

/// The kubelet gives a restarted container the same card, whatever its health is.
#[tokio::test]
async fn a_card_is_cured_by_its_reset_and_one_that_an_operator_has_is_left_alone() {
    let rig = Rig::new(DGX);
    let config = by(&rig, "reset $OSTLER_DEVICE_PCI --for 300ms");
    let running = Running::on(rig, &config).await;
    let pod = Pod::new("default", "guest").with_container("main", [(GPU, 1)]);
    let admitted = running.kubelet.admit_pod(pod).await.unwrap();
    let id = admitted.containers["main"].devices[GPU]
        .first()
        .unwrap()
        .clone();
    let rig = &running.rig;
    let index = (0..8).find(|index| rig.uuid(*index) == id).unwrap();
    rig.listening().await;
    rig.node.raise_xid(&card(index), 48).unwrap();
    running.sick(GPU, &[&id]).await;
    let again = running.kubelet.restart_container(&admitted.pod, "main");
    again.await.unwrap();
    running.complete(LONG).await;

    let release = serde_json::json!({"device": id});
    let released = web::client::post(&running.agent.control, "/v1/release", &release);
    released.await.unwrap();
    let again = running.kubelet.restart_container(&admitted.pod, "main");
    let refusal = again.await.unwrap_err().to_string();
    assert!(refusal.contains("ostler resume"), "{refusal}");
    let seen = running.agent.devices().await.unwrap();
    let verdict = &seen.find_listed(&id).unwrap().verdict;
    assert_eq!(verdict.state, State::Maintenance);
    let kinds: Vec<CauseKind> = verdict.causes.iter().map(|cause| cause.kind).collect();
    assert_eq!(kinds, [CauseKind::Released]);
}

#[tokio::test]
async fn a_card_that_does_not_answer_is_refused_and_not_reset() {
    let rig = Rig::new(DGX);
    let config = by(&rig, "set all temperature 99");
    let running = Running::on(rig, &config).await;
    let node = &running.rig.node;
    let hang = Effect::Hang { millis: None };
    node.set_fault("nvmlDeviceGetMemoryInfo", None, hang)
        .unwrap();
    let refusal = running.admit(GPU, 1).await.unwrap_err().to_string();
    assert!(
        refusal.contains("no probe looked at it in time"),
        "{refusal}"
    );
    assert_ne!(node.node_state().unwrap().gpus[0].sensors.temperature, 99);
}

#[tokio::test]
async fn a_kubelet_that_waits_no_longer_ends_the_command_and_the_card_is_looked_at_again() {
    let rig = Rig::new(DGX);
    let note = rig.path("note");
    let command = format!(
        "sleep 1000 & echo $! >{0}.part; mv {0}.part {0}; wait",
        note.display()
    );
    let pool = format!("preStart: reset, preStartCommand: \"{command}\"");
    let running = Running::on(rig, &config(&pool)).await;
    let noted = eventually("the command runs", || note.exists());
    tokio::select! {
        admitted = running.admit(GPU, 1) => panic!("{admitted:?}"),
        () = noted => {}
    }
    let pid: u32 = fs_err::read_to_string(&note)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    eventually("the command is gone", || parent(pid).is_none()).await;
    eventually("every card is looked at", || {
        let holders = running.rig.node.holders().unwrap();
        holders.iter().all(|card| !card.pids.is_empty())
    })
    .await;
    running.complete(LONG).await;
}

/// Two resets of a card at the same time would disturb each other.
#[tokio::test]
async fn a_card_that_is_being_reset_is_not_given_to_an_operator_nor_looked_at_for_him() {
    let rig = Rig::new(DGX);
    let (note, go) = (rig.path("note"), rig.path("go"));
    let command = format!(
        "echo $OSTLER_DEVICE >{0}.part; mv {0}.part {0}; until test -e {1}; do sleep 0.1; done",
        note.display(),
        go.display()
    );
    let pool = format!("preStart: reset, preStartCommand: \"{command}\"");
    let running = Running::on(rig, &config(&pool)).await;
    let control = &running.agent.control;
    let asking = async {
        eventually("the command runs", || note.exists()).await;
        let id = fs_err::read_to_string(&note).unwrap();
        let one = serde_json::json!({"device": id.trim()});
        let all = serde_json::json!({"all": true});
        for (path, order, words) in [
            ("/v1/release", &one, "is being reset"),
            ("/v1/release", &all, "a card is being reset"),
            ("/v1/resume", &one, "is not released"),
            ("/v1/resume", &all, "is not released"),
        ] {
            let refusal = web::client::post(control, path, order).await.unwrap_err();
            assert!(refusal.to_string().contains(words), "{path}: {refusal}");
        }
        eventually("it is the command's alone", || {
            let holders = running.rig.node.holders().unwrap();
            holders.iter().filter(|card| card.pids.is_empty()).count() == 1
        })
        .await;
        fs_err::write(&go, "").unwrap();
        one
    };
    let (admitted, one) = tokio::join!(running.admit(GPU, 1), asking);
    admitted.unwrap();
    let released = web::client::post(control, "/v1/release", &one).await;
    released.unwrap();
}

/// As after a reboot of the node: some cards are released while others are taken back.
#[tokio::test]
async fn the_starts_of_all_cards_at_once_are_not_in_each_others_way() {
    let rig = Rig::new(DGX);
    let config = by(&rig, "reset $OSTLER_DEVICE_PCI --for 300ms");
    let running = Running::on(rig, &config).await;
    let mut pods = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let pod = Pod::new("default", name).with_container("main", [(GPU, 1)]);
        pods.push(running.kubelet.admit_pod(pod).await.unwrap().pod);
    }
    let start = |pod| running.kubelet.restart_container(pod, "main");
    try_join_all(pods.iter().map(start)).await.unwrap();
    assert_eq!(running.breaches(), [""; 0]);
}
