//! Last step before the front end: decides the device list strategies of each offer (`auto`), and
//! marks units as Unhealthy if the container runtime could not find their CDI names.

use std::sync::Arc;

use cdi::{StoreOutcome, SupportEvidence};
use config::ListStrategy;
use grant::cdi_names;
use pool::{Offer, Offers, Unit};
use rules::{CdiSupport, ListReason, resolve_lists};

use super::status::ListStatus;

/// Evidence on CDI support of the two programs that pass a CDI name to a container.
#[derive(Clone, Debug)]
pub(super) struct KnownSupport {
    pub(super) runtime: SupportEvidence,
    pub(super) kubelet: SupportEvidence,
}

/// Returns the offers for the kubelet, and the strategies of each offer that may use CDI. `outcome`
/// has the names that are in specs on the disk.
pub(super) fn gate(
    draft: &Offers,
    outcome: &StoreOutcome,
    known: &KnownSupport,
) -> (Offers, Vec<ListStatus>) {
    let mut lists = Vec::new();
    let offers = draft
        .iter()
        .map(|offer| match offer.pool.handover.may_use_cdi() {
            false => Arc::clone(offer),
            true => {
                let (offer, status) = gate_offer(offer, outcome, known);
                lists.push(status);
                Arc::new(offer)
            }
        });
    (offers.collect(), lists)
}

fn gate_offer(offer: &Offer, outcome: &StoreOutcome, known: &KnownSupport) -> (Offer, ListStatus) {
    let missing: Vec<Option<String>> = offer
        .units
        .iter()
        .map(|unit| explain_missing(offer, unit, outcome))
        .collect();
    let runtime = CdiSupport {
        cdi_spec: missing.iter().all(Option::is_none),
        cdi_devices: known.runtime.supported,
        kubelet: known.kubelet.supported,
    };
    let found = resolve_lists(&offer.pool.handover, runtime);
    let cdi = [ListStrategy::CdiCri, ListStrategy::CdiAnnotations];
    let blocked = cdi.iter().any(|list| found.has_strategy(*list));
    let status = ListStatus {
        resource: offer.resource.clone(),
        lists: found.clone(),
        why: match found.reason {
            ListReason::Configured => found.reason.to_string(),
            ListReason::NoSpec => {
                let first = missing.iter().flatten().next();
                format!("{}: {}", found.reason, first.map_or("", |why| why))
            }
            ListReason::NoCdi => format!("{}: {}", found.reason, known.runtime.reason),
            ListReason::NoKubelet => format!("{}: {}", found.reason, known.kubelet.reason),
            ListReason::Cdi => format!(
                "{}: {}; {}",
                found.reason, known.kubelet.reason, known.runtime.reason
            ),
        },
    };
    let units = offer.units.iter().cloned().zip(missing);
    let units = units.map(|(unit, missing)| match missing {
        Some(reason) if blocked && unit.healthy => Unit {
            healthy: false,
            reason,
            ..unit
        },
        _ => unit,
    });
    let offer = Offer {
        units: units.collect(),
        lists: found,
        ..offer.clone()
    };
    (offer, status)
}

/// Reason why the runtime could not look up a CDI name of the unit; `None` if all names are in specs.
fn explain_missing(offer: &Offer, unit: &Unit, outcome: &StoreOutcome) -> Option<String> {
    let device = &offer.entry_of_unit(unit)?.device;
    let names = cdi_names(offer, device);
    let name = names.iter().find(|name| !outcome.names.contains(*name))?;
    let (kind, _) = name.split_once('=')?;
    let why = match outcome.find_problem(kind) {
        Some(problem) => problem.to_owned(),
        None => "it is not in the CDI spec, see the agent's notes on CDI".to_owned(),
    };
    Some(format!("the CDI name {name} cannot be looked up: {why}"))
}
