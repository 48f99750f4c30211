//! Tests of names that stay because the kubelet's checkpoint has containers with them.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use config::{IdStrategy, Pool};
use kubelet_api::deviceplugin::{CdiDevice, ContainerAllocateResponse};
use prost::Message as _;

use super::*;

/// Writes a checkpoint with one container that has these CDI names.
fn record(folder: &Path, names: &[&str], annotated: &[&str]) {
    let devices = names.iter().map(|name| CdiDevice {
        name: format!("{KIND}={name}"),
    });
    let list: Vec<String> = annotated.iter().map(|n| format!("{KIND}={n}")).collect();
    let given = ContainerAllocateResponse {
        cdi_devices: devices.collect(),
        annotations: [("cdi.k8s.io/x".to_owned(), list.join(","))].into(),
        ..ContainerAllocateResponse::default()
    };
    let given = BASE64_STANDARD.encode(given.encode_to_vec());
    let text = format!(
        r#"{{"Data":{{"PodDeviceEntries":[{{"PodUID":"p","ContainerName":"main","ResourceName":
        "nvidia.com/gpu","DeviceIDs":{{"-1":["a"]}},"AllocResp":"{given}"}}],
        "RegisteredDevices":{{"nvidia.com/gpu":["a"]}}}},"Checksum":1}}"#
    );
    let folder = folder.join(PLUGINS);
    fs_err::create_dir_all(&folder).unwrap();
    fs_err::write(folder.join("kubelet_internal_checkpoint"), text).unwrap();
}

/// Writes a checkpoint with no CDI names.
fn idle(folder: &Path) {
    record(folder, &[], &[]);
}

#[tokio::test]
async fn a_spec_goes_when_no_pool_asks_for_it_and_no_container_holds_it() {
    let mut stage = Stage::start(&[CdiCri], Supported, idle);
    stage.offer(&["a"]).await;
    assert!(stage.file().exists());
    stage.config.send_replace(config_of(&[Envvar]));
    let offer = stage.offer(&["a", "b"]).await;
    assert_eq!(offer.lists.strategies, [Envvar]);
    stage.until(|status| status.files.is_empty()).await;
    assert!(!stage.file().exists());
}

#[rstest]
#[case::by_names(&["a"], &[])]
#[case::by_annotations(&[], &["b", "a"])]
#[tokio::test]
async fn what_containers_were_started_with_stays_and_stays_right(
    #[case] names: &[&str],
    #[case] annotated: &[&str],
) {
    let mut stage = Stage::start(&[CdiCri], Supported, |folder| {
        record(folder, names, annotated);
    });
    stage.offer(&["a", "b"]).await;
    stage.config.send_replace(config_of(&[Envvar]));
    stage.offer(&["a", "b"]).await;
    // Longer than names without a container stay.
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.has(&["=a", "=all", "=b"]).await;
    assert_eq!(stage.status.borrow().containers, 1);
    // The same as after a reboot, with one more card. In one step: the stage may be writing into the folder.
    let gone = stage.folder.path().join("gone");
    fs_err::rename(stage.file().parent().unwrap(), gone).unwrap();
    stage.offer(&["a", "b", "c"]).await;
    stage.has(&["=a", "=all", "=b", "=c"]).await;
    // The container ends.
    idle(stage.folder.path());
    stage.has(&[]).await;
}

#[tokio::test]
async fn without_the_kubelets_record_every_name_stays() {
    let mut stage = Stage::start(&[CdiCri], Supported, nothing);
    stage.offer(&["a"]).await;
    stage.config.send_replace(config_of(&[Envvar]));
    stage.offer(&["a", "b"]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.has(&["=a", "=all", "=b"]).await;
    let folder = stage.folder.path().join(PLUGINS);
    fs_err::create_dir_all(&folder).unwrap();
    fs_err::write(folder.join("kubelet_internal_checkpoint"), "{}").unwrap();
    let noted =
        |status: &CdiStageStatus| status.notes.iter().any(|note| note.contains("checkpoint"));
    stage.until(noted).await;
    stage.has(&["=a", "=all", "=b"]).await;
    idle(stage.folder.path());
    stage.has(&[]).await;
}

#[tokio::test]
async fn names_of_the_other_kind_stay_for_those_who_have_them() {
    let mut stage = Stage::start(&[CdiCri], Supported, |folder| record(folder, &["a"], &[]));
    let by_index = |cards: &[&str]| {
        let mut offer = Offer::clone(&offer(&[CdiCri], cards));
        let mut pool = Pool::clone(&offer.pool);
        pool.handover.ids = IdStrategy::Index;
        offer.pool = Arc::new(pool);
        let mut snapshot = Snapshot::clone(&offer.snapshot);
        for (index, entry) in snapshot.devices.iter_mut().enumerate() {
            entry.device_mut().index = index.to_string().parse().ok();
        }
        offer.snapshot = Arc::new(snapshot);
        Arc::from([Arc::new(offer)])
    };
    let mut new = Arc::unwrap_or_clone(config_of(&[CdiCri]));
    for pool in &mut new.pools.pools {
        pool.handover.ids = IdStrategy::Index;
    }
    stage.offer(&["a"]).await;
    stage.config.send_replace(Arc::new(new));
    stage.drafts.send_replace(by_index(&["a", "b"]));
    stage.has(&["=0", "=1", "=a", "=all", "=b"]).await;
    idle(stage.folder.path());
    stage.has(&["=0", "=1", "=all"]).await;
    record(stage.folder.path(), &["1"], &["a"]);
    stage.has(&["=0", "=1", "=a", "=all", "=b"]).await;
}

/// Runs a round in which the disk does not answer, and one for new offers when it answers again.
async fn hang(memory: &mut SpecKeeper, settings: &CdiSettings, meanwhile: impl FnOnce()) {
    let round = RoundInput {
        draft: Offers::default(),
        snapshot: Arc::clone(&offer(&[Envvar], &["a"]).snapshot),
        config: Arc::default(),
    };
    let end = hang_lane(&mut memory.settling, StoreOutcome::default).await;
    let (_, status) = memory.round(settings, &round, true).await;
    assert!(status.files[0].problem.is_some(), "{status:?}");
    drop(end);
    memory.settling.resume_wait(LONG).await.unwrap().unwrap();
    meanwhile();
    memory.round(settings, &round, false).await;
}

#[tokio::test]
async fn what_containers_hold_stays_while_the_disk_does_not_tell_who_holds_what() {
    let folder = tempfile::tempdir().unwrap();
    let cdi = config::Cdi {
        dir: folder.path().to_owned(),
        ..config::Config::default().cdi
    };
    let settings = CdiSettings::new(
        cdi,
        VENDORS,
        folder.path().to_owned(),
        folder.path().join(PLUGINS),
    );
    let made = offer(&[CdiCri], &["a"]);
    let round = RoundInput {
        snapshot: Arc::clone(&made.snapshot),
        draft: Arc::from([Arc::clone(&made)]),
        config: Arc::default(),
    };
    idle(folder.path());
    let mut memory = SpecKeeper::default();
    memory.set_asked([&*made.pool].into_iter(), Duration::ZERO);
    memory.round(&settings, &round, true).await;
    let file = folder.path().join(FILE);
    assert!(file.exists());
    let left = offer(&[Envvar], &["a"]);
    for mut memory in [SpecKeeper::default(), memory] {
        memory.set_asked([&*left.pool].into_iter(), Duration::ZERO);
        hang(&mut memory, &settings, || {
            record(folder.path(), &["a"], &[])
        })
        .await;
        assert!(file.exists());
    }
}
