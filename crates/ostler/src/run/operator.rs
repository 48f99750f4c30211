//! Carries out what an operator asks for over the control socket.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use model::{Device, DeviceId, Snapshot};
use probe::{Released, protocol::CardRef, supervisor::Which};
use tokio::{sync::mpsc, time::timeout};
use web::control::{Pages, Refusal};

use crate::{
    inventory::{self, Outlets, Request, What},
    order::{self, Cordon, Done, Health, Judged, Release, Uncordon, Unsupported},
};

/// How long a release lasts if nobody says.
const USUAL: Duration = Duration::from_secs(600);
/// The longest release.
const MOST: Duration = Duration::from_secs(24 * 3600);
/// How long handles may take to be closed before somebody is told what hinders.
const CLOSED_WITHIN: Duration = Duration::from_millis(2500);

/// Who carries out what an operator asks for.
#[derive(Clone, Debug)]
pub(super) struct Operator {
    outlets: Outlets,
    requests: mpsc::Sender<Request>,
}

type Answer = Result<String, Refusal>;

// === impl Operator ===

impl Operator {
    pub(super) fn new(outlets: Outlets, requests: mpsc::Sender<Request>) -> Self {
        Self { outlets, requests }
    }

    /// Adds what can be asked for to the pages.
    pub(super) fn add_to(self, pages: Pages) -> Pages {
        let act = |me: &Self| me.clone();
        let (show, cordon, uncordon) = (act(&self), act(&self), act(&self));
        let (release, resume) = (act(&self), act(&self));
        pages
            .with(order::HEALTH, move || serde_json::to_string(&show.health()))
            .with_action(order::CORDON, move |order| cordon.clone().cordon(order))
            .with_action(order::UNCORDON, move |order| {
                uncordon.clone().uncordon(order)
            })
            .with_action(order::RELEASE, move |order| release.clone().release(order))
            .with_action(order::RESUME, move |order| resume.clone().resume(order))
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.outlets.snapshots.borrow())
    }

    fn health(&self) -> Health {
        let snapshot = self.snapshot();
        let details = Arc::clone(&self.outlets.details.borrow());
        let judged = |entry: &model::Entry| {
            let device = &entry.device;
            let tiers = details.unsupported.get(&device.id);
            let unsupported = tiers
                .into_iter()
                .flatten()
                .map(|(tier, checks)| Unsupported {
                    tier: *tier,
                    checks: checks.clone(),
                });
            Judged {
                device: device.id.clone(),
                index: device.index.clone(),
                pci: device.pci,
                verdict: entry.verdict.clone(),
                unsupported: unsupported.collect(),
            }
        };
        Health {
            devices: snapshot.devices.iter().map(judged).collect(),
            history: details.history.clone(),
        }
    }

    async fn cordon(self, order: Cordon) -> Answer {
        let snapshot = self.snapshot();
        let device = find(&snapshot, &order.device)?.id.clone();
        let devices = order::family(&snapshot, &device);
        let what = What::Cordon {
            // Its partitions are as well as the card.
            devices: vec![device.clone()],
            reason: order.reason,
        };
        inventory::ask(&self.requests, what).await;
        answer(devices, format!("{device} is cordoned"), None)
    }

    async fn uncordon(self, order: Uncordon) -> Answer {
        let snapshot = self.snapshot();
        let device = find(&snapshot, &order.device)?;
        let devices = order::family(&snapshot, &device.id);
        let what = What::Uncordon {
            devices: devices.clone(),
        };
        inventory::ask(&self.requests, what).await;
        let now = self.snapshot();
        let verdict = now.find(device.id.as_str()).map(|entry| &entry.verdict);
        let message = match verdict.map(|verdict| (verdict.state, verdict.reason())) {
            Some((state, reason)) if !reason.is_empty() => {
                format!("{} is uncordoned; it is {state}: {reason}", device.id)
            }
            _ => format!("{} is uncordoned", device.id),
        };
        answer(devices, message, None)
    }

    async fn release(self, order: Release) -> Answer {
        let (which, devices, name) = self.which(&order)?;
        let time = order.seconds.map_or(USUAL, Duration::from_secs);
        if time.is_zero() || time > MOST {
            let error = "a release lasts from one second to 24 hours";
            return Err(Refusal::wrong(error, "say for how long, e.g. 10m"));
        }
        let mut released = self.outlets.released.subscribe();
        let until = self.outlets.orders.release(which, time);
        let closed = timeout(
            CLOSED_WITHIN,
            released.wait_for(|released| is_closed(released, which, until)),
        );
        if closed.await.is_err() {
            let error = format!(
                "{name} is released, and after {CLOSED_WITHIN:?} a probe process still holds \
                 driver handles{}",
                self.hindrance()
            );
            let remedy = "it was killed and ends when the driver lets it; ask again, or see \
                          `ostler devices` for the call";
            return Err(Refusal::hindered(error, remedy));
        }
        let message = format!("{name} is released until {until:.0}: every driver handle is closed");
        answer(devices, message, Some(until))
    }

    async fn resume(self, order: Release) -> Answer {
        let (which, devices, name) = self.which(&order)?;
        if !self.outlets.orders.resume(which) {
            let released = self.outlets.released.borrow();
            let all = released.values().any(|released| released.all.is_some());
            drop(released);
            return Err(match all {
                true => Refusal::hindered("every card is released", "`ostler resume --all`"),
                false => {
                    let error = format!("{name} is not released");
                    Refusal::hindered(error, "`ostler health` shows what is")
                }
            });
        }
        answer(devices, format!("{name} is looked at again"), None)
    }

    /// What an order concerns, and how to call it.
    fn which(&self, order: &Release) -> Result<(Which, Vec<DeviceId>, String), Refusal> {
        let snapshot = self.snapshot();
        match (&order.device, order.all) {
            (None, true) => {
                let ids = snapshot.devices.iter().map(|entry| entry.device.id.clone());
                Ok((Which::All, ids.collect(), "every card".to_owned()))
            }
            (Some(text), false) => {
                let device = find(&snapshot, text)?;
                let devices = order::family(&snapshot, device.card());
                let which = Which::Card(card(device)?);
                Ok((which, devices, device.card().to_string()))
            }
            _ => {
                let error = "say one device, or all";
                Err(Refusal::wrong(error, "`ostler devices` lists them"))
            }
        }
    }

    /// Calls that do not return, for a person.
    fn hindrance(&self) -> String {
        let snapshot = self.snapshot();
        let stuck = snapshot.backends.iter().flat_map(|backend| &backend.stuck);
        let calls: Vec<String> = stuck
            .map(|call| format!("{} since {:.0}", call.call, call.since))
            .collect();
        match calls.is_empty() {
            true => String::new(),
            false => format!(" ({})", calls.join(", ")),
        }
    }
}

