//! Cards of a made-up vendor beside NVIDIA's in every crate: config, pool, place, grant, health,
//! CDI and reset. None of these crates knows the vendor.

use std::{sync::Arc, time::Duration};

use acme_rules::{ACME, Acme, CALIBRATION};
use config::{AcmeHalves, Config};
use health::{DeviceRecord, HealthPolicy, Now};
use jiff::Timestamp;
use kubelet::cdi::{CdiChannels, CdiSettings, CdiStageStatus};
use model::{
    Backend, CauseKind, Companions, Device, DeviceNode, Entry, Extras, Kind, Link, NodeRole, Phase,
    Snapshot, State,
};
use pool::{NodePlan, NotOfferedKind, NoteKind, Offer, Offers};
use rules::Vendors;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// List of vendors, the only line that the product needs.
const VENDORS: Vendors = Vendors::new(&[&nvidia_rules::NvidiaRules, &Acme]);

const CONFIG: &str = "
backends: {acme: {trap: reset}}
handover: {lists: [cdi-cri, envvar]}
pools:
  - {name: acme, select: {vendor: acme, kind: card}, resource: acme.example/npu}
  - {name: halves, select: {vendor: acme, kind: partition}, resource: 'acme.example/{profile}'}
  - {name: gpu, select: {vendor: nvidia}, resource: nvidia.com/gpu}
";

fn config(text: &str) -> Config {
    config::parse_native("ostler.yaml", text).unwrap().config
}

/// Card `n` of the vendor, linked by a ring to the card `n + 2`.
fn card(n: u32) -> Device {
    let peer = (n + 2) % 4;
    Device {
        index: n.to_string().parse().ok(),
        nodes: vec![DeviceNode {
            path: format!("/dev/acme{n}"),
            role: NodeRole::Own,
        }],
        links: vec![Link {
            peer: format!("acme-{peer}").into(),
            ancestor: None,
            lanes: 1,
            switched: false,
        }],
        ..Device::card_of("acme", format!("acme-{n}"), "Acme NPU 9")
    }
}

/// Card `n`, cut in halves.
fn cut(n: u32) -> Device {
    Device {
        kind: Kind::Card { partitioned: true },
        ..card(n)
    }
}

fn half(n: u32, part: u32) -> Device {
    Device {
        id: format!("acme-{n}-{part}").into(),
        kind: Kind::Partition {
            parent: format!("acme-{n}").into(),
            profile: Some("half".to_owned()),
        },
        index: format!("{n}:{part}").parse().ok(),
        ..card(n)
    }
}

fn snapshot(devices: Vec<Device>, calibration: &[&str]) -> Arc<Snapshot> {
    let backend = |name: &str, companions| Backend {
        name: name.to_owned(),
        phase: Phase::Running,
        message: String::new(),
        driver: None,
        stuck: Vec::new(),
        unreadable: Vec::new(),
        extras: Extras {
            companions,
            ..Extras::default()
        },
    };
    let calibration = Companions::default().with_class(CALIBRATION, calibration);
    let mut devices: Vec<Entry> = devices.into_iter().map(Entry::from).collect();
    devices.sort_by(|a, b| a.device.id.cmp(&b.device.id));
    Arc::new(Snapshot {
        devices,
        backends: vec![
            backend("nvidia", Companions::default()),
            backend("acme", calibration),
        ],
        ..Snapshot::empty_at(Timestamp::UNIX_EPOCH)
    })
}

/// Four cards of the vendor and one of NVIDIA's.
fn node() -> Arc<Snapshot> {
    let gpu = Device::card_of("nvidia", "GPU-0", "NVIDIA L4");
    let devices = (0..4).map(card).chain([gpu]).collect();
    snapshot(devices, &["/dev/acme-cal"])
}

fn plan(text: &str, snapshot: &Arc<Snapshot>) -> NodePlan {
    pool::plan_offers(&config(text), VENDORS, snapshot)
}

fn offer<'a>(plan: &'a NodePlan, resource: &str) -> &'a Arc<Offer> {
    let mut offers = plan.offers.iter();
    let offer = offers.find(|offer| offer.resource.as_str() == resource);
    offer.unwrap_or_else(|| panic!("no {resource} in {:?}", plan.aside))
}

