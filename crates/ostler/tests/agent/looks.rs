//! When the probe looks, and what that costs: nothing is asked of a driver without need, and nothing
//! that is needed waits for the next look.

use std::time::Duration;

use crate::rig::{DGX, GPU, LONG, Running, card, eventually};

/// A temperature that no card has by itself.
const WARM: u32 = 77;

/// A card on its way back is looked at again and again. What is asked of links is its own, once.
#[tokio::test]
async fn a_card_in_hold_down_costs_no_calls_about_links() {
    let config = "probe: {period: 10m}\nhealth: {holdDown: 4s, passes: 4}\n";
    let running = Running::start(DGX, config).await;
    let Running { rig, .. } = &running;
    rig.listening().await;
    rig.node.lose(&card(3)).unwrap();
    // After an event the probe looks at once.
    rig.node.xid(&card(3), 79).unwrap();
    running.lost(&rig.uuid(3)).await;
    rig.node.trace().unwrap();
    rig.node.restore(&card(3)).unwrap();
    running.complete(LONG).await;
    let calls = rig.node.calls().unwrap();
    let of = |word: &str| calls.iter().filter(|call| call.contains(word)).count();
    assert!(of("GetMemoryInfo") >= 4 * 8, "every card was looked at");
    assert_eq!(of("TopologyCommonAncestor"), 7, "once for each other card");
}

/// The card looks as well as before: only its counters tell. No XID stands for ever.
#[tokio::test]
async fn a_reset_between_two_looks_is_seen_by_counters_that_began_anew() {
    let running = Running::start(DGX, "probe: {period: 10m}\n").await;
    let Running { agent, rig, .. } = &running;
    rig.listening().await;
    let id = rig.uuid(3);
    // The look that the event makes ends with the last card.
    rig.node.set(&card(7), "temperature", WARM.into()).unwrap();
    rig.node.xid(&card(3), 79).unwrap();
    running.sick(GPU, &[&id]).await;
    running.warm(7, WARM).await;
    rig.node.reset(&card(3), Duration::ZERO).unwrap();
    // An XID that means nothing makes the probe look.
    rig.node.xid(&card(5), 43).unwrap();
    running.complete(LONG).await;
    let log = agent.logged("its counters began anew").await;
    assert!(!log.contains("GPU_IS_LOST"), "{log}");
}

/// The driver's files are there before somebody wants them, also when the next look is far away.
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
