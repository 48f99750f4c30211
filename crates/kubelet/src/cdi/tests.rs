//! Tests of the whole CDI stage: offers go in, files and offers come out.

mod auto;
mod kept;

use std::path::Path;

use cdi::{CdiSpec, SpecKey, StoreOutcome, WantedFile};
use config::{Backends, Handover, ListStrategy, RuntimeSupport};
use host::lane::Lane;
use jiff::Timestamp;
use model::{Device, DeviceNode, DriverFiles, Extras, NodeRole, Phase};
use nvidia_rules::{NvidiaRules, VENDORS, sample};
use pool::Offer;
use rstest::rstest;
use rules::{Rules as _, SpecRequest, SpecScope};
use tempfile::TempDir;
use tokio::{task::JoinSet, time::timeout};

use super::*;

/// Path of the kubelet's device plugin folder below its root folder.
const PLUGINS: &str = "kubelet/device-plugins";
const LONG: Duration = Duration::from_secs(60);
const FILE: &str = "k8s.device-plugin.nvidia.com-gpu.json";
const KIND: &str = "k8s.device-plugin.nvidia.com/gpu";

/// A running CDI stage in a temporary folder.
struct Stage {
    drafts: watch::Sender<Offers>,
    config: watch::Sender<Arc<Config>>,
    offers: watch::Receiver<Offers>,
    status: watch::Receiver<CdiStageStatus>,
    folder: TempDir,
    /// Token that ends the stage.
    _task: JoinSet<()>,
}

