//! Commands that change a node while programs use it.

use sim_node::{
    mig,
    state::{DevicePlace, Effect, Gpu, GpuProcess, NodeEvent, NodeState, NvmlFault, Sensors},
    store,
};

use super::{
    Error, GpuInfo, Node, Result,
    card::{self, NewGpu},
    describe_gpu,
};
use crate::{profile, target::DeviceTarget};

/// Event types of NVML (`nvmlEventType…`), and their bits.
const SINGLE_BIT: u64 = 1;
const DOUBLE_BIT: u64 = 2;
const XID: u64 = 8;

/// Kind of a memory error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EccKind {
    /// The hardware corrected the error.
    Corrected,
    /// The hardware could not correct the error.
    Uncorrected,
}

// === impl Node ===

impl Node {
    /// Makes cards fall off the bus: every call for them returns `GPU_IS_LOST`. No event is raised.
    ///
    /// # Errors
    /// If the target does not exist, or is a MIG device.
    pub fn lose_cards(&self, target: &DeviceTarget) -> Result<()> {
        self.edit_cards(target, |gpu| gpu.lost = true)
    }

    /// Brings lost cards back, as a reset of the bus does: counters that count from the last reset
    /// are zero. A card that is not lost does not change.
    ///
    /// # Errors
    /// If the target does not exist, or is a MIG device.
    pub fn restore_cards(&self, target: &DeviceTarget) -> Result<()> {
        self.edit_cards(target, |gpu| {
            if std::mem::take(&mut gpu.lost) {
                gpu.count_anew();
            }
        })
    }

    /// Raises an XID on cards or on a MIG device.
    ///
    /// # Errors
    /// If the target does not exist.
    pub fn raise_xid(&self, target: &DeviceTarget, code: u64) -> Result<()> {
        let state = self.node_state()?;
        for place in target.find_places(&state)? {
            store::append(self.node_dir(), &device_event(&state, place, XID, code))?;
        }
        Ok(())
    }

    /// Counts a memory error on cards or on a MIG device and raises its event. A MIG device has a
    /// counter of its own for uncorrected errors only; corrected ones count for its card.
    ///
    /// # Errors
    /// If the target does not exist.
    pub fn count_ecc_error(&self, target: &DeviceTarget, kind: EccKind) -> Result<()> {
        let events = self.change_node(|state| {
            let places = target.find_places(state)?;
            for (gpu, mig) in &places {
                let Gpu { sensors, migs, .. } = &mut state.gpus[*gpu];
                let counter = match (kind, mig) {
                    (EccKind::Corrected, _) => &mut sensors.ecc_corrected,
                    (EccKind::Uncorrected, None) => &mut sensors.ecc_uncorrected,
                    (EccKind::Uncorrected, Some(mig)) => &mut migs[*mig].ecc_uncorrected,
                };
                *counter = counter.saturating_add(1);
            }
            let kind = match kind {
                EccKind::Corrected => SINGLE_BIT,
                EccKind::Uncorrected => DOUBLE_BIT,
            };
            let events = places
                .into_iter()
                .map(|place| device_event(state, place, kind, 0));
            Ok(events.collect::<Vec<_>>())
        })?;
        for event in events {
            store::append(self.node_dir(), &event)?;
        }
        Ok(())
    }

    /// Makes an NVML call hang or fail, for one device or for all. A name without a version suffix
    /// stands for all versions, `*` for all calls.
    ///
    /// # Errors
    /// If the target does not exist, or the call has no NVML name.
    pub fn set_fault(
        &self,
        call: &str,
        target: Option<&DeviceTarget>,
        effect: Effect,
    ) -> Result<()> {
        if call != "*" && !call.starts_with("nvml") {
            let call = call.to_owned();
            return Err(Error::Call { call });
        }
        self.change_node(|state| {
            let devices = match target {
                // One fault for all devices, so that cards that are added later have it, too.
                None | Some(DeviceTarget::All) => vec![None],
                Some(one) => one
                    .find_places(state)?
                    .into_iter()
                    .map(|p| Some(device_uuid(state, p)))
                    .collect(),
            };
            for device in devices {
                let call = call.to_owned();
                state
                    .faults
                    .retain(|f| f.call != call || f.device != device);
                state.faults.push(NvmlFault {
                    call,
                    device,
                    effect,
                });
            }
            Ok(())
        })
    }

