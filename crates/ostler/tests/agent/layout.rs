//! MIG devices are made and removed while the agent runs. The period of reports is long here, so that
//! only the change itself can be noticed.

use std::collections::BTreeMap;

use sim::{DeviceTarget, kubelet::Pod};
use tokio::time::Instant;

use crate::rig::{GPU, MIG, Running, card, eventually, took};

/// Default times: a report every ten seconds.
const USUAL: &str = "";
/// Period of reports that is too long for the test.
const SELDOM: &str = "probe: {period: 1h}\n";

const SEVEN: &str = "nvidia.com/mig-7g.40gb";
const THREE: &str = "nvidia.com/mig-3g.20gb";
const FOUR: &str = "nvidia.com/mig-4g.20gb";
const TWO: &str = "nvidia.com/mig-2g.10gb";
const ONE: &str = "nvidia.com/mig-1g.5gb";
const NEW: &str = "nvidia.com/mig-1g.10gb";

/// Number of lists of each resource.
fn lists(running: &Running) -> BTreeMap<&'static str, usize> {
    let count = |name: &&'static str| (*name, running.kubelet.device_lists(name).len());
    [GPU, SEVEN, THREE, FOUR, TWO, ONE]
        .iter()
        .map(count)
        .collect()
}

#[rstest::rstest]
#[case::usual(USUAL)]
#[case::seldom(SELDOM)]
#[tokio::test]
async fn a_new_layout_is_served_soon_and_others_hear_nothing(#[case] config: &str) {
    let running = Running::start(MIG, config).await;
    let before = lists(&running);
    let node = &running.rig.node;
    let pod = Pod::new("default", "resident").with_container("main", [(THREE, 4), (GPU, 1)]);
    let admitted = running.kubelet.admit_pod(pod).await.unwrap();

    // Card 6, which has MIG mode and no MIG devices, gets one of a new profile.
    let begun = Instant::now();
    let made = node.add_mig(&card(6), "1g.10gb").unwrap();
    running
        .offers(&[
            (GPU, 1),
            (SEVEN, 1),
            (THREE, 4),
            (FOUR, 1),
            (TWO, 4),
            (ONE, 10),
            (NEW, 1),
        ])
        .await;
    took("a new shape is offered", begun);
    assert_eq!(running.ids(NEW).into_iter().collect::<Vec<_>>(), made);
    assert_eq!(lists(&running), before);
    assert_eq!(running.borrow(NEW, 1).await.len(), 1);

    // One MIG device of a profile goes, others of the profile stay.
    let begun = Instant::now();
    node.remove_mig(&DeviceTarget::Mig(1, 1)).unwrap();
    running
        .offers(&[
            (GPU, 1),
            (SEVEN, 1),
            (THREE, 4),
            (FOUR, 1),
            (TWO, 3),
            (ONE, 10),
            (NEW, 1),
        ])
        .await;
    took("a device goes", begun);

    // The last MIG device of a profile goes.
    let begun = Instant::now();
    node.remove_mig(&DeviceTarget::Uuid(made[0].clone()))
        .unwrap();
    running
        .offers(&[
            (GPU, 1),
            (SEVEN, 1),
            (THREE, 4),
            (FOUR, 1),
            (TWO, 3),
            (ONE, 10),
        ])
        .await;
    took("the last of a shape goes", begun);
    assert_eq!(running.kubelet.device_lists(NEW).pop().unwrap().devices, []);

    let mut expected = before;
    expected.insert(TWO, expected[TWO] + 1);
    assert_eq!(lists(&running), expected);
    let again = running.kubelet.restart_container(&admitted.pod, "main");
    assert_eq!(again.await.unwrap(), admitted.containers["main"]);
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn mig_mode_switched_on_takes_the_card_out_with_a_reason_until_it_is_cut() {
    let running = Running::start(MIG, SELDOM).await;
    let last = running.rig.uuid(7);
    running.rig.node.set_mig(&card(7), true).unwrap();
    running
        .offers(&[(SEVEN, 1), (THREE, 4), (FOUR, 1), (TWO, 4), (ONE, 10)])
        .await;
    let status = running
        .agent
        .says("the card in MIG mode", |status| {
            let all = status["aside"].as_array().unwrap();
            all.iter()
                .any(|aside| aside["device"] == *last && aside["kind"] == "no-partitions")
        })
        .await;
    let all = status["aside"].as_array().unwrap();
    let its = all.iter().find(|aside| aside["device"] == *last).unwrap();
    let reason = its["reason"].as_str().unwrap();
    assert!(reason.contains("no MIG devices"), "{reason}");

    running.rig.node.add_mig(&card(7), "7g.40gb").unwrap();
    running
        .offers(&[(SEVEN, 2), (THREE, 4), (FOUR, 1), (TWO, 4), (ONE, 10)])
        .await;
    running.rig.node.set_mig(&card(7), false).unwrap();
    running
        .offers(&[
            (GPU, 1),
            (SEVEN, 1),
            (THREE, 4),
            (FOUR, 1),
            (TWO, 4),
            (ONE, 10),
        ])
        .await;
    assert!(running.ids(GPU).contains(&last));
    assert_eq!(running.breaches(), [""; 0]);
}

/// The check of the layout is cheap, and causes no report while nothing changes.
#[tokio::test]
async fn a_layout_that_stays_makes_no_look() {
    let running = Running::start(MIG, SELDOM).await;
    let count = |name: &str| {
        let calls = running.rig.node.traced_calls().unwrap();
        calls.iter().filter(|call| call.starts_with(name)).count()
    };
    let looked = || count("nvmlDeviceGetMemoryInfo");
    let glanced = || count("nvmlDeviceGetMigMode");
    running
        .agent
        .shows("samples", |seen| {
            seen.devices.iter().all(|entry| entry.telemetry.is_some())
        })
        .await;
    let (before, glances) = (looked(), glanced());
    assert!(before > 0, "the calls are not recorded");
    // When the second check of eight cards has begun, the first has ended without a report.
    eventually("two glances", || glanced() > glances + 8).await;
    assert_eq!(looked(), before);
}
