//! Starts an agent on any state file, and asserts what must hold. Shared by the tests and the fuzz
//! target `state_file`.

use std::{collections::BTreeMap, path::PathBuf};

use health::HealthPolicy;
use inventory::{ChangeRequests, DeviceChange, Inputs, Published, SavedState};
use model::{
    Device,
    sample::{self, sample_card},
};
use probe::{BackendState, Update, supervisor::OrdersByBackend};
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
};

/// Boot id of every start.
const BOOT: &str = "this boot";
/// Length below which a file can always be written again.
const SMALL: usize = 64 << 10;
/// Size limit of the file, in bytes.
const MOST: usize = 4 << 20;
/// Limit of saved devices.
const DEVICES: usize = 256;

/// A folder with a state file, on which agents are started.
#[derive(Debug)]
pub(crate) struct Starts {
    runtime: Runtime,
    policy: HealthPolicy,
    file: PathBuf,
    _folder: TempDir,
}

// === impl Starts ===

impl Starts {
    /// Creates a folder without a file.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let file = folder.path().join("state.json");
        let mut policy = HealthPolicy {
            vendors: nvidia_rules::VENDORS,
            ..HealthPolicy::default()
        };
        policy.health.state_file = Some(file.clone());
        let runtime = Builder::new_current_thread().enable_all().build();
        Self {
            runtime: runtime.expect("a runtime can start"),
            policy,
            file,
            _folder: folder,
        }
    }

    /// Asserts what must hold of a file with these bytes. Either it is refused, or it is a state
    /// that can be written and read again. An agent starts on it in both cases, and the state that
    /// this agent saves can be written, read and started on again.
    pub(crate) fn check(&self, bytes: &[u8]) {
        if let Ok(state) = SavedState::parse_state(bytes) {
            match state.to_file_text() {
                Ok(text) => assert_same(&text, &state),
                Err(error) => assert!(bytes.len() > SMALL, "{error}"),
            }
        }
        let kept = self.start(bytes);
        let text = kept
            .to_file_text()
            .expect("what an agent keeps can be written");
        assert_same(&text, &kept);
        self.start(&text);
    }

    /// Starts an agent on a file with these bytes. Returns the state that it saves after it has
    /// seen two cards and an operator has cordoned one of them.
    fn start(&self, bytes: &[u8]) -> SavedState {
        std::fs::write(&self.file, bytes).expect("the file can be written");
        let published = Published::new();
        let mut readers = published.readers();
        let (_config, policy) = watch::channel(self.policy.clone());
        let (updates, mut reports) = mpsc::channel(1);
        let (requests, mut queue) = ChangeRequests::open_queue();
        let inputs = Inputs {
            policy,
            updates: &mut reports,
            requests: &mut queue,
            orders: OrdersByBackend::default(),
            boot_id: BOOT.to_owned(),
        };
        let cordoned = sample_card(0).id;
        let work = async {
            let seen = Update::State(Box::new(sighting()));
            updates.send(seen).await.expect("the inventory runs");
            let met = readers.snapshots.wait_for(|now| !now.devices.is_empty());
            drop(met.await.expect("the inventory runs"));
            let devices = vec![cordoned.clone()];
            let reason = "a reason".to_owned();
            requests
                .request_change(DeviceChange::Cordon { devices, reason })
                .await;
            // The inventory ends when the last sender is dropped.
            drop(updates);
        };
        self.runtime
            .block_on(async { tokio::join!(inventory::run_inventory(inputs, published), work) });
        let kept = readers.drafts.borrow().draft_state().cloned();
        let kept = kept.expect("a cordon is kept");
        let devices = &kept.health.devices;
        assert!(devices.contains_key(&cordoned) || devices.len() == DEVICES);
        kept
    }
}

/// Asserts that a text is that of a state. Facts that this version knows are the same; in others
/// the last bit of a fraction may differ.
fn assert_same(text: &[u8], state: &SavedState) {
    assert!(text.len() <= MOST);
    let again = SavedState::parse_state(text).expect("what was written can be read");
    assert_eq!(again.health, state.health);
    assert_eq!(again.releases, state.releases);
    let facts = |state: &SavedState| -> BTreeMap<_, _> {
        let facts = state.facts.clone().into_iter();
        facts
            .map(|(id, facts)| (id, serde_json::from_value::<Device>(facts).ok()))
            .collect()
    };
    assert_eq!(facts(&again), facts(state));
}

/// Returns a report of two cards and a driver.
fn sighting() -> BackendState {
    let mut sighting = probe::sample::backend_state([sample_card(0), sample_card(1)]);
    sighting.backend.driver = Some(sample::loaded_driver(1));
    sighting
}
