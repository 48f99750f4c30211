//! Builds the state of a new node from a profile.

use std::collections::{BTreeMap, BTreeSet};

use sim_node::{
    identity::{made_up_uuid, serial},
    mig,
    state::{CardSettings, Gpu, GpuModel, MachineFacts, NodeState, OtherFunction},
};

use super::{NodeProfile, ProfileCard, ProfileProblems, built_in_models, check, join, sort_cards};

/// Builds the state of a new node, or returns all problems of the profile.
pub(super) fn build_state(profile: &NodeProfile) -> Result<NodeState, ProfileProblems> {
    let mut problems = ProfileProblems::default();
    let mut known = built_in_models();
    known.extend(profile.models.clone());
    known.values_mut().for_each(complete_model);
    check::check_machine(profile, &mut problems);
    check::check_models(&profile.models, &mut problems);
    let mut gpus = Vec::with_capacity(profile.gpus.len());
    for (position, card) in profile.gpus.iter().enumerate() {
        gpus.extend(gpu(profile, &known, position, card, &mut problems));
    }
    check::check_addresses(profile, &mut problems);
    // Links name cards by their positions, so all cards must be there.
    if gpus.len() == profile.gpus.len() {
        check::identities(&gpus, &mut problems);
        join::lay(profile, &known, &mut gpus, &mut problems);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    sort_cards(&mut gpus);
    let used: BTreeSet<_> = gpus.iter().map(|gpu| gpu.model.clone()).collect();
    known.retain(|name, _| used.contains(name) || profile.models.contains_key(name));
    Ok(NodeState {
        generation: 1,
        profile: profile.name.clone(),
        driver: profile.driver.clone(),
        machine: build_machine(profile),
        numa: profile.numa.clone(),
        models: known,
        gpus,
        removed: Vec::new(),
        others: list_others(profile),
        faults: Vec::new(),
        reboots: 0,
    })
}

fn build_machine(profile: &NodeProfile) -> MachineFacts {
    MachineFacts {
        product: profile.machine.clone().unwrap_or_default(),
        platform: profile.platform,
        fabric: profile.fabric.clone(),
        vgpu: profile.vgpu.clone(),
        tegra: profile.tegra.clone(),
    }
}

/// Derives the architecture from the compute capability if the model has none. The numbers are
/// NVML's (`nvmlDeviceArchitecture_t`).
fn complete_model(model: &mut GpuModel) {
    if model.architecture == 0 {
        model.architecture = match model.compute_capability {
            (3, _) => 2,
            (5, _) => 3,
            (6, _) => 4,
            (7, 5) => 6,
            (7, _) => 5,
            (8, 9) => 8,
            (8, _) => 7,
            (9, _) => 9,
            (10.., _) => 10,
            _ => 0,
        };
    }
}

fn gpu(
    profile: &NodeProfile,
    known: &BTreeMap<String, GpuModel>,
    position: usize,
    card: &ProfileCard,
    problems: &mut ProfileProblems,
) -> Option<Gpu> {
    let name = card.model.as_ref().or(profile.model.as_ref());
    let name = name.cloned().unwrap_or_default();
    let Some(model) = known.get(&name) else {
        let there = known.keys().cloned().collect::<Vec<_>>().join(", ");
        let what = if name.is_empty() {
            format!(
                "card {} has no model; set `model` to one of: {there}",
                card.pci
            )
        } else {
            let pci = card.pci;
            format!("card {pci} has the unknown model `{name}`; there are: {there}")
        };
        problems.add_problem(&format!("gpus/{position}/model"), what);
        return None;
    };
    let derived = || made_up_uuid("GPU", &[&profile.name, &card.pci.to_string()]);
    let mut gpu = Gpu {
        uuid: card.uuid.clone().unwrap_or_else(derived),
        model: name,
        minor: card
            .minor
            .unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX)),
        pci: card.pci,
        under: card.under.clone(),
        numa: card.numa,
        memory_numa: card.memory_numa,
        serial: card
            .serial
            .clone()
            .unwrap_or_else(|| serial(&profile.name, card.pci)),
        lost: false,
        reset_at: None,
        mig_enabled: card.mig.is_some(),
        migs: Vec::new(),
        links: Vec::new(),
        sensors: model.idle.clone(),
        settings: CardSettings::default(),
        instances: Vec::new(),
        processes: Vec::new(),
    };
    cut(&mut gpu, model, (position, card), problems);
    Some(gpu)
}

/// Creates the MIG devices of a card.
fn cut(
    gpu: &mut Gpu,
    model: &GpuModel,
    (position, card): (usize, &ProfileCard),
    problems: &mut ProfileProblems,
) {
    let shapes = card.mig.as_deref().unwrap_or_default();
    let uuids = card.mig_uuids.as_deref().unwrap_or_default();
    if card.mig_uuids.is_some() && uuids.len() != shapes.len() {
        let (pci, here, wanted) = (card.pci, uuids.len(), shapes.len());
        let what = format!(
            "card {pci} has {here} mig_uuids for {wanted} MIG devices; give one for each, or none"
        );
        problems.add_problem(&format!("gpus/{position}/mig_uuids"), what);
    }
    for (at, shape) in shapes.iter().enumerate() {
        match mig::add_mig_device(gpu, model, shape) {
            Ok(made) => {
                let mig = gpu.migs.iter_mut().find(|mig| mig.uuid == made);
                if let (Some(mig), Some(uuid)) = (mig, uuids.get(at)) {
                    mig.uuid.clone_from(uuid);
                }
            }
            Err(why) => {
                let what = format!("card {} cannot be partitioned: {why}", card.pci);
                problems.add_problem(&format!("gpus/{position}/mig/{at}"), what);
            }
        }
    }
}

/// PCI functions that are not GPUs, NVSwitches among them.
fn list_others(profile: &NodeProfile) -> Vec<OtherFunction> {
    let switches = profile.nvswitches.iter().map(|switch| OtherFunction {
        pci: switch.pci,
        id: switch.id.clone(),
        class: "068000".to_owned(),
        driver: "nvidia-nvswitch".to_owned(),
        numa: switch.numa,
        under: switch.under.clone(),
    });
    switches.chain(profile.others.iter().cloned()).collect()
}
