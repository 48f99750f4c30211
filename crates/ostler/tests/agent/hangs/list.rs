//! List of the calls of an agent, recorded by the simulated driver.

use std::collections::BTreeMap;

use super::case::{Case, VICTIM};
use crate::rig::{QUICK, Running, eventually};

/// Calls of an agent that has started, read everything, waited for events, and reopened a replaced
/// driver library.
pub(super) struct Calls {
    /// Each call before the library was replaced, with its object.
    working: BTreeMap<String, Kind>,
    /// Calls that were made only to close the driver.
    closing: Vec<String>,
}

/// Object of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The driver as a whole.
    Driver,
    /// Other cards than the one that will hang.
    Others,
    /// The card that will hang, or a partition of it.
    Victim,
}

// === impl Calls ===

impl Calls {
    /// Records the calls of a fresh agent on a node of this profile.
    pub(super) async fn of(profile: &str) -> Self {
        let running = Running::start(profile, QUICK).await;
        running
            .agent
            .shows("samples of all devices", |snapshot| {
                let mut devices = snapshot.devices.iter();
                devices.all(|entry| entry.telemetry.is_some())
            })
            .await;
        running.rig.listening().await;
        // When the second report begins, all calls for the first have been made, its check-ups too.
        eventually("a second look", || {
            let calls = running.rig.node.traced_calls().unwrap();
            let looks = calls
                .iter()
                .filter(|call| call.starts_with("nvmlSystemGetDriver"));
            looks.count() >= 2
        })
        .await;
        let working = read(&running);
        running.rig.node.replace_library().unwrap();
        eventually("the driver is opened anew", || {
            let calls = running.rig.node.traced_calls().unwrap();
            calls
                .iter()
                .filter(|call| call.starts_with("nvmlInit"))
                .count()
                == 2
        })
        .await;
        let mut closing: Vec<String> = read(&running).into_keys().collect();
        closing.retain(|call| !working.contains_key(call));
        Self { working, closing }
    }

    /// Makes a case for each call.
    pub(super) fn cases(&self, profile: &'static str) -> Vec<Case> {
        let cases = self.working.iter().map(|(call, kind)| {
            assert_ne!(*kind, Kind::Others, "{call} is not made for card {VICTIM}");
            Case {
                profile,
                call: call.clone(),
                on_card: *kind == Kind::Victim,
            }
        });
        cases.collect()
    }

    /// Calls that are made only to close the driver.
    pub(super) fn closing(&self) -> &[String] {
        &self.closing
    }
}

fn read(running: &Running) -> BTreeMap<String, Kind> {
    let node = &running.rig.node;
    let card = running.rig.uuid(VICTIM);
    let parts = node.list_migs().unwrap();
    let is_victim = |target: &str| {
        target == card
            || parts
                .iter()
                .any(|part| part.uuid == target && part.gpu == card)
    };
    let mut found = BTreeMap::new();
    for line in node.traced_calls().unwrap() {
        let (call, target) = line.split_once(' ').unwrap();
        let kind = match target {
            "-" => Kind::Driver,
            target if is_victim(target) => Kind::Victim,
            _ => Kind::Others,
        };
        let known = found.entry(call.to_owned()).or_insert(kind);
        *known = kind.max(*known);
    }
    found
}
