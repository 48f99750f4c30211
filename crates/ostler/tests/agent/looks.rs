//! Times and cost of the probe's reports: no driver call without need, and no needed one that waits
//! for the next period.

use std::time::Duration;

use crate::rig::{DGX, GPU, LONG, Running, card, eventually};

/// Temperature that no card has by itself.
const WARM: u32 = 77;

/// During a hold-down every card is read again and again. The links of the card that came back are
/// read once, and those of no other card.
#[tokio::test]
async fn a_card_in_hold_down_costs_no_calls_about_links() {
    let config = "probe: {period: 10m}\nhealth: {holdDown: 4s, passes: 4}\n";
    let running = Running::start(DGX, config).await;
    let Running { rig, .. } = &running;
    rig.listening().await;
    rig.node.lose_cards(&card(3)).unwrap();
    // An event causes a report at once.
    rig.node.raise_xid(&card(3), 79).unwrap();
    running.lost(&rig.uuid(3)).await;
    rig.node.trace().unwrap();
    rig.node.restore_cards(&card(3)).unwrap();
    running.complete(LONG).await;
    let calls = rig.node.traced_calls().unwrap();
    let of = |word: &str| calls.iter().filter(|call| call.contains(word)).count();
    assert!(of("GetMemoryInfo") >= 4 * 8, "every card was looked at");
    assert_eq!(of("TopologyCommonAncestor"), 7, "once for each other card");
}

/// A reset that no report saw: only the counters tell of it. The XID's cause must end all the same.
#[tokio::test]
async fn a_reset_between_two_looks_is_seen_by_counters_that_began_anew() {
    let running = Running::start(DGX, "probe: {period: 10m}\n").await;
    let Running { agent, rig, .. } = &running;
    rig.listening().await;
    let id = rig.uuid(3);
    // The report after the event has read every card when it has read the last one.
    rig.node
        .set_sensor(&card(7), "temperature", WARM.into())
        .unwrap();
    rig.node.raise_xid(&card(3), 79).unwrap();
    running.sick(GPU, &[&id]).await;
    running.warm(7, WARM).await;
    rig.node.reset_cards(&card(3), Duration::ZERO).unwrap();
    // XID 43 has no effect on a verdict, but causes a report.
    rig.node.raise_xid(&card(5), 43).unwrap();
    running.complete(LONG).await;
    let log = agent.logged("its counters began anew").await;
    assert!(!log.contains("GPU_IS_LOST"), "{log}");
}

/// The driver's files are known before a reload needs them, even if the next report is far away.
#[tokio::test]
async fn a_reload_to_cdi_need_not_wait_for_the_next_look() {
    let config = "probe: {period: 10m}\n";
    let running = Running::start(DGX, config).await;
    running.rewrite(&format!("{config}handover: {{lists: [cdi-cri]}}\n"));
    let spec = running.rig.cdi_dir();
    let spec = spec.join("k8s.device-plugin.nvidia.com-gpu.json");
    eventually("the spec comes", || spec.exists()).await;
    running.complete(LONG).await;
    let granted = running.admit(GPU, 1).await.unwrap();
    assert_eq!(granted.response.cdi_devices.len(), 1);
    assert_eq!(running.breaches(), [""; 0]);
}
