//! NVLinks of a profile: between cards, to its switches, and out of the machine.

use std::collections::BTreeMap;

use sim_node::{
    BusId,
    state::{Gpu, GpuModel, NvLink},
};

use super::{NodeProfile, ProfileCard, ProfileProblems};

/// Most links of a card: NVML's `NVML_NVLINK_MAX_LINKS`.
const MAX_LINKS: usize = 18;

/// Other end of a link that is down.
const DOWN: &str = "down";
/// Other end of a link to a switch that is no PCI function of this machine.
const FABRIC: &str = "fabric";

/// Sets the links of all cards. `gpus` is in the order of the profile.
pub(super) fn lay(
    profile: &NodeProfile,
    known: &BTreeMap<String, GpuModel>,
    gpus: &mut [Gpu],
    problems: &mut ProfileProblems,
) {
    join_pairs(profile, gpus, problems);
    for (at, card) in profile.gpus.iter().enumerate() {
        let lanes = known.get(&gpus[at].model).map_or(0, |m| m.links_per_switch);
        match &card.links {
            Some(links) => gpus[at].links = read_card_links(profile, (at, card), links, problems),
            None => {
                for switch in profile.nvswitches.iter().filter(|s| s.group == card.group) {
                    let lanes = lanes_of(switch.links.unwrap_or(lanes));
                    gpus[at]
                        .links
                        .extend(lanes.map(|_| new_link(switch.pci, true)));
                }
            }
        }
        let count = gpus[at].links.len();
        if count > MAX_LINKS {
            let pci = card.pci;
            let what =
                format!("card {pci} has {count} NVLinks; the driver knows {MAX_LINKS} at most");
            problems.add_problem(&format!("gpus/{at}"), what);
        }
    }
    mutual(gpus, problems);
}

/// Adds the links of the key `nvlinks`.
fn join_pairs(profile: &NodeProfile, gpus: &mut [Gpu], problems: &mut ProfileProblems) {
    for (key, count) in &profile.nvlinks {
        let Some((a, b)) = pair_of_key(key, gpus.len()) else {
            let count = gpus.len();
            let what = format!(
                "`{key}` in nvlinks names no two cards as `0-3` does; the profile has {count}, \
                 counted from 0"
            );
            problems.add_problem(&format!("nvlinks/{key}"), what);
            continue;
        };
        let (left, right) = (gpus[a].pci, gpus[b].pci);
        for _ in lanes_of(*count) {
            gpus[a].links.push(new_link(right, false));
            gpus[b].links.push(new_link(left, false));
        }
    }
}

/// Links that a card lists itself (its key `links`).
fn read_card_links(
    profile: &NodeProfile,
    (at, card): (usize, &ProfileCard),
    links: &BTreeMap<String, u32>,
    problems: &mut ProfileProblems,
) -> Vec<NvLink> {
    let mut laid = Vec::new();
    for (end, count) in links {
        match remote(profile, card, end) {
            Some(one) => laid.extend(lanes_of(*count).map(|_| one.clone())),
            None => {
                let pci = card.pci;
                let what = format!(
                    "card {pci} has a link to `{end}`, which is no other card and no NVSwitch of \
                     this profile; give an address of one, `{FABRIC}` or `{DOWN}`"
                );
                problems.add_problem(&format!("gpus/{at}/links/{end}"), what);
            }
        }
    }
    laid
}

fn remote(profile: &NodeProfile, card: &ProfileCard, end: &str) -> Option<NvLink> {
    let nowhere = BusId::on_bus(0);
    match end {
        FABRIC => return Some(new_link(nowhere, true)),
        DOWN => {
            return Some(NvLink {
                active: false,
                ..new_link(nowhere, false)
            });
        }
        _ => {}
    }
    let pci: BusId = end.parse().ok()?;
    let card = pci != card.pci && profile.gpus.iter().any(|other| other.pci == pci);
    let switch = profile.nvswitches.iter().any(|switch| switch.pci == pci);
    (card || switch).then(|| new_link(pci, switch))
}

/// Checks that both ends of a link between two cards list the link.
fn mutual(gpus: &[Gpu], problems: &mut ProfileProblems) {
    let count = |from: &Gpu, to: &Gpu| from.links.iter().filter(|l| l.remote == to.pci).count();
    for (at, one) in gpus.iter().enumerate() {
        for other in &gpus[at + 1..] {
            let (there, back) = (count(one, other), count(other, one));
            if there != back {
                let what = format!(
                    "card {} has {there} NVLinks to {}, which has {back} to it; make them equal",
                    one.pci, other.pci
                );
                problems.add_problem(&format!("gpus/{at}/links"), what);
            }
        }
    }
}

/// Range of `count` links. It ends at one more than NVML knows, which is enough for the check to
/// fail.
fn lanes_of(count: u32) -> std::ops::Range<u32> {
    0..count.min(u32::try_from(MAX_LINKS + 1).unwrap_or(u32::MAX))
}

fn new_link(remote: BusId, switch: bool) -> NvLink {
    NvLink {
        remote,
        switch,
        active: true,
    }
}

/// The two different cards that a key such as `0-3` names; `None` for any other key.
fn pair_of_key(key: &str, count: usize) -> Option<(usize, usize)> {
    let (a, b) = key.split_once('-')?;
    let (a, b) = (a.trim().parse().ok()?, b.trim().parse().ok()?);
    (a != b && a < count && b < count).then_some((a, b))
}
