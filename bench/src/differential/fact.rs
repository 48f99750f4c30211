//! A recording as a flat list of facts, without what is random: each fact has a path, such as
//! `nvidia.com/gpu › device › GPU-… › numa`, and a value.

use std::{collections::BTreeMap, fmt};

use super::recording::{Allocate, Answer, Device, Grant, Outcome, Prefer, Recording, Resource};

/// The variable whose value is a list of devices.
const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES";

/// Where a fact stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(Vec<String>);

/// The facts of a recording.
pub(crate) type Facts = BTreeMap<Place, String>;

// === impl Place ===

impl Place {
    /// A place at the top.
    pub(crate) fn new(parts: &[&str]) -> Self {
        Self(parts.iter().map(|&part| part.to_owned()).collect())
    }

    /// A place below this one.
    fn with(&self, parts: &[&str]) -> Self {
        let mut all = self.0.clone();
        all.extend(parts.iter().map(|&part| part.to_owned()));
        Self(all)
    }

    /// Its parts, from the top.
    pub(crate) fn parts(&self) -> &[String] {
        &self.0
    }

    /// The part of this number from the top; empty if it has fewer.
    pub(crate) fn part(&self, number: usize) -> &str {
        self.0.get(number).map_or("", String::as_str)
    }

    /// The first so many parts.
    pub(crate) fn above(&self, count: usize) -> Self {
        Self(self.0.iter().take(count).cloned().collect())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" › "))
    }
}

/// The facts of a recording. Where devices are named by index upstream gives them in any order,
/// so `indexed` lists are sorted.
pub(crate) fn facts(recording: &Recording, indexed: bool) -> Facts {
    let mut facts = Facts::new();
    let outcome = match &recording.outcome {
        Outcome::Serves(_) => "serves".to_owned(),
        Outcome::Idles => "idles".to_owned(),
        Outcome::Dies(reason) => {
            facts.insert(Place::new(&["outcome", "reason"]), reason.clone());
            "dies".to_owned()
        }
    };
    facts.insert(Place::new(&["outcome"]), outcome);
    if let Outcome::Serves(resources) = &recording.outcome {
        for (name, resource) in resources {
            serve(&mut facts, &Place::new(&[name]), resource, indexed);
        }
    }
    facts
}

fn serve(facts: &mut Facts, at: &Place, resource: &Resource, indexed: bool) {
    facts.insert(at.with(&["socket"]), resource.socket.clone());
    let options = [
        ("pre-start", resource.pre_start),
        ("preferred", resource.preferred),
    ];
    for (name, value) in options {
        facts.insert(at.with(&["option", name]), value.to_string());
    }
    for (id, Device { health, numa }) in &resource.devices {
        let at = at.with(&["device", id]);
        facts.insert(at.with(&["health"]), health.clone());
        facts.insert(at.with(&["numa"]), format!("{numa:?}"));
    }
    for Allocate { name, ids, answer } in &resource.allocate {
        let at = at.with(&["allocate", name]);
        facts.insert(at.with(&["asked"]), ids.join(","));
        if let Some(grant) = answered(facts, &at, answer) {
            given(facts, &at, grant, indexed);
        }
    }
    for prefer in &resource.prefer {
        let at = at.with(&["prefer", &prefer.name]);
        if let Some(chosen) = answered(facts, &at, &prefer.answer) {
            preferred(facts, &at, prefer, chosen);
        }
    }
}

/// What there is to say of any answer; and what was given, if it was.
fn answered<'a, T>(facts: &mut Facts, at: &Place, answer: &'a Answer<T>) -> Option<&'a T> {
    match answer {
        Answer::Given(given) => {
            facts.insert(at.with(&["outcome"]), "given".to_owned());
            Some(given)
        }
        Answer::Refused(refusal) => {
            facts.insert(at.with(&["outcome"]), "refused".to_owned());
            facts.insert(at.with(&["code"]), refusal.code.clone());
            facts.insert(at.with(&["message"]), refusal.message.clone());
            None
        }
    }
}

fn given(facts: &mut Facts, at: &Place, grant: &Grant, indexed: bool) {
    for (name, value) in &grant.env {
        let value = match name.as_str() {
            VISIBLE if indexed => sorted(value),
            _ => value.clone(),
        };
        facts.insert(at.with(&["env", name]), value);
    }
    for (kind, list) in [("mount", &grant.mounts), ("node", &grant.nodes)] {
        for item in list {
            let mut parts = item.splitn(3, ':');
            let (host, inside) = (parts.next(), parts.next());
            let rest = parts.next().unwrap_or_default();
            let place = at.with(&[kind, inside.unwrap_or_default()]);
            let times = list.iter().filter(|other| *other == item).count();
            let mut value = format!("{} {rest}", host.unwrap_or_default());
            if times > 1 {
                value = format!("{value}, {times} times");
            }
            facts.insert(place, value);
        }
    }
    for (key, value) in &grant.annotations {
        let value = if indexed {
            sorted(value)
        } else {
            value.clone()
        };
        facts.insert(at.with(&["annotation", &steady(key)]), value);
    }
    if !grant.cdi.is_empty() {
        let names = grant.cdi.join(",");
        let names = if indexed { sorted(&names) } else { names };
        facts.insert(at.with(&["cdi"]), names);
    }
}

/// Which devices are best is each program's own; what is compared is whether the answer is one.
fn preferred(facts: &mut Facts, at: &Place, prefer: &Prefer, chosen: &[String]) {
    let mut seen = chosen.to_vec();
    seen.sort();
    seen.dedup();
    let all = |of: &[String], within: &[String]| of.iter().all(|id| within.contains(id));
    let values = [
        ("count", seen.len().to_string()),
        ("offered", all(chosen, &prefer.available).to_string()),
        ("required", all(&prefer.required, chosen).to_string()),
    ];
    for (name, value) in values {
        facts.insert(at.with(&[name]), value);
    }
}

fn sorted(list: &str) -> String {
    let mut parts: Vec<_> = list.split(',').collect();
    parts.sort_unstable();
    parts.join(",")
}

/// The key of an annotation without the random UUID at its end.
fn steady(key: &str) -> String {
    let hex = |c: char| c == '-' || c.is_ascii_hexdigit();
    match key.rsplit_once('_') {
        Some((stem, end)) if end.len() == 36 && end.chars().all(hex) => format!("{stem}_<uuid>"),
        _ => key.to_owned(),
    }
}