fn is_closed(released: &BTreeMap<String, Released>, which: Which, until: Timestamp) -> bool {
    let mut released = released.values();
    released.any(|released| {
        let release = match which {
            Which::All => released.all.as_ref(),
            Which::Card(card) => released.cards.get(&card),
        };
        release.is_some_and(|release| release.closed && release.until >= until)
    })
}

fn find<'s>(snapshot: &'s Snapshot, text: &str) -> Result<&'s Device, Refusal> {
    let found = order::find(snapshot, text).map(|entry| &entry.device);
    found.map_err(|error| Refusal::wrong(error.to_string(), "`ostler devices` lists them"))
}

/// How the probe calls the card of a device.
fn card(device: &Device) -> Result<CardRef, Refusal> {
    let index = device.index.as_deref();
    let index = index.and_then(|index| index.split(':').next()?.parse().ok());
    let card = device.pci.map(CardRef::Pci).or(index.map(CardRef::Index));
    card.ok_or_else(|| {
        let error = format!("{} has neither a PCI address nor an index", device.id);
        Refusal::hindered(error, "release all of them: `ostler release --all`")
    })
}

fn answer(devices: Vec<DeviceId>, message: String, until: Option<Timestamp>) -> Answer {
    let done = Done {
        devices,
        message,
        until,
    };
    serde_json::to_string(&done).map_err(|error| Refusal::hindered(error.to_string(), ""))
}
