//! From a profile to the state of a new node.

use std::collections::{BTreeMap, BTreeSet};

use model::PciAddress;

use super::{Card, Error, Profile, mig, models, sort};
use crate::state::{Gpu, Model, NvLink, Other, State};

/// NVML's `NVML_NVLINK_MAX_LINKS`.
const MAX_LINKS: usize = 18;

/// The state of a new node.
pub(super) fn state(profile: &Profile) -> Result<State, Error> {
    let mut known = models();
    known.extend(profile.models.clone());
    let mut gpus = Vec::with_capacity(profile.gpus.len());
    for (position, card) in profile.gpus.iter().enumerate() {
        gpus.push(gpu(profile, &known, position, card)?);
    }
    unique(&gpus)?;
    join(profile, &known, &mut gpus)?;
    sort(&mut gpus);
    let used: BTreeSet<_> = gpus.iter().map(|gpu| gpu.model.clone()).collect();
    known.retain(|name, _| used.contains(name) || profile.models.contains_key(name));
    Ok(State {
        generation: 1,
        profile: profile.name.clone(),
        driver: profile.driver.clone(),
        numa: profile.numa.clone(),
        models: known,
        gpus,
        removed: Vec::new(),
        others: others(profile),
        faults: Vec::new(),
    })
}

fn gpu(
    profile: &Profile,
    known: &BTreeMap<String, Model>,
    position: usize,
    card: &Card,
) -> Result<Gpu, Error> {
    let name = card.model.as_ref().or(profile.model.as_ref());
    let name = name.cloned().unwrap_or_default();
    let model = known.get(&name).ok_or_else(|| Error::Model {
        pci: card.pci,
        model: name.clone(),
        known: known.keys().cloned().collect::<Vec<_>>().join(", "),
    })?;
    let derived = || uuid("GPU", &[&profile.name, &card.pci.to_string()]);
    let mut gpu = Gpu {
        uuid: card.uuid.clone().unwrap_or_else(derived),
        model: name,
        minor: u32::try_from(position).unwrap_or(u32::MAX),
        pci: card.pci,
        under: card.under.clone(),
        numa: card.numa,
        serial: serial(&profile.name, card.pci),
        lost: false,
        mig_enabled: card.mig.is_some(),
        migs: Vec::new(),
        links: Vec::new(),
        sensors: model.idle.clone(),
    };
    for shape in card.mig.iter().flatten() {
        mig::add(&mut gpu, model, shape).map_err(|source| Error::Mig {
            pci: card.pci,
            source,
        })?;
    }
    Ok(gpu)
}

fn unique(gpus: &[Gpu]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for gpu in gpus {
        let new = seen.insert(gpu.pci.to_string()) && seen.insert(gpu.uuid.clone());
        if !new {
            return Err(Error::Twice { pci: gpu.pci });
        }
    }
    Ok(())
}

/// Lays the NVLinks: first those between cards, then those to the switches.
fn join(profile: &Profile, known: &BTreeMap<String, Model>, gpus: &mut [Gpu]) -> Result<(), Error> {
    for (key, count) in &profile.nvlinks {
        let (a, b) = ends(key, gpus.len()).ok_or_else(|| Error::Link { key: key.clone() })?;
        for _ in 0..(*count).min(u32::try_from(MAX_LINKS + 1).unwrap_or(u32::MAX)) {
            let (left, right) = (gpus[a].pci, gpus[b].pci);
            gpus[a].links.push(link(right, false));
            gpus[b].links.push(link(left, false));
        }
    }
    for (card, gpu) in profile.gpus.iter().zip(gpus.iter_mut()) {
        let lanes = known.get(&gpu.model).map_or(0, |m| m.links_per_switch);
        for switch in profile.nvswitches.iter().filter(|s| s.group == card.group) {
            gpu.links.extend((0..lanes).map(|_| link(switch.pci, true)));
        }
        if gpu.links.len() > MAX_LINKS {
            let (pci, count) = (gpu.pci, gpu.links.len());
            return Err(Error::Links { pci, count });
        }
    }
    Ok(())
}

fn link(remote: PciAddress, switch: bool) -> NvLink {
    NvLink {
        remote,
        switch,
        active: true,
    }
}

/// The two different cards that a key such as `0-3` names.
fn ends(key: &str, count: usize) -> Option<(usize, usize)> {
    let (a, b) = key.split_once('-')?;
    let (a, b) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
    (a != b && a < count && b < count).then_some((a, b))
}

/// NVSwitches are PCI functions too.
fn others(profile: &Profile) -> Vec<Other> {
    let switches = profile.nvswitches.iter().map(|switch| Other {
        pci: switch.pci,
        id: switch.id.clone(),
        class: "068000".to_owned(),
        driver: "nvidia-nvswitch".to_owned(),
        numa: switch.numa,
        under: switch.under.clone(),
    });
    switches.chain(profile.others.iter().cloned()).collect()
}

/// A UUID that looks like the driver's and is the same for the same parts.
pub(crate) fn uuid(kind: &str, parts: &[&str]) -> String {
    let high = digest(parts, 0x243f_6a88_85a3_08d3);
    let low = digest(parts, 0x1319_8a2e_0370_7344);
    let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0x0fff);
    let (d, e) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    format!("{kind}-{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}

/// A serial number of thirteen digits, the same for the same card.
pub(crate) fn serial(profile: &str, pci: PciAddress) -> String {
    let number = digest(&[profile, &pci.to_string()], 0xa409_3822_299f_31d0) % 10_000_000_000;
    format!("132{number:010}")
}

/// FNV-1a with a final mix; stable over versions, which the standard hasher is not.
fn digest(parts: &[&str], seed: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}
