//! Two recordings side by side: every fact in which they differ, and which documented difference
//! explains it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    case::Case,
    fact::{self, Facts, Place},
    known::Known,
    recording::Recording,
};

/// A fact in which the two differ. A side that does not have it at all is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Where.
    pub(crate) at: Place,
    /// What NVIDIA's program does.
    pub(crate) upstream: Option<String>,
    /// What Ostler does.
    pub(crate) ours: Option<String>,
}

/// What came out of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// How many facts were compared.
    pub(crate) facts: usize,
    /// The documented differences that were seen, with how often.
    pub(crate) explained: BTreeMap<String, usize>,
    /// What nothing explains.
    pub(crate) different: Vec<Difference>,
}

/// A difference as it stands in the JSON report.
#[derive(Debug, Serialize)]
pub(crate) struct Shown<'a> {
    at: String,
    upstream: Option<&'a str>,
    ours: Option<&'a str>,
}

// === impl Difference ===

impl Difference {
    /// For the JSON report.
    pub(crate) fn shown(&self) -> Shown<'_> {
        Shown {
            at: self.at.to_string(),
            upstream: self.upstream.as_deref(),
            ours: self.ours.as_deref(),
        }
    }
}

/// Compares what the two programs did in a case.
pub(crate) fn compare(
    case: &Case,
    upstream: &Recording,
    ours: &Recording,
    known: &Known,
) -> Verdict {
    let upstream = fact::facts(upstream, case.indexed());
    let ours = fact::facts(ours, case.indexed());
    let mut verdict = Verdict {
        facts: upstream
            .keys()
            .chain(ours.keys())
            .collect::<BTreeSet<_>>()
            .len(),
        ..Verdict::default()
    };
    for difference in differences(&upstream, &ours) {
        match known.explain(case, &difference) {
            Some(id) => *verdict.explained.entry(id.to_owned()).or_default() += 1,
            None => verdict.different.push(difference),
        }
    }
    verdict
}

/// Every fact in which the two differ. What only one of them has (a resource, a device) is one
/// difference and not one for each of its facts.
pub(crate) fn differences(upstream: &Facts, ours: &Facts) -> Vec<Difference> {
    let mut found: BTreeMap<Place, Difference> = BTreeMap::new();
    for at in upstream.keys().chain(ours.keys()) {
        let (theirs, own) = (upstream.get(at), ours.get(at));
        if theirs == own {
            continue;
        }
        let whole = whole(at, upstream, ours);
        let there = |facts: &Facts, value: Option<&String>| match &whole {
            Some(whole) => has(facts, whole).then(|| "there".to_owned()),
            None => value.cloned(),
        };
        let (theirs, own) = (there(upstream, theirs), there(ours, own));
        let at = whole.unwrap_or_else(|| at.clone());
        let difference = Difference {
            at: at.clone(),
            upstream: theirs,
            ours: own,
        };
        found.insert(at, difference);
    }
    found.into_values().collect()
}

/// The largest thing around a fact that only one of the two has: the resource, or the device.
fn whole(at: &Place, upstream: &Facts, ours: &Facts) -> Option<Place> {
    let sizes: &[usize] = match (at.part(0), at.part(1)) {
        ("outcome", _) => &[],
        (_, "device") => &[1, 3],
        _ => &[1],
    };
    let lonely = |place: &Place| has(upstream, place) != has(ours, place);
    let around = sizes.iter().map(|&size| at.above(size));
    around.into_iter().find(lonely)
}

/// Whether there is any fact at a place or below it.
fn has(facts: &Facts, place: &Place) -> bool {
    facts
        .range(place..)
        .next()
        .is_some_and(|(at, _)| at.parts().starts_with(place.parts()))
}

#[cfg(test)]
mod tests;