    /// Ends the faults of one call, or all faults. Calls that hang already go on. Returns the
    /// number of ended faults.
    ///
    /// # Errors
    /// If the state cannot be changed.
    pub fn clear_faults(&self, call: Option<&str>) -> Result<usize> {
        self.change_node(|state| {
            let before = state.faults.len();
            state
                .faults
                .retain(|f| call.is_some_and(|call| f.call != call));
            Ok(before - state.faults.len())
        })
    }

    /// Sets a sensor or counter. A MIG device has only `memory-used`.
    ///
    /// # Errors
    /// If the target does not exist, or has no such sensor; the message lists its sensors.
    pub fn set_sensor(&self, target: &DeviceTarget, name: &str, value: u64) -> Result<()> {
        self.change_node(|state| {
            for place in target.find_places(state)? {
                let device = device_uuid(state, place);
                let gpu = &mut state.gpus[place.0];
                let (field, known) = match place.1 {
                    None => (gpu.sensors.field(name), Sensors::sensor_names().collect()),
                    Some(mig) => {
                        let field = &mut gpu.migs[mig].memory_used_mib;
                        (
                            (name == "memory-used").then_some(field),
                            vec!["memory-used"],
                        )
                    }
                };
                *field.ok_or_else(|| Error::Sensor {
                    device,
                    name: name.to_owned(),
                    known: known.join(", "),
                })? = value;
            }
            Ok(())
        })
    }

    /// Inserts a card.
    ///
    /// # Errors
    /// If the PCI address is in use, or the model is unknown.
    pub fn add_gpu(&self, new: &NewGpu) -> Result<GpuInfo> {
        self.change_node(|state| {
            let gpu = card::make_card(state, new)?;
            let uuid = gpu.uuid.clone();
            state.gpus.push(gpu);
            profile::sort_cards(&mut state.gpus);
            let found = state
                .gpus
                .iter()
                .enumerate()
                .find(|(_, gpu)| gpu.uuid == uuid);
            let (index, gpu) = found.expect("it was put in above");
            Ok(describe_gpu(state, index, gpu))
        })
    }

    /// Removes cards together with their MIG devices.
    ///
    /// # Errors
    /// If the target does not exist, or is a MIG device.
    pub fn remove_gpu(&self, target: &DeviceTarget) -> Result<()> {
        self.change_node(|state| {
            let places = find_cards(state, target)?;
            // From the back, so that the remaining positions stay valid.
            for place in places.into_iter().rev() {
                let mut gpu = state.gpus.remove(place);
                gpu.migs.clear();
                gpu.instances.clear();
                gpu.processes.clear();
                gpu.lost = false;
                // Kept: a card that is inserted at the same address is the same one.
                state.removed.push(gpu);
            }
            Ok(())
        })
    }

    /// Switches MIG mode on or off. Switching it off removes the MIG devices.
    ///
    /// # Errors
    /// If the target does not exist, is a MIG device, or does not support MIG.
    pub fn set_mig(&self, target: &DeviceTarget, enabled: bool) -> Result<()> {
        self.change_node(|state| {
            for place in find_cards(state, target)? {
                let gpu = &mut state.gpus[place];
                let model = &state.models[&gpu.model];
                if model.mig.is_empty() {
                    let (gpu, model) = (gpu.uuid.clone(), model.name.clone());
                    return Err(mig::Error::Unsupported { gpu, model }.into());
                }
                gpu.mig_enabled = enabled;
                if !enabled {
                    gpu.migs.clear();
                    gpu.instances.clear();
                }
            }
            Ok(())
        })
    }

