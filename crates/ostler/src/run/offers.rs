//! Makes offers from snapshots and config, and logs what an operator should know of them.

use std::sync::Arc;

use api::HandoverNote;
use config::Config;
use model::Snapshot;
use pool::{DeviceNotOffered, NodePlan, Offers, PlanNote};
use tokio::sync::watch;

use crate::vendors::VENDORS;

/// Results of the newest plan beside the offers, for `/v1/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlanReport {
    /// Devices that are not offered, each with its reason.
    pub(super) aside: Vec<DeviceNotOffered>,
    /// Notes on the pools, such as a pool without devices.
    pub(super) notes: Vec<PlanNote>,
    /// Notes on edits that containers do not get, or get in another form than the config asks for.
    pub(super) handover: Vec<HandoverNote>,
}

/// Makes offers of each new snapshot and of each new config, until one of the two channels closes.
pub(super) async fn publish_offers(
    mut snapshots: watch::Receiver<Arc<Snapshot>>,
    mut config: watch::Receiver<Arc<Config>>,
    offers: watch::Sender<Offers>,
    made: watch::Sender<PlanReport>,
) {
    loop {
        let snapshot = Arc::clone(&snapshots.borrow_and_update());
        let plan = pool::plan_offers(&config.borrow_and_update(), VENDORS, &snapshot);
        // bench/src/idle/watch.rs counts these lines by their text and by the name of this module.
        let generation = snapshot.generation;
        tracing::debug!(
            generation,
            offers = plan.offers.len(),
            "planned what to offer"
        );
        // Not `send`, which drops the value while there is no receiver: one that starts later needs
        // it.
        offers.send_replace(Arc::clone(&plan.offers));
        let new = PlanReport::from_plan(plan);
        new.log_changes(&made.borrow());
        made.send_replace(new);
        let changed = tokio::select! {
            changed = snapshots.changed() => changed,
            changed = config.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

// === impl PlanReport ===

impl PlanReport {
    fn from_plan(plan: NodePlan) -> Self {
        let sentences = plan.offers.iter().flat_map(|offer| {
            let notes = grant::handover_notes(offer).into_iter();
            notes.map(|rules::GrantNote { text, problem }| HandoverNote {
                resource: offer.resource.clone(),
                text,
                problem,
            })
        });
        Self {
            handover: sentences.collect(),
            aside: plan.aside,
            notes: plan.notes,
        }
    }

    /// Logs every entry that `old` does not have.
    fn log_changes(&self, old: &Self) {
        for aside in self.aside.iter().filter(|new| !old.aside.contains(new)) {
            let (device, reason) = (&aside.device, &aside.reason);
            match aside.kind.is_problem() {
                true => tracing::warn!(%device, reason, "a device is not offered"),
                false => tracing::debug!(%device, reason, "a device is not offered"),
            }
        }
        for note in self.notes.iter().filter(|new| !old.notes.contains(new)) {
            match note.kind.is_problem() {
                true => tracing::warn!(pool = note.pool, "{}", note.text),
                false => tracing::info!(pool = note.pool, "{}", note.text),
            }
        }
        let told = |new: &&HandoverNote| !old.handover.contains(new);
        for new in self.handover.iter().filter(told) {
            let HandoverNote { resource, text, .. } = new;
            match new.problem {
                true => tracing::warn!(%resource, "{text}"),
                false => tracing::info!(%resource, "{text}"),
            }
        }
    }
}
