//! Tests of the device list strategy `auto`.

use super::*;
use crate::cdi::release::tests::NEW;

/// Writes the config of a containerd 2, which reads CDI specs. It sets no `cdi_spec_dirs`, so every
/// folder passes.
fn containerd(folder: &Path) {
    let dir = folder.join("etc/containerd");
    fs_err::create_dir_all(&dir).unwrap();
    fs_err::write(dir.join("config.toml"), "version = 3\n").unwrap();
}

/// Writes the state file of a kubelet that passes CDI names on.
fn kubelet(folder: &Path) {
    fs_err::create_dir_all(folder.join("kubelet")).unwrap();
    fs_err::write(folder.join("kubelet/dra_manager_state"), NEW).unwrap();
}

fn both(folder: &Path) {
    containerd(folder);
    kubelet(folder);
}

#[rstest]
#[case::by_the_configs_word(Supported, nothing, CdiCri, "supported")]
#[case::against_the_configs_word(Unsupported, both, Envvar, "unsupported")]
#[case::by_evidence(RuntimeSupport::Auto, both, CdiCri, "config.toml")]
#[case::no_runtime(RuntimeSupport::Auto, kubelet, Envvar, "hostRoot")]
#[case::no_kubelet(RuntimeSupport::Auto, containerd, Envvar, "cdi.runtime: supported")]
#[case::no_spec(Supported, blocked, Envvar, "File exists")]
#[tokio::test]
async fn auto_is_decided_and_never_blocks(
    #[case] runtime: RuntimeSupport,
    #[case] prepare: fn(&Path),
    #[case] list: ListStrategy,
    #[case] reason: &str,
) {
    let mut stage = Stage::start(&[Auto], runtime, prepare);
    let offer = stage.offer(&["a"]).await;
    assert_eq!(offer.healthy_count(), 1);
    let decided = |status: &CdiStageStatus| {
        let mut lists = status.lists.iter();
        lists.any(|row| row.lists.strategies == [list] && row.why.contains(reason))
    };
    let status = stage.until(decided).await;
    assert!(status.lists[0].why.contains("auto is"), "{status:?}");
    assert_eq!(stage.offers.borrow()[0].lists.strategies, [list]);
}

#[tokio::test]
async fn auto_follows_a_kubelet_that_comes_later() {
    let mut stage = Stage::start(&[Auto], RuntimeSupport::Auto, containerd);
    stage.offer(&["a"]).await;
    let root = stage.folder.path().join("kubelet");
    for (is_there, list) in [(true, CdiCri), (false, Envvar)] {
        match is_there {
            true => kubelet(stage.folder.path()),
            false => fs_err::remove_dir_all(&root).unwrap(),
        }
        let so = |offers: &Offers| offers[0].lists.strategies == [list];
        let so = stage.offers.wait_for(so);
        timeout(LONG, so).await.unwrap().unwrap();
    }
}