#[test]
fn the_config_has_its_section_with_places_and_remedies() {
    let halves = config("backends: {acme: {halves: hidden}}")
        .backends
        .acme
        .halves;
    assert_eq!(halves, AcmeHalves::Hidden);
    let error = config::parse_native("ostler.yaml", "backends:\n  acme: {halves: lost, traps: 1}");
    let error = error.unwrap_err().to_string();
    for part in [
        "ostler.yaml:2:18: backends.acme.halves: `lost` is not one of offered, hidden",
        "ostler.yaml:2:24: backends.acme.traps: unknown key",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let explained = config::parse_native("ostler.yaml", "backends: {acme: {trap: drain}}").unwrap();
    let again = config(&explained.to_yaml());
    assert_eq!(again, explained.config);
}

#[test]
fn the_pool_divides_by_its_strategy_and_waits_for_its_companion() {
    let devices = || vec![card(0), cut(1), half(1, 0), half(1, 1), cut(2)];
    let all = plan(CONFIG, &snapshot(devices(), &["/dev/acme-cal"]));
    assert_eq!(offer(&all, "acme.example/npu").healthy_count(), 1);
    assert_eq!(offer(&all, "acme.example/half").healthy_count(), 2);
    let kinds: Vec<NotOfferedKind> = all.aside.iter().map(|aside| aside.kind).collect();
    assert_eq!(
        kinds,
        [NotOfferedKind::Partitioned, NotOfferedKind::NoPartitions]
    );
    let reasons: Vec<&str> = all.aside.iter().map(|aside| &*aside.reason).collect();
    assert_eq!(
        reasons,
        [
            "it is in slice mode and offered as its slices: 2",
            "it is in slice mode and has no slices: create some, or switch slice mode off",
        ]
    );
    let hidden = CONFIG.replace("trap: reset", "halves: hidden");
    let hidden = plan(&hidden, &snapshot(devices(), &["/dev/acme-cal"]));
    let unfit = |aside: &&pool::DeviceNotOffered| aside.kind == NotOfferedKind::Strategy;
    assert_eq!(hidden.aside.iter().filter(unfit).count(), 2);
    let waiting = plan(CONFIG, &snapshot(vec![card(0)], &[]));
    assert_eq!(offer(&waiting, "acme.example/npu").healthy_count(), 0);
    let note = waiting
        .notes
        .iter()
        .find(|note| note.kind == NoteKind::Waiting);
    assert!(note.unwrap().text.contains("acme-cal"));
}

#[test]
fn it_takes_no_part_in_what_is_nvidias() {
    let shared = |method: &str| {
        let sharing = format!("sharing: {{method: {method}, replicas: 2}}, ");
        let root = "handover: {nvidia: {mpsRoot: /mps}}, ";
        CONFIG.replace("{name: acme, ", &format!("{{name: acme, {root}{sharing}"))
    };
    let by_name = plan(&shared("mps"), &node());
    let refused = |aside: &&pool::DeviceNotOffered| aside.kind == NotOfferedKind::Sharing;
    assert_eq!(by_name.aside.iter().filter(refused).count(), 4);
    let auto = plan(&shared("auto"), &node());
    assert_eq!(offer(&auto, "acme.example/npu").units.len(), 8);
    let method = offer(&auto, "acme.example/npu").pool.sharing.method;
    assert_eq!(method, config::Method::TimeSlicing);
}

#[test]
fn its_wait_does_not_hide_what_the_config_requires_of_another_vendor() {
    const ACME_FIRST: Vendors = Vendors::new(&[&Acme, &nvidia_rules::NvidiaRules]);
    let text = CONFIG.replace("{acme:", "{nvidia: {imexRequired: true}, acme:");
    let text = text.replace("handover: {", "handover: {nvidia: {imex: 0}, ");
    let bare = snapshot(vec![card(0)], &[]);
    for vendors in [VENDORS, ACME_FIRST] {
        let missing =
            pool::missing_requirement(&config(&text), vendors.find_rules("nvidia"), &bare);
        assert!(missing.unwrap().starts_with("IMEX channel 0 is required"));
    }
}

#[test]
fn placement_follows_its_links_by_its_own_table() {
    let plan = plan(CONFIG, &node());
    let offer = offer(&plan, "acme.example/npu");
    let ids: Vec<String> = (0..4).map(|n| format!("acme-{n}")).collect();
    let chosen = place::prefer(offer, &ids, &ids[1..2], 2).unwrap();
    let chosen: Vec<&str> = chosen.iter().map(|id| id.as_str()).collect();
    assert_eq!(chosen, ["acme-1", "acme-3"]);
    let topology = place::CardTopology::from_snapshot(&offer.snapshot);
    let at = |id: &str| {
        let mut cards = topology.cards.iter();
        cards
            .position(|card| card.device.id.as_str() == id)
            .unwrap()
    };
    let worth = topology.score_connection(at("acme-1"), at("acme-3"), VENDORS);
    assert_eq!(worth, ACME.worth.lane);
}

#[test]
fn a_container_gets_its_variables_nodes_and_names() {
    let plan = plan(CONFIG, &node());
    let ids = ["acme-2".to_owned(), "acme-0".to_owned()];
    let npu = grant::grant_ids(offer(&plan, "acme.example/npu"), &ids).unwrap();
    assert_eq!(npu.edits.env["ACME_DEVICES"], "acme-2,acme-0");
    let nodes: Vec<&str> = npu
        .edits
        .device_nodes
        .iter()
        .map(|node| node.outside())
        .collect();
    assert_eq!(nodes, ["/dev/acme-cal", "/dev/acme0", "/dev/acme2"]);
    assert_eq!(
        npu.cdi_devices,
        ["acme.example/npu=acme-2", "acme.example/npu=acme-0"]
    );
    let gpu = grant::grant_ids(offer(&plan, "nvidia.com/gpu"), &["GPU-0".to_owned()]).unwrap();
    assert_eq!(gpu.edits.env["NVIDIA_VISIBLE_DEVICES"], "GPU-0");
    assert!(!gpu.edits.env.contains_key("ACME_DEVICES"));
}

#[test]
fn its_event_takes_a_card_out_until_a_reset_as_its_settings_say() {
    let now = Now {
        wall: Timestamp::UNIX_EPOCH,
        uptime: Duration::ZERO,
    };
    let verdict = |text: &str, code: &str| {
        let policy = HealthPolicy::from_config(&config(text), VENDORS);
        let mut record = DeviceRecord::default();
        record.happen(code.parse().unwrap(), &policy, now);
        record.verdict(&policy, now)
    };
    let out = verdict(CONFIG, "trap:7");
    assert_eq!(out.state, State::Unhealthy);
    assert_eq!(out.causes[0].kind, CauseKind::Event);
    assert_eq!(out.causes[0].evidence, "trap 7");
    assert!(out.causes[0].ends_when.contains("reset"));
    let ignored = verdict("backends: {acme: {trap: ignore}}", "trap:7");
    assert_eq!(ignored.state, State::Healthy);
    assert_eq!(verdict(CONFIG, "xid:79").state, State::Unhealthy);
    let command = VENDORS.find_rules("acme").reset_command(&[&card(3)]);
    assert_eq!(command.unwrap(), ["acmectl", "reset", "acme-3"]);
}

/// Runs the CDI stage with this config until it has published offers. Returns the offers, the
/// stage's status and the folder with the specs.
async fn first_round(text: &str) -> (Offers, CdiStageStatus, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(text);
    config.cdi.dir = folder.path().join("cdi");
    let plan = pool::plan_offers(&config, VENDORS, &node());
    let settings = CdiSettings::new(
        config.cdi.clone(),
        VENDORS,
        folder.path().to_owned(),
        folder.path().join("kubelet/device-plugins"),
    );
    let (offers, status) = (
        watch::Sender::new(Offers::default()),
        watch::Sender::default(),
    );
    let (mut came, mut told) = (offers.subscribe(), status.subscribe());
    let (snapshots, drafts) = (watch::Sender::new(node()), watch::Sender::new(plan.offers));
    let config = watch::Sender::new(Arc::new(config));
    let wires = CdiChannels {
        snapshots: snapshots.subscribe(),
        config: config.subscribe(),
        drafts: drafts.subscribe(),
        offers,
        status,
    };
    let cancel = CancellationToken::new();
    let stage = kubelet::cdi::run_stage(settings, wires, cancel.clone());
    let look = async {
        let passed = came.wait_for(|offers| !offers.is_empty()).await;
        let passed = passed.unwrap().clone();
        let said = told
            .wait_for(|status: &CdiStageStatus| !status.lists.is_empty())
            .await;
        let said = said.unwrap().clone();
        cancel.cancel();
        (passed, said)
    };
    let ((), (passed, said)) = tokio::join!(stage, look);
    (passed, said, folder)
}

#[tokio::test]
async fn its_spec_is_on_the_disk_before_the_kubelet_hears_of_a_name() {
    let (passed, _, folder) = first_round(CONFIG).await;
    let npu = passed
        .iter()
        .find(|o| o.resource.as_str() == "acme.example/npu");
    assert_eq!(npu.unwrap().healthy_count(), 4);
    let file = folder.path().join("cdi/acme.example-npu.json");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("\"/dev/acme3\""), "{text}");
}

#[tokio::test]
async fn its_pools_ask_for_no_specs_of_another_vendor() {
    let (_, both, _) = first_round(CONFIG).await;
    let missed = |status: &CdiStageStatus| {
        status
            .notes
            .iter()
            .any(|note| note.contains("driver's files"))
    };
    assert!(missed(&both), "{:?}", both.notes);
    let gpu = "{name: gpu, handover: {lists: [envvar]},";
    let (_, own, folder) = first_round(&CONFIG.replace("{name: gpu,", gpu)).await;
    assert!(!missed(&own), "{:?}", own.notes);
    let files = std::fs::read_dir(folder.path().join("cdi")).unwrap();
    assert_eq!(files.count(), 1);
}
