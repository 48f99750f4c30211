//! The devices that a selector means. Patterns are compared letter by letter, with upper and lower
//! case told apart, but for the digits of PCI addresses and for attributes. What is not known of a
//! device is matched by no selector that asks for it, but by `*`, and for attributes where a device is
//! kept back: who excludes a kind of device must not get one because a call failed.

use config::{KindName, Selector};
use model::{AttributeName, Device, Kind, PciAddress, Version, names};

/// Tells if everything that the selector says holds for the device.
pub fn matches(selector: &Selector, device: &Device) -> bool {
    matches_known(selector, device)
        && selector
            .attributes
            .iter()
            .all(|(name, patterns)| has_attribute(device, name, patterns).unwrap_or(false))
}

/// Tells if everything that the selector says holds for the device, or may hold: an attribute that
/// is not known counts as one that matches.
fn may_match(selector: &Selector, device: &Device) -> bool {
    matches_known(selector, device)
        && selector
            .attributes
            .iter()
            .all(|(name, patterns)| has_attribute(device, name, patterns).unwrap_or(true))
}

/// Tells if everything that the selector says beside attributes holds for the device.
fn matches_known(selector: &Selector, device: &Device) -> bool {
    // Field by field, so that a new one cannot be forgotten here.
    let Selector {
        vendor,
        model,
        uuid,
        index,
        pci,
        min_memory,
        max_memory,
        profile,
        kind,
        display,
        attributes: _,
    } = selector;
    any(vendor, |pattern| like(pattern, &device.vendor))
        && any(model, |pattern| matches_fact(pattern, device.product()))
        && any(uuid, |pattern| {
            like(pattern, device.id.as_str()) || like(pattern, device.card().as_str())
        })
        && any(index, |pattern| has_index(device, pattern))
        && any(pci, |pattern| {
            device.pci.is_some_and(|at| sits(pattern, at))
        })
        && min_memory.is_none_or(|least| device.memory() >= Some(least.bytes()))
        && max_memory.is_none_or(|most| device.memory().is_some_and(|has| has <= most.bytes()))
        && any(profile, |pattern| {
            is_kind(device, KindName::Partition) && matches_fact(pattern, device.profile())
        })
        && kind.is_none_or(|kind| is_kind(device, kind))
        && display.is_none_or(|display| device.flag(&names::DISPLAY) == Some(display))
}

/// True if the fact has the form of the pattern. A fact that could not be read matches `*` alone: a pool
/// that takes every device takes that one, too.
fn matches_fact(pattern: &str, fact: Option<&str>) -> bool {
    fact.map_or(pattern == "*", |fact| like(pattern, fact))
}

/// Tells if a pool with these selectors may take devices of a vendor, whichever devices it has.
pub fn may_take(selectors: &[Selector], vendor: &str) -> bool {
    let means = |selector: &Selector| any(&selector.vendor, |pattern| like(pattern, vendor));
    selectors.is_empty() || selectors.iter().any(means)
}

/// The first selector that means the device.
pub(crate) fn first<'s>(selectors: &'s [Selector], device: &Device) -> Option<&'s Selector> {
    selectors.iter().find(|selector| matches(selector, device))
}

/// The first selector that means the device, or may mean it, with a reason to keep it back.
pub(crate) fn first_reason(selectors: &[Selector], device: &Device) -> Option<String> {
    let selector = selectors.iter().find(|one| may_match(one, device))?;
    let mut names = selector.attributes.keys();
    let unknown = names.find(|name| !device.attributes.contains_key(*name));
    Some(match unknown {
        Some(name) => format!("{}; its {name} is not known", words(selector)),
        None => words(selector),
    })
}

/// Whether selectors ask for nothing but the vendor and the kind.
pub(crate) fn is_of_kind(selectors: &[Selector]) -> bool {
    let plain = |selector: &Selector| {
        let kind = Selector {
            vendor: selector.vendor.clone(),
            kind: selector.kind,
            ..Selector::default()
        };
        *selector == kind && selector.kind.is_some()
    };
    !selectors.is_empty() && selectors.iter().all(plain)
}

/// Whether a text has the form of a pattern: `*` stands for any text, also none; the rest stands
/// for itself, from the first letter to the last.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = text.strip_prefix(head).and_then(|t| t.strip_suffix(tail)) else {
        return false;
    };
    for part in middle.split('*') {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = &text[at + part.len()..];
    }
    true
}

/// A selector as a person would say it: `model NVIDIA T4, index 2 or 3`.
pub(crate) fn words(selector: &Selector) -> String {
    let mut words = Vec::new();
    for (what, patterns) in [
        ("vendor", &selector.vendor),
        ("model", &selector.model),
        ("uuid", &selector.uuid),
        ("index", &selector.index),
        ("pci", &selector.pci),
        ("profile", &selector.profile),
    ] {
        if !patterns.is_empty() {
            words.push(format!("{what} {}", patterns.join(" or ")));
        }
    }
    words.extend(
        selector
            .min_memory
            .map(|least| format!("minMemory {least}")),
    );
    words.extend(selector.max_memory.map(|most| format!("maxMemory {most}")));
    words.extend(selector.kind.map(|kind| match kind {
        KindName::Card => "kind card".to_owned(),
        KindName::Partition => "kind partition".to_owned(),
    }));
    words.extend(selector.display.map(|display| format!("display {display}")));
    for (name, patterns) in &selector.attributes {
        words.push(format!("{name} {}", patterns.join(" or ")));
    }
    match words.is_empty() {
        true => "every device".to_owned(),
        false => words.join(", "),
    }
}

/// Whether nothing is asked for, or one of the patterns holds.
fn any(patterns: &[String], holds: impl Fn(&str) -> bool) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| holds(pattern))
}

/// Tells if an attribute has one of the patterns; `None` where it is not known.
fn has_attribute(device: &Device, name: &AttributeName, patterns: &[String]) -> Option<bool> {
    let value = device.attributes.get(name)?;
    let text = value.to_string().to_ascii_lowercase();
    let is = |pattern: &String| {
        let same_version = |version: &Version| {
            let wanted = pattern.parse::<Version>();
            wanted.is_ok_and(|wanted| wanted.numbers() == version.numbers())
        };
        like(&pattern.to_ascii_lowercase(), &text) || value.as_version().is_some_and(same_version)
    };
    Some(patterns.iter().any(is))
}

/// The index of a card means its partitions too.
fn has_index(device: &Device, pattern: &str) -> bool {
    device.index.is_some_and(|index| {
        like(pattern, &index.to_string()) || like(pattern, &index.card.to_string())
    })
}

/// Domains are written with four digits (sysfs) or eight (NVML), in either case.
fn sits(pattern: &str, at: PciAddress) -> bool {
    if let Ok(wanted) = pattern.parse::<PciAddress>() {
        return wanted == at;
    }
    let pattern = pattern.to_ascii_lowercase();
    like(&pattern, &at.to_string()) || like(&pattern, &at.long().to_ascii_lowercase())
}

fn is_kind(device: &Device, kind: KindName) -> bool {
    match device.kind {
        Kind::Card { .. } => kind == KindName::Card,
        Kind::Partition { .. } => kind == KindName::Partition,
    }
}

#[cfg(test)]
mod tests;
