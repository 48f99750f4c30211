//! Insertion of cards: one that was removed before, or a new one.

use sim_node::{
    BusId,
    identity::{made_up_uuid, serial},
    state::{CardSettings, Gpu, NodeState},
};

use super::{Error, Result};
use crate::profile;

/// A card to insert. Fields that are `None` are taken from the card that was removed last, or else
/// from the node's first card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewGpu {
    /// PCI address. A card that was removed there comes back as it was.
    pub pci: Option<BusId>,
    /// Key of its model.
    pub model: Option<String>,
    /// NUMA node of the card.
    pub numa: Option<u32>,
}

/// Makes the card to insert: one that was removed before, or a new one.
pub(super) fn make_card(state: &mut NodeState, new: &NewGpu) -> Result<Gpu> {
    if let Some(pci) = new.pci
        && state.gpus.iter().any(|gpu| gpu.pci == pci)
    {
        return Err(Error::Taken { pci });
    }
    let wanted = |gpu: &Gpu| new.pci.is_none_or(|pci| gpu.pci == pci);
    let known = state.removed.iter().rposition(wanted);
    if let (Some(position), None) = (known, &new.model) {
        let mut gpu = state.removed.remove(position);
        gpu.numa = new.numa.or(gpu.numa);
        // Another card may have got its device node in the meantime.
        if state.gpus.iter().any(|other| other.minor == gpu.minor) {
            gpu.minor = free_minor(state);
        }
        return Ok(gpu);
    }
    new_card(state, new)
}

fn new_card(state: &mut NodeState, new: &NewGpu) -> Result<Gpu> {
    let first = state.gpus.first().or(state.removed.first()).cloned();
    let key = new
        .model
        .clone()
        .or(first.as_ref().map(|gpu| gpu.model.clone()));
    let key = key.unwrap_or_default();
    let mut all = profile::built_in_models();
    all.extend(state.models.clone());
    let model = all.get(&key).ok_or_else(|| Error::Model {
        name: key.clone(),
        known: all.keys().cloned().collect::<Vec<_>>().join(", "),
    })?;
    let free = |pci: &BusId| !state.gpus.iter().any(|gpu| gpu.pci == *pci);
    let pci = new
        .pci
        .or_else(|| (0xe1..=0xff).map(BusId::on_bus).find(free));
    let pci = pci.ok_or(Error::Taken {
        pci: BusId::on_bus(0xff),
    })?;
    let gpu = Gpu {
        uuid: made_up_uuid("GPU", &[&state.profile, &pci.to_string()]),
        model: key.clone(),
        minor: free_minor(state),
        pci,
        under: "pci0000:e0/0000:e0:01.1".to_owned(),
        numa: new.numa.or(first.and_then(|gpu| gpu.numa)),
        memory_numa: None,
        serial: serial(&state.profile, pci),
        lost: false,
        reset_at: None,
        mig_enabled: false,
        migs: Vec::new(),
        links: Vec::new(),
        sensors: model.idle.clone(),
        settings: CardSettings::default(),
        instances: Vec::new(),
        processes: Vec::new(),
    };
    state.models.insert(key, model.clone());
    Ok(gpu)
}

/// Lowest minor number that no card uses.
fn free_minor(state: &NodeState) -> u32 {
    let used = |minor: &u32| state.gpus.iter().any(|gpu| gpu.minor == *minor);
    (0..=u32::MAX).find(|minor| !used(minor)).unwrap_or(0)
}
