//! Offers that the kubelet may have: `auto` decided, and no unit that a runtime could not start a
//! container with.

use std::sync::Arc;

use cdi::{Evidence, Outcome};
use config::ListStrategy;
use grant::cdi_names;
use pool::{Offer, Offers, Unit};
use rules::{Reason, Runtime, resolve_lists};

use super::status::ListStatus;

/// What is known of those on the way from a name to a container.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) runtime: Evidence,
    pub(super) kubelet: Evidence,
}

/// The offers with what is on the disk, and how the runtime is told for each of them.
pub(super) fn gate(draft: &Offers, outcome: &Outcome, known: &Known) -> (Offers, Vec<ListStatus>) {
    let mut lists = Vec::new();
    let offers = draft
        .iter()
        .map(|offer| match offer.pool.handover.may_use_cdi() {
            false => Arc::clone(offer),
            true => {
                let (offer, status) = one(offer, outcome, known);
                lists.push(status);
                Arc::new(offer)
            }
        });
    (offers.collect(), lists)
}

fn one(offer: &Offer, outcome: &Outcome, known: &Known) -> (Offer, ListStatus) {
    let missing: Vec<Option<String>> = offer
        .units
        .iter()
        .map(|unit| missing(offer, unit, outcome))
        .collect();
    let runtime = Runtime {
        cdi_spec: missing.iter().all(Option::is_none),
        cdi_devices: known.runtime.supported,
        kubelet: known.kubelet.supported,
    };
    let found = resolve_lists(&offer.pool.handover, runtime);
    let cdi = [ListStrategy::CdiCri, ListStrategy::CdiAnnotations];
    let blocked = cdi.iter().any(|list| found.has(*list));
    let status = ListStatus {
        resource: offer.resource.clone(),
        lists: found.clone(),
        why: match found.reason {
            Reason::Configured => found.reason.to_string(),
            Reason::NoSpec => {
                let first = missing.iter().flatten().next();
                format!("{}: {}", found.reason, first.map_or("", |why| why))
            }
            Reason::NoCdi => format!("{}: {}", found.reason, known.runtime.reason),
            Reason::NoKubelet => format!("{}: {}", found.reason, known.kubelet.reason),
            Reason::Cdi => format!(
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

/// Why a runtime could not look up what a container would be given with a unit.
fn missing(offer: &Offer, unit: &Unit, outcome: &Outcome) -> Option<String> {
    let device = &offer.entry(unit)?.device;
    let names = cdi_names(offer, device);
    let name = names.iter().find(|name| !outcome.names.contains(*name))?;
    let (kind, _) = name.split_once('=')?;
    let why = match outcome.problem(kind) {
        Some(problem) => problem.to_owned(),
        None => "it is not in the CDI spec, see the agent's notes on CDI".to_owned(),
    };
    Some(format!("the CDI name {name} cannot be looked up: {why}"))
}
