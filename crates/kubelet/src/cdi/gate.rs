//! Last step before the front end: decides the device list strategies of each offer (`auto`), and
//! marks units as Unhealthy if the container runtime could not find their CDI names.

use std::sync::Arc;

use cdi::{Evidence, Outcome};
use config::ListStrategy;
use grant::cdi_names;
use pool::{Offer, Offers, Unit};
use rules::{Reason, Runtime, resolve_lists};

use super::status::ListStatus;

/// Evidence on CDI support of the two programs that pass a CDI name to a container.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) runtime: Evidence,
    pub(super) kubelet: Evidence,
}

/// Returns the offers for the kubelet, and the strategies of each offer that may use CDI. `outcome`
/// has the names that are in specs on the disk.
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

/// Reason why the runtime could not look up a CDI name of the unit; `None` if all names are in specs.
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