impl Stage {
    fn start(lists: &[ListStrategy], runtime: RuntimeSupport, prepare: impl Fn(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let cdi = config::Cdi {
            dir: folder.path().join("cdi"),
            runtime,
        };
        let settings = CdiSettings {
            check: Duration::from_millis(200),
            ..CdiSettings::new(
                cdi,
                VENDORS,
                folder.path().to_owned(),
                folder.path().join(PLUGINS),
            )
        };
        let empty = Arc::new(Snapshot::empty_at(Timestamp::UNIX_EPOCH));
        let (drafts, config) = (
            watch::Sender::new(Offers::default()),
            watch::Sender::new(config_of(lists)),
        );
        let (offers, status) = (watch::Sender::default(), watch::Sender::default());
        let (came, told) = (offers.subscribe(), status.subscribe());
        let wires = CdiChannels {
            snapshots: watch::Sender::new(empty).subscribe(),
            config: config.subscribe(),
            drafts: drafts.subscribe(),
            offers,
            status,
        };
        let mut task = JoinSet::new();
        task.spawn(run_stage(settings, wires, CancellationToken::new()));
        Self {
            drafts,
            config,
            offers: came,
            status: told,
            folder,
            _task: task,
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("cdi").join(FILE)
    }

    /// Sends offers of these cards, and waits until the stage has passed them on.
    async fn offer(&mut self, cards: &[&str]) -> Arc<Offer> {
        let lists = self.config.borrow().pools.pools[0].handover.lists.clone();
        let made: Offers = Arc::from([offer(&lists, cards)]);
        self.offers.borrow_and_update();
        self.drafts.send_replace(made);
        let first = |offers: &Offers| offers.iter().any(|offer| offer.units.len() == cards.len());
        let found = timeout(LONG, self.offers.wait_for(first)).await.unwrap();
        Arc::clone(&found.unwrap()[0])
    }

    /// Names in the spec on the disk.
    fn names(&self) -> Vec<String> {
        let text = fs_err::read_to_string(self.file()).unwrap_or_default();
        let spec: Option<CdiSpec> = serde_json::from_str(&text).ok();
        let names = spec.iter().flat_map(CdiSpec::qualified_names);
        names.map(|name| name.replace(KIND, "")).collect()
    }

    /// Waits until the spec has these names. For an empty list the file must be absent.
    async fn has(&self, names: &[&str]) {
        let there = async {
            while self.names() != names {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let there = timeout(LONG, there).await;
        assert!(there.is_ok(), "{names:?} expected: {:?}", self.names());
    }

    async fn until(&mut self, wanted: impl Fn(&CdiStageStatus) -> bool) -> CdiStageStatus {
        let found = timeout(LONG, self.status.wait_for(wanted)).await.unwrap();
        found.unwrap().clone()
    }
}

/// Default config with these device list strategies in every pool.
fn config_of(lists: &[ListStrategy]) -> Arc<Config> {
    let mut config = Config::default();
    for pool in &mut config.pools.pools {
        pool.handover.lists = lists.to_vec();
    }
    Arc::new(config)
}

/// Offer of these cards, on a node whose probe has reported the driver's files.
fn offer(lists: &[ListStrategy], cards: &[&str]) -> Arc<Offer> {
    let card = |id: &&str| Device {
        nodes: vec![DeviceNode {
            path: format!("/dev/{id}"),
            role: NodeRole::Own,
        }],
        ..Device::card_of("nvidia", *id, "NVIDIA A100")
    };
    let extras = Extras {
        files: Some(Arc::new(DriverFiles::default())),
        ..Extras::default()
    };
    let cards = cards.iter().map(card).collect();
    let offer = sample::offer_of_devices("nvidia.com/gpu", sample::listed_pool(lists), cards);
    Arc::new(sample::with_extras(extras, offer))
}

fn nothing(_: &Path) {}

/// Makes the folder for specs a regular file. Unlike a mode without write permission, that stops
/// root too.
fn blocked(folder: &Path) {
    fs_err::write(folder.join("cdi"), "").unwrap();
}

use ListStrategy::{Auto, CdiAnnotations, CdiCri, Envvar};
use RuntimeSupport::{Supported, Unsupported};

#[tokio::test]
async fn a_spec_is_on_the_disk_before_its_offer_is_passed_on() {
    let mut stage = Stage::start(&[CdiCri], Supported, nothing);
    let file = stage.file();
    assert!(!file.exists());
    for cards in [&["a"][..], &["a", "b"], &["b"]] {
        let offer = stage.offer(cards).await;
        let spec: CdiSpec = serde_json::from_str(&fs_err::read_to_string(&file).unwrap()).unwrap();
        for card in cards {
            assert!(spec.find_device(card).is_some(), "{card}");
        }
        assert_eq!(offer.healthy_count(), cards.len());
    }
}

#[tokio::test]
async fn a_file_that_is_removed_or_changed_comes_back() {
    let mut stage = Stage::start(&[CdiAnnotations], Supported, nothing);
    stage.offer(&["a"]).await;
    let (file, right) = (stage.file(), fs_err::read_to_string(stage.file()).unwrap());
    let again = || async {
        let back = async {
            while fs_err::read_to_string(&file).ok().as_ref() != Some(&right) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONG, back).await.unwrap();
    };
    fs_err::remove_file(&file).unwrap();
    again().await;
    fs_err::write(&file, right.replace("/dev/a", "/dev/b")).unwrap();
    again().await;
    // The same as after a reboot: /var/run is empty. In one step: the stage may be writing into the folder.
    fs_err::rename(file.parent().unwrap(), stage.folder.path().join("gone")).unwrap();
    again().await;
}

#[rstest]
#[case::cri(&[CdiCri])]
#[case::annotations(&[CdiAnnotations])]
#[case::beside_the_variable(&[Envvar, CdiCri])]
#[tokio::test]
async fn without_a_spec_units_are_unhealthy_and_say_why(#[case] lists: &[ListStrategy]) {
    let mut stage = Stage::start(lists, Supported, blocked);
    let offer = stage.offer(&["a"]).await;
    assert_eq!(offer.healthy_count(), 0);
    let reason = &offer.units[0].reason;
    assert!(
        reason.contains("k8s.device-plugin.nvidia.com/gpu=a"),
        "{reason}"
    );
    assert!(reason.contains("File exists (os error 17)"), "{reason}");
    fs_err::remove_file(stage.folder.path().join("cdi")).unwrap();
    let healed = stage
        .offers
        .wait_for(|offers| offers[0].healthy_count() == 1);
    timeout(LONG, healed).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_foreign_file_is_reported_and_stays() {
    let mut stage = Stage::start(&[CdiCri], Supported, |folder| {
        fs_err::create_dir(folder.join("cdi")).unwrap();
        fs_err::write(folder.join("cdi").join(FILE), "mine").unwrap();
    });
    let offer = stage.offer(&["a"]).await;
    assert!(
        offer.units[0].reason.contains("left alone"),
        "{:?}",
        offer.units
    );
    assert_eq!(fs_err::read_to_string(stage.file()).unwrap(), "mine");
    let status = stage.until(|status| !status.files.is_empty()).await;
    assert!(status.files[0].problem.is_some());
}

#[tokio::test]
async fn while_the_driver_is_away_the_spec_stays_as_it_is() {
    let mut stage = Stage::start(&[CdiCri], Supported, nothing);
    stage.offer(&["a"]).await;
    let right = fs_err::read_to_string(stage.file()).unwrap();
    let mut away = Offer::clone(&offer(&[CdiCri], &["a", "b"]));
    let mut snapshot = Snapshot::clone(&away.snapshot);
    for backend in &mut snapshot.backends {
        backend.phase = Phase::NoDriver;
    }
    away.snapshot = Arc::new(snapshot);
    stage.drafts.send_replace(Arc::from([Arc::new(away)]));
    let came = stage.offers.wait_for(|offers| offers[0].units.len() == 2);
    let came = Arc::clone(&timeout(LONG, came).await.unwrap().unwrap()[0]);
    assert_eq!(fs_err::read_to_string(stage.file()).unwrap(), right);
    assert!(came.units[0].healthy, "its name is on the disk");
    assert!(!came.units[1].healthy);
}

#[tokio::test]
async fn a_name_outlives_its_node_and_the_agent() {
    let mut first = Stage::start(&[CdiCri], Supported, nothing);
    first.offer(&["a", "b"]).await;
    let left = fs_err::read_to_string(first.file()).unwrap();
    let mut second = Stage::start(&[CdiCri], Supported, |folder| {
        fs_err::create_dir(folder.join("cdi")).unwrap();
        fs_err::write(folder.join("cdi").join(FILE), &left).unwrap();
    });
    let mut blind = Offer::clone(&offer(&[CdiCri], &["a", "b"]));
    let mut snapshot = Snapshot::clone(&blind.snapshot);
    snapshot.devices[0].device_mut().nodes.clear();
    blind.snapshot = Arc::new(snapshot);
    second.drafts.send_replace(Arc::from([Arc::new(blind)]));
    let came = second.offers.wait_for(|offers| !offers.is_empty());
    timeout(LONG, came).await.unwrap().unwrap();
    let text = fs_err::read_to_string(second.file()).unwrap();
    let (left, spec): (CdiSpec, CdiSpec) = (
        serde_json::from_str(&left).unwrap(),
        serde_json::from_str(&text).unwrap(),
    );
    assert_eq!(spec.find_device("a"), left.find_device("a"));
}

#[tokio::test]
async fn pools_that_change_before_their_offers_take_no_name_away() {
    let mut stage = Stage::start(&[CdiCri], Supported, nothing);
    stage.offer(&["a"]).await;
    stage.offers.borrow_and_update();
    stage.config.send_replace(config_of(&[Envvar]));
    timeout(LONG, stage.offers.changed())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stage.offers.borrow()[0].healthy_count(), 1);
    assert!(stage.file().exists());
}

/// Starts a job in a lane that hangs until the returned sender is dropped.
async fn hang_lane<T: Send + 'static>(
    lane: &mut Lane<T>,
    result: impl FnOnce() -> T + Send + 'static,
) -> std::sync::mpsc::Sender<()> {
    let (end, hung) = std::sync::mpsc::channel::<()>();
    let job = move || {
        let _ = hung.recv();
        result()
    };
    let late = lane.run_job(Duration::ZERO, job).await;
    assert!(matches!(late, Err(host::lane::Error::Late)));
    end
}

#[rstest]
#[case::in_a_look(true)]
#[case::in_a_write(false)]
#[tokio::test]
async fn a_disk_that_hangs_later_takes_no_name_away(#[case] in_a_look: bool) {
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
    let request = SpecRequest {
        snapshot: &offer(&[CdiCri], &["a"]).snapshot,
        settings: &Backends::default(),
        scope: SpecScope::Everything(&Handover::default()),
        previous: &[],
    };
    let spec = CdiSpec::from(NvidiaRules.make_specs(&request).unwrap().specs.remove(0));
    let wanted = vec![(SpecKey::of_kind(KIND), WantedFile::Spec(Arc::new(spec)))];
    let mut memory = SpecKeeper::default();
    let good = memory.settle_on_disk(&settings, wanted.clone(), true).await;
    assert!(!good.names.is_empty() && !good.late);
    let end = match in_a_look {
        true => hang_lane(&mut memory.looking, || panic!("nobody waits for it")).await,
        false => hang_lane(&mut memory.settling, StoreOutcome::default).await,
    };
    for _ in 0..2 {
        let late = memory.settle_on_disk(&settings, wanted.clone(), true).await;
        assert_eq!(late.names, good.names);
        let problem = late.find_problem(KIND).unwrap();
        assert!(problem.contains("does not answer"), "{problem}");
    }
    drop(end);
}

#[tokio::test]
async fn after_a_failure_the_folder_is_not_listened_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = WatchedFolder::new(dir.path(), WatchMode::Inotify, LONG);
    let soon = Duration::from_millis(200);
    let due = Instant::now() + LONG;
    // The first event is the new watch itself.
    while timeout(soon, wait_for_check(&mut folder, true, due))
        .await
        .is_ok()
    {}
    fs_err::write(dir.path().join(".draft"), "").unwrap();
    fs_err::remove_file(dir.path().join(".draft")).unwrap();
    assert!(
        timeout(soon, wait_for_check(&mut folder, false, due))
            .await
            .is_err()
    );
    let early = timeout(LONG / 2, wait_for_check(&mut folder, true, due)).await;
    assert!(early.is_ok());
}
