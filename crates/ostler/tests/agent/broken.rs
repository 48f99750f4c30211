//! Invalid configs at a reload: the agent keeps its config, and reports each problem with its place.

use rstest::rstest;
use serde_json::Value;

use crate::rig::{DGX, GPU, QUICK, Running, card};

fn problem(status: &Value) -> Option<&str> {
    status["config"]["problem"].as_str()
}

#[rstest]
#[case::no_yaml("pools: [\n  {name: a\n", "", "not valid YAML")]
#[case::unknown_key("probe:\n  perod: 3s\n", "2:3", "`period`")]
#[case::wrong_value("probe:\n  period: soon\n", "2:11", "`soon`")]
#[case::no_resource("pools:\n  - name: a\n", "2:5", "`resource` is missing")]
#[case::no_domain("pools:\n  - {name: a, resource: gpu}\n", "2:25", "needs a domain")]
#[case::no_replicas(
    "pools:\n  - name: a\n    resource: nvidia.com/a\n    sharing: {replicas: 0}\n",
    "4:25",
    "out of range"
)]
#[case::exclude_all("exclude: [{}]\n", "1:10", "excludes every device")]
#[case::a_list("- a\n- b\n", "1:1", "expected a map")]
#[tokio::test]
async fn a_broken_file_is_told_by_line_and_column_and_changes_nothing(
    #[case] config: &str,
    #[case] place: &str,
    #[case] words: &str,
) {
    let running = Running::start(DGX, QUICK).await;
    let Running { agent, kubelet, .. } = &running;
    running.rewrite(config);
    let status = agent.says("the problem", |s| problem(s).is_some()).await;
    let text = problem(&status).unwrap();
    let at = format!("ostler.yaml:{place}");
    assert!(text.contains(&at), "{at} in {text}");
    assert!(text.contains(words), "{words} in {text}");

    // Reports, lists and allocations work as before.
    let lost = running.rig.uuid(3);
    running.rig.node.lose_cards(&card(3)).unwrap();
    running.sick(GPU, &[&lost]).await;
    assert_eq!(running.borrow(GPU, 7).await.len(), 7);
    running.rig.node.restore_cards(&card(3)).unwrap();

    running.rewrite(&format!(
        "{QUICK}pools: [{{name: all, resource: nvidia.com/all}}]\n"
    ));
    running.offers(&[("nvidia.com/all", 8)]).await;
    let status = agent.says("no problem", |s| problem(s).is_none()).await;
    assert_eq!(status["pid"], agent.pid());
    assert_eq!(kubelet.registrations().len(), 2, "one for each name");
    assert_eq!(running.breaches(), [""; 0]);
}

#[tokio::test]
async fn a_file_that_is_gone_is_told_and_changes_nothing() {
    let running = Running::start(DGX, QUICK).await;
    let file = running.rig.path("ostler.yaml");
    fs_err::remove_file(&file).unwrap();
    let Running { agent, kubelet, .. } = &running;
    let status = agent.says("the problem", |s| problem(s).is_some()).await;
    let text = problem(&status).unwrap();
    assert!(text.contains("ostler.yaml"), "{text}");
    assert_eq!(running.borrow(GPU, 8).await.len(), 8);
    running.rewrite(QUICK);
    agent.says("no problem", |s| problem(s).is_none()).await;
    assert_eq!(kubelet.registrations().len(), 1);
}
