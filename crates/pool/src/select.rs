//! Matching of devices by selectors. Patterns are case-sensitive, except for PCI addresses and
//! attributes.
//!
//! An unknown fact of a device matches no selector that asks for it, with two exceptions. The
//! pattern `*` of `model` and `profile` matches. In `exclude` and `reserved` an unknown attribute
//! matches: a failed driver call must not offer a device that the config excludes.

use config::{KindName, Selector};
use model::{AttributeName, Device, Kind, PciAddress, Version, names};

/// Returns true if all conditions of the selector hold for the device.
pub fn matches_selector(selector: &Selector, device: &Device) -> bool {
    matches_known(selector, device)
        && selector
            .attributes
            .iter()
            .all(|(name, patterns)| has_attribute(device, name, patterns).unwrap_or(false))
}

/// Returns true if all conditions of the selector hold for the device or may hold: an attribute
/// that is not known counts as a match.
fn may_match(selector: &Selector, device: &Device) -> bool {
    matches_known(selector, device)
        && selector
            .attributes
            .iter()
            .all(|(name, patterns)| has_attribute(device, name, patterns).unwrap_or(true))
}

/// Returns true if all conditions of the selector other than attributes hold for the device.
fn matches_known(selector: &Selector, device: &Device) -> bool {
    // The pattern names every field, so that a new field of `Selector` fails to compile here.
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
    is_empty_or_any(vendor, |pattern| like(pattern, &device.vendor))
        && is_empty_or_any(model, |pattern| {
            matches_fact(pattern, device.product_name())
        })
        && is_empty_or_any(uuid, |pattern| {
            like(pattern, device.id.as_str()) || like(pattern, device.card_id().as_str())
        })
        && is_empty_or_any(index, |pattern| has_index(device, pattern))
        && is_empty_or_any(pci, |pattern| {
            device.pci.is_some_and(|at| sits(pattern, at))
        })
        && min_memory.is_none_or(|least| device.memory_bytes() >= Some(least.bytes()))
        && max_memory
            .is_none_or(|most| device.memory_bytes().is_some_and(|has| has <= most.bytes()))
        && is_empty_or_any(profile, |pattern| {
            is_kind(device, KindName::Partition)
                && matches_fact(pattern, device.partition_profile())
        })
        && kind.is_none_or(|kind| is_kind(device, kind))
        && display.is_none_or(|display| device.bool_attribute(&names::DISPLAY) == Some(display))
}

/// Returns true if the fact matches the pattern. A fact that could not be read matches `*` only: a
/// pool for every device takes that device too.
fn matches_fact(pattern: &str, fact: Option<&str>) -> bool {
    fact.map_or(pattern == "*", |fact| like(pattern, fact))
}

/// Returns true if a pool with these selectors may take devices of a vendor, whatever their other
/// facts.
pub fn may_take(selectors: &[Selector], vendor: &str) -> bool {
    let means =
        |selector: &Selector| is_empty_or_any(&selector.vendor, |pattern| like(pattern, vendor));
    selectors.is_empty() || selectors.iter().any(means)
}

/// Returns the first selector that matches the device.
pub(crate) fn find_selector<'s>(
    selectors: &'s [Selector],
    device: &Device,
) -> Option<&'s Selector> {
    selectors
        .iter()
        .find(|selector| matches_selector(selector, device))
}

/// Returns a reason to keep the device back: the first selector that matches the device or may
/// match it.
pub(crate) fn first_reason(selectors: &[Selector], device: &Device) -> Option<String> {
    let selector = selectors.iter().find(|one| may_match(one, device))?;
    let mut names = selector.attributes.keys();
    let unknown = names.find(|name| !device.attributes.contains_key(*name));
    Some(match unknown {
        Some(name) => format!("{}; its {name} is not known", describe_selector(selector)),
        None => describe_selector(selector),
    })
}

/// Returns true if each selector names a kind and nothing else but a vendor.
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

/// Returns true if a text matches a pattern. `*` stands for any text, the empty one too; every
/// other character stands for itself.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = text.strip_prefix(head).and_then(|t| t.strip_suffix(tail)) else {
        return false;
    };
    // The first occurrence of each part is enough: a later one leaves less text for the others.
    for part in middle.split('*') {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = &text[at + part.len()..];
    }
    true
}

/// Describes a selector for a person: `model NVIDIA T4, index 2 or 3`.
pub(crate) fn describe_selector(selector: &Selector) -> String {
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

/// Returns true if the list is empty or one of its patterns matches.
fn is_empty_or_any(patterns: &[String], holds: impl Fn(&str) -> bool) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| holds(pattern))
}

/// Returns true if an attribute matches one of the patterns; `None` if the attribute is not known.
fn has_attribute(device: &Device, name: &AttributeName, patterns: &[String]) -> Option<bool> {
    let value = device.attributes.get(name)?;
    let text = value.to_string().to_ascii_lowercase();
    let is = |pattern: &String| {
        let same_version = |version: &Version| {
            let wanted = pattern.parse::<Version>();
            wanted.is_ok_and(|wanted| wanted.to_numbers() == version.to_numbers())
        };
        like(&pattern.to_ascii_lowercase(), &text) || value.as_version().is_some_and(same_version)
    };
    Some(patterns.iter().any(is))
}

/// The index of a card selects its partitions too.
fn has_index(device: &Device, pattern: &str) -> bool {
    device.index.is_some_and(|index| {
        like(pattern, &index.to_string()) || like(pattern, &index.card.to_string())
    })
}

/// Accepts domains of four digits (sysfs) and of eight (NVML), in either case.
fn sits(pattern: &str, at: PciAddress) -> bool {
    if let Ok(wanted) = pattern.parse::<PciAddress>() {
        return wanted == at;
    }
    let pattern = pattern.to_ascii_lowercase();
    like(&pattern, &at.to_string()) || like(&pattern, &at.to_long_form().to_ascii_lowercase())
}

fn is_kind(device: &Device, kind: KindName) -> bool {
    match device.kind {
        Kind::Card { .. } => kind == KindName::Card,
        Kind::Partition { .. } => kind == KindName::Partition,
    }
}

#[cfg(test)]
mod tests;
