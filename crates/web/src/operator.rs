//! Carries out the orders of an operator that come over the control socket.

use std::{sync::Arc, time::Duration};

use api::{Cordon, Done, Health, Judged, Refusal, Release, Uncordon, Unsupported};
use inventory::{
    Change, Readers, Requests,
    release::{self, CLOSED_WITHIN},
};
use model::{Device, DeviceId, Snapshot};
use probe::supervisor::{GivenUp, OrdersByBackend, Which};
use tokio::time::{Instant, timeout};

use crate::control::Pages;

/// Length of a release without a given length.
const USUAL: Duration = Duration::from_secs(600);
/// Longest release. A forgotten release must not keep a card out of service for ever.
const MOST: Duration = Duration::from_secs(24 * 3600);
/// Time to wait for the state file before the answer says that the order is not saved yet.
const KEPT_WITHIN: Duration = Duration::from_millis(1800);
/// Limit of a reason, in bytes: it is saved and shown as long as the cordon lasts.
const REASON: usize = 1000;

/// Carries out orders of an operator. Clones share the same channels.
#[derive(Clone, Debug)]
pub struct Operator {
    readers: Readers,
    requests: Requests,
    orders: OrdersByBackend,
}

/// Cards and devices that a release concerns.
#[derive(Debug)]
struct Target {
    /// Scope of the release in each backend.
    cards: Vec<(String, Which)>,
    /// Ids of the devices on these cards.
    devices: Vec<DeviceId>,
    /// Text for the cards in an answer.
    name: String,
}

type Answer = Result<String, Refusal>;

// === impl Operator ===

impl Operator {
    /// Builds the operator from the published state, the queue of changes, and the orders to the
    /// probes' supervisors.
    pub fn new(readers: Readers, requests: Requests, orders: OrdersByBackend) -> Self {
        Self {
            readers,
            requests,
            orders,
        }
    }

