//! Releasing cards, with real probe processes over the simulated driver.

use std::{path::PathBuf, time::Duration};

use model::{CardRef, Phase};
use probe::{
    BackendState,
    protocol::Scope,
    supervisor::{ChildRegistry, Limits, Orders, Program, ReleaseScope, SupervisorSettings},
};

use crate::{agent::Agent, node::Rig, process};

const LONG: Duration = Duration::from_secs(600);

/// Starts a supervisor over a node.
fn start(rig: &Rig) -> Agent {
    Agent::start(SupervisorSettings {
        name: "nvidia".to_owned(),
        program: Program {
            path: "/bin/sh".into(),
            args: vec![wrapper(rig).display().to_string()],
        },
        allow: None,
        configure: rig.configure(Scope::All),
        limits: Limits::default(),
        children: ChildRegistry::default(),
        orders: Orders::default(),
    })
}

/// Writes a script that starts this program as the probe.
fn wrapper(rig: &Rig) -> PathBuf {
    let path = rig.node.node_dir().join("probe.sh");
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "export {node}={dir} {supervised}=1\n\
         exec {program} --exact probe_process --nocapture --test-threads=1\n",
        node = process::NODE,
        supervised = process::SUPERVISED,
        dir = rig.node.node_dir().display(),
        program = program.display(),
    );
    fs_err::write(&path, script).unwrap();
    path
}

/// Returns the number of processes that have each card open.
fn open(rig: &Rig) -> Vec<usize> {
    let cards = rig.node.holders().unwrap();
    cards.iter().map(|card| card.pids.len()).collect()
}

#[tokio::test]
async fn a_released_card_has_no_open_file_and_the_others_have() {
    let rig = Rig::new("dgx-a100");
    let mut agent = start(&rig);
    agent.until(|s| s.devices.len() == 8).await;
    assert_eq!(open(&rig), [1; 8]);

    let card = CardRef::Pci(rig.pci(3));
    agent.orders.release_cards(ReleaseScope::Card(card), LONG);
    let closed = |s: &BackendState| s.released.cards.get(&card).is_some_and(|r| r.closed);
    let seen = agent.until(closed).await;
    assert_eq!(seen.devices.len(), 7);
    assert_eq!(open(&rig)[3], 0);
    // A reset command must find no process on the card.
    rig.node
        .reset_cards(&"3".parse().unwrap(), Duration::ZERO)
        .unwrap();
    rig.node.lose_cards(&"5".parse().unwrap()).unwrap();
    let others = agent.until(|s| s.devices.len() == 6).await;
    assert!(closed(&others), "the others are watched meanwhile");
    assert_eq!(open(&rig)[3], 0);

    agent.orders.end_operator_releases(ReleaseScope::All);
    agent
        .until(|s| s.devices.len() == 7 && s.released.is_empty())
        .await;
    assert_eq!(open(&rig)[3], 1);
    agent.stop().await;
}

#[tokio::test]
async fn when_all_is_released_nothing_is_open() {
    let rig = Rig::new("dgx-a100");
    let mut agent = start(&rig);
    agent.until(|s| s.devices.len() == 8).await;
    agent.orders.release_cards(ReleaseScope::All, LONG);
    agent
        .until(|s| s.released.all.is_some_and(|r| r.closed))
        .await;
    assert_eq!(open(&rig), [0; 8]);
    rig.node.reload_driver().unwrap();
    agent.orders.end_operator_releases(ReleaseScope::All);
    let back = agent.until(|s| s.devices.len() == 8).await;
    assert_eq!(back.backend.phase, Phase::Running);
    agent.stop().await;
}
