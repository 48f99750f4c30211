//! Carries out the orders of an operator that come over the control socket.

use std::{sync::Arc, time::Duration};

use api::{
    CordonOrder, DeviceHealth, HealthPage, OrderDone, OrderRefusal, ReleaseOrder, UncordonOrder,
    UnsupportedChecks,
};
use inventory::{
    ChangeRequests, DeviceChange, Readers,
    release::{self, CLOSED_WITHIN},
};
use model::{Device, DeviceId, Snapshot};
use probe::supervisor::{BackendRelease, OrdersByBackend, ReleaseScope};
use tokio::time::{Instant, timeout};

use crate::control::ControlPages;

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
    requests: ChangeRequests,
    orders: OrdersByBackend,
}

/// Cards and devices that a release concerns.
#[derive(Debug)]
struct ReleaseTarget {
    /// Scope of the release in each backend.
    cards: Vec<(String, ReleaseScope)>,
    /// Ids of the devices on these cards.
    devices: Vec<DeviceId>,
    /// Text for the cards in an answer.
    name: String,
}

type OrderResult = Result<String, OrderRefusal>;

// === impl Operator ===

impl Operator {
    /// Builds the operator from the published state, the queue of changes, and the orders to the
    /// probes' supervisors.
    pub fn new(readers: Readers, requests: ChangeRequests, orders: OrdersByBackend) -> Self {
        Self {
            readers,
            requests,
            orders,
        }
    }

    /// Adds the page of verdicts and the four actions.
    pub fn add_to(self, pages: ControlPages) -> ControlPages {
        let act = |me: &Self| me.clone();
        let (show, cordon, uncordon) = (act(&self), act(&self), act(&self));
        let (release, resume) = (act(&self), act(&self));
        pages
            .with_page(api::HEALTH, move || serde_json::to_string(&show.health()))
            .with_action(api::CORDON, move |order| {
                cordon.clone().cordon_device(order)
            })
            .with_action(api::UNCORDON, move |order| {
                uncordon.clone().uncordon_device(order)
            })
            .with_action(api::RELEASE, move |order| {
                release.clone().release_cards(order)
            })
            .with_action(api::RESUME, move |order| resume.clone().resume_cards(order))
    }

