//! What `auto` comes to.

use super::*;

/// The config of a containerd that takes names from every folder.
fn containerd(folder: &Path) {
    let dir = folder.join("etc/containerd");
    fs_err::create_dir_all(&dir).unwrap();
    fs_err::write(dir.join("config.toml"), "version = 3\n").unwrap();
}

const NEW: Option<&str> = Some("grpc-go/1.79.3");

#[rstest]
#[case::by_the_configs_word(Supported, nothing, None, CdiCri, "supported")]
#[case::against_the_configs_word(Unsupported, containerd, NEW, Envvar, "unsupported")]
#[case::by_evidence(RuntimeSupport::Auto, containerd, NEW, CdiCri, "config.toml")]
#[case::no_runtime(RuntimeSupport::Auto, nothing, NEW, Envvar, "hostRoot")]
#[case::no_kubelet(RuntimeSupport::Auto, containerd, None, Envvar, "called yet")]
#[case::old_kubelet(
    RuntimeSupport::Auto,
    containerd,
    Some("grpc-go/1.56.3"),
    Envvar,
    "1.56"
)]
#[case::strange_kubelet(RuntimeSupport::Auto, containerd, Some("tonic/0.14"), Envvar, "tonic")]
#[case::no_spec(Supported, blocked, NEW, Envvar, "File exists")]
#[tokio::test]
async fn auto_is_decided_and_never_blocks(
    #[case] runtime: RuntimeSupport,
    #[case] prepare: fn(&Path),
    #[case] caller: Option<&str>,
    #[case] list: ListStrategy,
    #[case] reason: &str,
) {
    let mut stage = Stage::start(&[Auto], runtime, prepare);
    stage.caller.send_replace(caller.map(str::to_owned));
    let offer = stage.offer(&["a"]).await;
    assert_eq!(offer.healthy(), 1);
    let decided = |status: &Status| {
        let mut lists = status.lists.iter();
        lists.any(|row| row.lists.strategies == [list] && row.why.contains(reason))
    };
    let status = stage.until(decided).await;
    assert!(status.lists[0].why.contains("auto is"), "{status:?}");
    assert_eq!(stage.offers.borrow()[0].lists.strategies, [list]);
}

#[tokio::test]
async fn auto_follows_a_kubelet_that_is_replaced() {
    let mut stage = Stage::start(&[Auto], RuntimeSupport::Auto, containerd);
    stage.offer(&["a"]).await;
    for (agent, list) in [("1.79.3", CdiCri), ("1.54.0", Envvar), ("1.65.0", CdiCri)] {
        stage.caller.send_replace(Some(format!("grpc-go/{agent}")));
        let so = |offers: &Offers| offers[0].lists.strategies == [list];
        let so = stage.offers.wait_for(so);
        timeout(LONG, so).await.unwrap().unwrap();
    }
}