    /// Adds the page of verdicts and the four actions.
    pub fn add_to(self, pages: Pages) -> Pages {
        let act = |me: &Self| me.clone();
        let (show, cordon, uncordon) = (act(&self), act(&self), act(&self));
        let (release, resume) = (act(&self), act(&self));
        pages
            .with(api::HEALTH, move || serde_json::to_string(&show.health()))
            .with_action(api::CORDON, move |order| cordon.clone().cordon(order))
            .with_action(api::UNCORDON, move |order| uncordon.clone().uncordon(order))
            .with_action(api::RELEASE, move |order| release.clone().release(order))
            .with_action(api::RESUME, move |order| resume.clone().resume(order))
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.readers.snapshots.borrow())
    }

    fn health(&self) -> Health {
        let snapshot = self.snapshot();
        let details = Arc::clone(&self.readers.details.borrow());
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
                index: device.index,
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
        if order.reason.len() > REASON {
            let error = format!("a reason has at most {REASON} bytes");
            return Err(Refusal::wrong(error, "say it in fewer words"));
        }
        let devices = api::family(&snapshot, &device);
        let change = Change::Cordon {
            // The partitions follow the verdict of their card.
            devices: vec![device.clone()],
            reason: order.reason,
        };
        self.requests.ask(change).await;
        let done = Done::new(devices, format!("{device} is cordoned"));
        answer(done.kept(self.not_kept().await))
    }

    async fn uncordon(self, order: Uncordon) -> Answer {
        let snapshot = self.snapshot();
        let device = find(&snapshot, &order.device)?;
        let devices = api::family(&snapshot, &device.id);
        let change = Change::Uncordon {
            devices: devices.clone(),
        };
        self.requests.ask(change).await;
        let now = self.snapshot();
        let verdict = now.find(device.id.as_str()).map(|entry| &entry.verdict);
        let message = match verdict.map(|verdict| (verdict.state, verdict.reason())) {
            Some((state, reason)) if !reason.is_empty() => {
                format!("{} is uncordoned; it is {state}: {reason}", device.id)
            }
            _ => format!("{} is uncordoned", device.id),
        };
        let mut not_kept = self.not_kept().await;
        // Without a state file no cordon survives a restart, so there is nothing to warn about.
        if self.readers.keeping.borrow().file.is_none() {
            not_kept = None;
        }
        answer(Done::new(devices, message).kept(not_kept))
    }

    async fn release(self, order: Release) -> Answer {
        let Target {
            cards,
            devices,
            name,
        } = self.target(&order)?;
        let time = order.seconds.map_or(USUAL, Duration::from_secs);
        if time.is_zero() || time > MOST {
            let error = "a release lasts from one second to 24 hours";
            return Err(Refusal::wrong(error, "say for how long, e.g. 10m"));
        }
        // The reset would fail, or the operator would get a card that the agent takes back.
        let is_lent = |(backend, which): &(String, Which)| self.orders.of(backend).lends(*which);
        if cards.iter().any(is_lent) {
            let name = if order.all { "a card" } else { &name };
            let error = format!("{name} is being reset before a container starts on it");
            return Err(Refusal::hindered(error, "ask again in some seconds"));
        }
        let release =
            |(backend, which): &(String, Which)| self.orders.release(backend, *which, time);
        let given_up: Vec<GivenUp> = cards.iter().map(release).collect();
        let until = given_up.iter().map(|given| given.until).max();
        let limit = Instant::now() + CLOSED_WITHIN;
        let closed = release::closed(&self.readers, &given_up, limit);
        if let Err(calls) = closed.await {
            // A process inside a driver call dies only when the call returns, even after SIGKILL.
            // The release stays in force meanwhile.
            let error = format!(
                "{name} is released, and after {CLOSED_WITHIN:?} a probe process still holds \
                 driver handles{calls}"
            );
            let remedy = "it was killed and ends when the driver lets it; ask again, or see \
                          `ostler devices` for the call";
            return Err(Refusal::hindered(error, remedy));
        }
        let message = match until {
            Some(until) => {
                format!("{name} is released until {until:.0}: every driver handle is closed")
            }
            None => "there is no backend whose cards could be released".to_owned(),
        };
        let done = Done {
            until,
            ..Done::new(devices, message)
        };
        answer(done.kept(self.not_kept().await))
    }

    async fn resume(self, order: Release) -> Answer {
        let Target {
            cards,
            devices,
            name,
        } = self.target(&order)?;
        // Ending the release of one card would change nothing while every card is released.
        let is_covered = |(backend, which): &(String, Which)| {
            *which != Which::All && self.orders.of(backend).holds(Which::All)
        };
        let all = cards.iter().any(is_covered);
        let resume = |(backend, which): &(String, Which)| self.orders.of(backend).resume(*which);
        // Resumes all of them, also after one that was not released.
        if all || cards.iter().filter(|one| resume(one)).count() == 0 {
            return Err(match all {
                true => Refusal::hindered("every card is released", "`ostler resume --all`"),
                false => {
                    let error = format!("{name} is not released");
                    Refusal::hindered(error, "`ostler health` shows what is")
                }
            });
        }
        answer(Done::new(devices, format!("{name} is looked at again")))
    }

    /// Waits until the newest state is on the disk, for at most 1.8 seconds. Returns the reason
    /// that it would not survive a restart of the agent.
    async fn not_kept(&self) -> Option<String> {
        let mut keeping = self.readers.keeping.clone();
        let newest = || self.readers.drafts.borrow().number;
        let settled = keeping.wait_for(|keeping| keeping.is_settled(newest()));
        match timeout(KEPT_WITHIN, settled).await {
            Ok(Ok(keeping)) => keeping.not_kept(),
            _ => Some(format!("the disk has not taken it within {KEPT_WITHIN:?}")),
        }
    }

    /// Returns the cards that a release or its end concerns. A partition means its whole card:
    /// driver handles are per card.
    fn target(&self, order: &Release) -> Result<Target, Refusal> {
        let snapshot = self.snapshot();
        match (&order.device, order.all) {
            (None, true) => {
                let ids = snapshot.devices.iter().map(|entry| entry.device.id.clone());
                let backends = self.orders.running().into_iter();
                Ok(Target {
                    cards: backends.map(|name| (name, Which::All)).collect(),
                    devices: ids.collect(),
                    name: "every card".to_owned(),
                })
            }
            (Some(text), false) => {
                let device = find(&snapshot, text)?;
                let devices = api::family(&snapshot, device.card());
                Ok(Target {
                    cards: vec![(device.vendor.clone(), card(device)?)],
                    devices,
                    name: device.card().to_string(),
                })
            }
            _ => {
                let error = "say one device, or all";
                Err(Refusal::wrong(error, "`ostler devices` lists them"))
            }
        }
    }
}

/// Finds a device by the name in an order.
fn find<'s>(snapshot: &'s Snapshot, text: &str) -> Result<&'s Device, Refusal> {
    let found = api::find(snapshot, text).map(|entry| &*entry.device);
    found.map_err(|error| Refusal::wrong(error.to_string(), "`ostler devices` lists them"))
}

/// Returns the card of a device, as supervisors name it.
fn card(device: &Device) -> Result<Which, Refusal> {
    device.card_ref().map(Which::Card).ok_or_else(|| {
        let error = format!("{} has neither a PCI address nor an index", device.id);
        Refusal::hindered(error, "release all of them: `ostler release --all`")
    })
}

fn answer(done: Done) -> Answer {
    serde_json::to_string(&done).map_err(|error| Refusal::hindered(error.to_string(), ""))
}