    /// Creates a MIG device on each card of the target. Returns the UUIDs.
    ///
    /// # Errors
    /// If the target does not exist, has no such profile or no room, or MIG mode is off.
    pub fn add_mig(&self, target: &DeviceTarget, profile: &str) -> Result<Vec<String>> {
        self.change_node(|state| {
            let places = find_cards(state, target)?;
            let mut made = Vec::with_capacity(places.len());
            for place in places {
                let gpu = &mut state.gpus[place];
                made.push(mig::add_mig_device(
                    gpu,
                    &state.models[&gpu.model],
                    profile,
                )?);
            }
            Ok(made)
        })
    }

    /// Removes a MIG device.
    ///
    /// # Errors
    /// If the target does not exist, or is a card.
    pub fn remove_mig(&self, target: &DeviceTarget) -> Result<()> {
        self.change_node(|state| {
            for (gpu, mig) in target.find_places(state)? {
                let Some(mig) = mig else {
                    return Err(Error::Kind {
                        device: state.gpus[gpu].uuid.clone(),
                        kind: "whole card",
                        wanted: "only a MIG device can be removed like this",
                    });
                };
                let gpu = &mut state.gpus[gpu];
                let gone = gpu.migs.remove(mig);
                // The GPU instance ends with its last MIG device.
                if gpu.migs.iter().all(|mig| mig.gi != gone.gi) {
                    gpu.instances.retain(|instance| instance.id != gone.gi);
                }
            }
            Ok(())
        })
    }

    /// Sets the processes that use a card.
    ///
    /// # Errors
    /// If the target does not exist, or is a MIG device.
    pub fn set_processes(&self, target: &DeviceTarget, processes: &[GpuProcess]) -> Result<()> {
        self.edit_cards(target, |gpu| gpu.processes = processes.to_vec())
    }

    /// Sets one NVLink of a card up or down. A link that the card does not have is ignored.
    ///
    /// # Errors
    /// If the target does not exist, or is a MIG device.
    pub fn set_link(&self, target: &DeviceTarget, link: usize, active: bool) -> Result<()> {
        self.edit_cards(target, |gpu| {
            if let Some(link) = gpu.links.get_mut(link) {
                link.active = active;
            }
        })
    }

    fn edit_cards(&self, target: &DeviceTarget, edit: impl Fn(&mut Gpu)) -> Result<()> {
        self.change_node(|state| {
            for place in find_cards(state, target)? {
                edit(&mut state.gpus[place]);
            }
            Ok(())
        })
    }
}

/// Positions of the target's cards; an error if the target is a MIG device.
fn find_cards(state: &NodeState, target: &DeviceTarget) -> Result<Vec<usize>> {
    let places = target
        .find_places(state)?
        .into_iter()
        .map(|place| match place {
            (gpu, None) => Ok(gpu),
            (_, Some(_)) => Err(Error::Kind {
                device: device_uuid(state, place),
                kind: "MIG device",
                wanted: "the command is for whole cards",
            }),
        });
    places.collect()
}

fn device_uuid(state: &NodeState, (gpu, mig): DevicePlace) -> String {
    let gpu = &state.gpus[gpu];
    mig.map_or(&gpu.uuid, |mig| &gpu.migs[mig].uuid).clone()
}

fn device_event(state: &NodeState, (gpu, mig): DevicePlace, kind: u64, data: u64) -> NodeEvent {
    let gpu = &state.gpus[gpu];
    let mig = mig.map(|mig| &gpu.migs[mig]);
    NodeEvent {
        gpu: gpu.uuid.clone(),
        gi: mig.map(|mig| mig.gi),
        ci: mig.map(|mig| mig.ci),
        kind,
        data,
    }
}
