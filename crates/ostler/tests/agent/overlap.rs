//! Upgrade of the agent: the new one registers before the old one ends.

use rstest::rstest;
use sim::kubelet::{Era, Kubelet, Pod, RegistrationOutcome};

use crate::rig::{DGX, GPU, LONG, QUICK, Rig, breaches, card, warm};

#[rstest]
#[case::up_to_1_36(Era::V1_36)]
#[case::from_1_37(Era::V1_37)]
#[tokio::test]
async fn the_second_instance_replaces_the_first(#[case] era: Era) {
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(era).await;
    let mut first = rig.agent_named("first", QUICK);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    let second = rig.agent_named("second", QUICK);
    let pid = Some(second.pid().cast_signed());
    let registered = |kubelet: &Kubelet| {
        let registrations = kubelet.registrations();
        let mut its = registrations.iter().filter(|r| r.pid == pid);
        its.any(|r| r.outcome == RegistrationOutcome::Accepted)
    };
    let wanted = "the second instance is registered";
    kubelet.wait_until(wanted, registered, LONG).await.unwrap();
    first.stop().await;

    // Up to Kubernetes 1.36 the end of the first may cost the second its registration.
    let holds = async |what: &str| {
        second
            .says(what, |s| s["resources"][0]["phase"] == "Registered")
            .await;
        kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    };
    holds("the second instance serves").await;
    // The kubelet uses the list of the second agent.
    rig.node.lose_cards(&card(3)).unwrap();
    kubelet.wait_healthy(GPU, 7, LONG).await.unwrap();
    rig.node.restore_cards(&card(3)).unwrap();
    holds("the second instance still serves").await;
    assert_eq!(breaches(&kubelet), [""; 0]);
}

#[tokio::test]
async fn a_kubelet_from_1_37_never_counts_less_during_an_upgrade() {
    let rig = Rig::new(DGX);
    let kubelet = rig.kubelet(Era::V1_37).await;
    let mut first = rig.agent_named("first", QUICK);
    kubelet.wait_healthy(GPU, 8, LONG).await.unwrap();
    let second = rig.agent_named("second", QUICK);
    let upgrade = async {
        second
            .says("registered", |s| s["resources"][0]["phase"] == "Registered")
            .await;
        first.stop().await;
        // The kubelet has seen the end of the first stream, and still uses the second agent's list.
        let pod = Pod::new("default", "guest").with_container("main", [(GPU, 8)]);
        kubelet.admit_pod(pod).await.unwrap();
        for celsius in [76, 77] {
            rig.node
                .set_sensor(&card(0), "temperature", celsius)
                .unwrap();
            warm(&second, &rig.uuid(0), celsius).await;
        }
    };
    let less = |kubelet: &Kubelet| kubelet.node_status()[GPU].allocatable < 8;
    tokio::select! {
        () = upgrade => {}
        _ = kubelet.wait_until("less", less, LONG * 2) => panic!("the kubelet counted less"),
    }
}
