//! A driver call that never returns costs one card at most, and never the kubelet's calls.
//!
//! The calls are not listed here: those of a fresh agent are recorded, so that a new call of the
//! probe is tested too.

mod case;
mod list;

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use model::Phase;
use rstest::rstest;
use sim::Effect;
use tokio::{sync::Semaphore, task::JoinSet};

use self::{case::Case, list::Calls};
use crate::rig::{DGX, GPU, LONG, MIG, Running, card, eventually};

/// Number of agents at a time. They mostly wait, but a busy machine has little time for each.
const AT_A_TIME: usize = 8;

/// Time limit of a call by default (`probe.callLimit`).
const USUAL: Duration = Duration::from_secs(10);

/// Prefixes of calls that have hung on real nodes: the start, the handle of a card, its links, the
/// wait for events.
const KNOWN: [&str; 4] = [
    "nvmlInit",
    "nvmlDeviceGetHandleBy",
    "nvmlDeviceGetNvLink",
    "nvmlEventSetWait",
];

/// Runs each case on a node of its own, and names those that fail.
async fn play(cases: Vec<Case>) {
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let mut running = JoinSet::new();
    let mut names = HashMap::new();
    for case in cases {
        let (name, turns) = (case.to_string(), Arc::clone(&turns));
        let task = running.spawn(async move {
            let _turn = turns.acquire_owned().await.unwrap();
            case.play().await;
        });
        names.insert(task.id(), name);
    }
    while let Some(ended) = running.join_next_with_id().await {
        if let Ok((id, ())) = ended {
            names.remove(&id);
        }
    }
    let failed: Vec<&String> = names.values().collect();
    assert!(failed.is_empty(), "went wrong, see above: {failed:?}");
}

#[tokio::test]
async fn each_call_hung_in_turn_costs_at_most_its_card() {
    let (whole, parts) = tokio::join!(Calls::of(DGX), Calls::of(MIG));
    let mut cases = whole.cases(DGX);
    let more = parts.cases(MIG).into_iter();
    let known = |case: &Case| cases.iter().any(|known| known.call == case.call);
    let more: Vec<Case> = more.filter(|case| !known(case)).collect();
    assert!(!more.is_empty(), "partitions need calls of their own");
    cases.extend(more);
    for kind in KNOWN {
        let mut calls = cases.iter().map(|case| &case.call);
        assert!(calls.any(|call| call.starts_with(kind)), "no {kind}");
    }
    play(cases).await;
}

#[tokio::test]
async fn a_driver_that_hangs_while_it_is_closed_is_named_and_opened_anew() {
    let calls = Calls::of(DGX).await;
    let closing = calls.closing();
    assert!(
        closing.iter().any(|call| call == "nvmlShutdown"),
        "{closing:?}"
    );
    for call in closing {
        let mut running = Running::start(DGX, case::HASTY).await;
        let Running { agent, rig, .. } = &mut running;
        rig.listening().await;
        let forever = Effect::Hang { millis: None };
        rig.node.set_fault(call, None, forever).unwrap();
        let probes = agent.probes();
        rig.node.replace_library().unwrap();
        eventually(&format!("{call} is named"), || {
            let log = agent.log();
            let mut lines = log.lines();
            lines.any(|line| line.contains("a driver call does not return") && line.contains(call))
        })
        .await;
        case::gone(&probes).await;
        agent
            .shows("a new probe reports", |seen| {
                seen.backends[0].stuck.is_empty()
            })
            .await;
        running.complete(LONG).await;
        running.agent.stop().await;
    }
}

#[tokio::test]
async fn with_the_usual_limits_a_stuck_call_is_named_after_10_s() {
    let running = Running::start(DGX, "").await;
    let Running { agent, rig, .. } = &running;
    let call = "nvmlDeviceGetTemperature";
    let forever = Effect::Hang { millis: None };
    rig.node.set_fault(call, Some(&card(3)), forever).unwrap();
    agent.kill_probes();
    let named = agent
        .shows("the stuck call", |snapshot| {
            !snapshot.backends[0].stuck.is_empty()
        })
        .await;
    let stuck = &named.backends[0].stuck[0];
    let lasted = Timestamp::now().duration_since(stuck.since);
    assert!(lasted.unsigned_abs() >= USUAL, "named after {lasted}");
    assert_eq!(stuck.call, call);
    let address = rig.node.list_gpus().unwrap()[3].pci.to_string();
    assert_eq!(stuck.device, address.parse().ok());
    agent.logged("a driver call does not return").await;
}

/// No card can be read then: after a while all are unhealthy.
#[rstest]
#[case::start("nvmlInit")]
#[case::version("nvmlSystemGetDriverVersion")]
#[tokio::test]
async fn a_driver_that_hangs_as_a_whole_takes_its_cards_out_and_gives_them_back(
    #[case] call: &str,
) {
    let running = Running::start(DGX, case::HASTY).await;
    let Running {
        agent,
        kubelet,
        rig,
    } = &running;
    let forever = Effect::Hang { millis: None };
    rig.node.set_fault(call, None, forever).unwrap();
    agent.kill_probes();
    let none = kubelet.wait_healthy(GPU, 0, LONG).await;
    assert_eq!(none.unwrap().len(), 8, "they stay listed");
    let failed = agent.devices().await.unwrap();
    assert_eq!(failed.backends[0].phase, Phase::DriverFailed);
    rig.node.clear_faults(None).unwrap();
    running.complete(LONG).await;
    assert_eq!(running.breaches(), [""; 0]);
}