    fn newest_snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.readers.snapshots.borrow())
    }

    fn health(&self) -> HealthPage {
        let snapshot = self.newest_snapshot();
        let details = Arc::clone(&self.readers.details.borrow());
        let judged = |entry: &model::Entry| {
            let device = &entry.device;
            let tiers = details.unsupported_by_device.get(&device.id);
            let unsupported = tiers
                .into_iter()
                .flatten()
                .map(|(tier, checks)| UnsupportedChecks {
                    tier: *tier,
                    checks: checks.clone(),
                });
            DeviceHealth {
                device: device.id.clone(),
                index: device.index,
                pci: device.pci,
                verdict: entry.verdict.clone(),
                unsupported: unsupported.collect(),
            }
        };
        HealthPage {
            devices: snapshot.devices.iter().map(judged).collect(),
            history: details.history.clone(),
        }
    }

    async fn cordon_device(self, order: CordonOrder) -> OrderResult {
        let snapshot = self.newest_snapshot();
        let device = find_named(&snapshot, &order.device)?.id.clone();
        if order.reason.len() > REASON {
            let error = format!("a reason has at most {REASON} bytes");
            return Err(OrderRefusal::bad_request(error, "say it in fewer words"));
        }
        let devices = api::family(&snapshot, &device);
        let change = DeviceChange::Cordon {
            // The partitions follow the verdict of their card.
            devices: vec![device.clone()],
            reason: order.reason,
        };
        self.requests.request_change(change).await;
        let done = OrderDone::new(devices, format!("{device} is cordoned"));
        to_answer(done.kept(self.not_kept().await))
    }

    async fn uncordon_device(self, order: UncordonOrder) -> OrderResult {
        let snapshot = self.newest_snapshot();
        let device = find_named(&snapshot, &order.device)?;
        let devices = api::family(&snapshot, &device.id);
        let change = DeviceChange::Uncordon {
            devices: devices.clone(),
        };
        self.requests.request_change(change).await;
        let now = self.newest_snapshot();
        let verdict = now
            .find_entry(device.id.as_str())
            .map(|entry| &entry.verdict);
        let message = match verdict.map(|verdict| (verdict.state, verdict.join_evidence())) {
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
        to_answer(OrderDone::new(devices, message).kept(not_kept))
    }

    async fn release_cards(self, order: ReleaseOrder) -> OrderResult {
        let ReleaseTarget {
            cards,
            devices,
            name,
        } = self.release_target(&order)?;
        let time = order.seconds.map_or(USUAL, Duration::from_secs);
        if time.is_zero() || time > MOST {
            let error = "a release lasts from one second to 24 hours";
            return Err(OrderRefusal::bad_request(
                error,
                "say for how long, e.g. 10m",
            ));
        }
        // The reset would fail, or the operator would get a card that the agent takes back.
        let is_lent = |(backend, which): &(String, ReleaseScope)| {
            self.orders.orders_of(backend).lends(*which)
        };
        if cards.iter().any(is_lent) {
            let name = if order.all { "a card" } else { &name };
            let error = format!("{name} is being reset before a container starts on it");
            return Err(OrderRefusal::hindered(error, "ask again in some seconds"));
        }
        let release = |(backend, which): &(String, ReleaseScope)| {
            self.orders.release_cards(backend, *which, time)
        };
        let given_up: Vec<BackendRelease> = cards.iter().map(release).collect();
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
            return Err(OrderRefusal::hindered(error, remedy));
        }
        let message = match until {
            Some(until) => {
                format!("{name} is released until {until:.0}: every driver handle is closed")
            }
            None => "there is no backend whose cards could be released".to_owned(),
        };
        let done = OrderDone {
            until,
            ..OrderDone::new(devices, message)
        };
        to_answer(done.kept(self.not_kept().await))
    }

    async fn resume_cards(self, order: ReleaseOrder) -> OrderResult {
        let ReleaseTarget {
            cards,
            devices,
            name,
        } = self.release_target(&order)?;
        // Ending the release of one card would change nothing while every card is released.
        let is_covered = |(backend, which): &(String, ReleaseScope)| {
            *which != ReleaseScope::All
                && self
                    .orders
                    .orders_of(backend)
                    .is_release_ordered(ReleaseScope::All)
        };
        let all = cards.iter().any(is_covered);
        let resume = |(backend, which): &(String, ReleaseScope)| {
            self.orders.orders_of(backend).end_operator_releases(*which)
        };
        // Resumes all of them, also after one that was not released.
        if all || cards.iter().filter(|one| resume(one)).count() == 0 {
            return Err(match all {
                true => OrderRefusal::hindered("every card is released", "`ostler resume --all`"),
                false => {
                    let error = format!("{name} is not released");
                    OrderRefusal::hindered(error, "`ostler health` shows what is")
                }
            });
        }
        to_answer(OrderDone::new(
            devices,
            format!("{name} is looked at again"),
        ))
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
    fn release_target(&self, order: &ReleaseOrder) -> Result<ReleaseTarget, OrderRefusal> {
        let snapshot = self.newest_snapshot();
        match (&order.device, order.all) {
            (None, true) => {
                let ids = snapshot.devices.iter().map(|entry| entry.device.id.clone());
                let backends = self.orders.running().into_iter();
                Ok(ReleaseTarget {
                    cards: backends.map(|name| (name, ReleaseScope::All)).collect(),
                    devices: ids.collect(),
                    name: "every card".to_owned(),
                })
            }
            (Some(text), false) => {
                let device = find_named(&snapshot, text)?;
                let devices = api::family(&snapshot, device.card_id());
                Ok(ReleaseTarget {
                    cards: vec![(device.vendor.clone(), card_scope(device)?)],
                    devices,
                    name: device.card_id().to_string(),
                })
            }
            _ => {
                let error = "say one device, or all";
                Err(OrderRefusal::bad_request(
                    error,
                    "`ostler devices` lists them",
                ))
            }
        }
    }
}

/// Finds a device by the name in an order.
fn find_named<'s>(snapshot: &'s Snapshot, text: &str) -> Result<&'s Device, OrderRefusal> {
    let found = api::find_device(snapshot, text).map(|entry| &*entry.device);
    found.map_err(|error| {
        OrderRefusal::bad_request(error.to_string(), "`ostler devices` lists them")
    })
}

/// Returns the card of a device, as supervisors name it.
fn card_scope(device: &Device) -> Result<ReleaseScope, OrderRefusal> {
    device.card_ref().map(ReleaseScope::Card).ok_or_else(|| {
        let error = format!("{} has neither a PCI address nor an index", device.id);
        OrderRefusal::hindered(error, "release all of them: `ostler release --all`")
    })
}

fn to_answer(done: OrderDone) -> OrderResult {
    serde_json::to_string(&done).map_err(|error| OrderRefusal::hindered(error.to_string(), ""))
}
