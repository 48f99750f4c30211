//! Commands that change a node.

mod code;
mod load;

use anyhow::anyhow;
use clap::{Subcommand, ValueEnum};
use config::Period;
use sim::{BusId, DeviceTarget, EccKind, Effect, Error, NewGpu, Node};

use self::{code::ReturnCode, load::ProcessArg};

/// One change of a node.
#[derive(Debug, Subcommand)]
pub(super) enum NodeChange {
    /// Let a card fall off the bus: every NVML call for it returns GPU_IS_LOST
    Lose {
        /// The card
        target: DeviceTarget,
    },
    /// Bring a lost card back
    Restore {
        /// The card
        target: DeviceTarget,
    },
    /// Let the driver report an XID on a card or MIG device
    Xid {
        /// The card or MIG device
        target: DeviceTarget,
        /// The XID, e.g. 79
        #[arg(value_name = "XID")]
        number: u64,
    },
    /// Count a memory error on a card or MIG device and let the driver report it
    Ecc {
        /// The card or MIG device
        target: DeviceTarget,
        /// The kind of the error
        kind: EccArg,
    },
    /// Let an NVML call hang, for ever or for a time
    Hang {
        /// The NVML function, for all its versions; `*` for all functions
        call: String,
        /// Only for this card or MIG device
        #[arg(long, value_name = "TARGET")]
        device: Option<DeviceTarget>,
        /// Duration of the call, e.g. 10s [default: until `clear`]
        #[arg(long = "for", value_name = "TIME")]
        time: Option<Period>,
    },
    /// Let an NVML call fail
    Fail {
        /// The NVML function, for all its versions; `*` for all functions
        call: String,
        /// The return code: a number, or a name such as GPU_IS_LOST
        code: ReturnCode,
        /// Only for this card or MIG device
        #[arg(long, value_name = "TARGET")]
        device: Option<DeviceTarget>,
    },
    /// End the hangs and failures of one NVML function, or all of them
    Clear {
        /// The NVML function as it was given to `hang` or `fail`
        call: Option<String>,
    },
    /// Set a sensor or counter, e.g. `set 3 temperature 90`
    Set {
        /// The card or MIG device
        target: DeviceTarget,
        /// The sensor; a wrong name lists all of them
        sensor: String,
        /// The value: degrees, milliwatts, MiB, per cent, MHz, or a count
        value: u64,
    },
    /// Set the processes that compute on a card; without any, remove all
    Processes {
        /// The card
        target: DeviceTarget,
        /// A process and the MiB of memory it uses, e.g. 4711:2048
        #[arg(value_name = "PID:MIB")]
        processes: Vec<ProcessArg>,
    },
    /// Take an NVLink of a card down, or bring it up
    Link {
        /// The card
        target: DeviceTarget,
        /// The number of the link
        link: usize,
        /// Down or up
        way: LinkState,
    },
    /// Put a card in: the one that was taken out last, or a new one
    AddGpu {
        /// Its PCI address
        #[arg(long, value_name = "ADDRESS")]
        pci: Option<BusId>,
        /// Its model, e.g. a100-sxm4-40gb; a wrong name lists all of them
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// The NUMA node to attach it to
        #[arg(long, value_name = "NODE")]
        numa: Option<u32>,
    },
    /// Take a card out
    RemoveGpu {
        /// The card
        target: DeviceTarget,
    },
    /// Switch MIG mode on or off; off removes the card's MIG devices
    Mig {
        /// On or off
        mode: MigMode,
        /// The card
        target: DeviceTarget,
    },
    /// Make a MIG device on a card
    AddMig {
        /// The card
        target: DeviceTarget,
        /// Its profile, e.g. 1g.5gb
        profile: String,
    },
    /// Remove a MIG device
    RemoveMig {
        /// The MIG device, e.g. 3:1
        target: DeviceTarget,
    },
    /// Take the driver library away, as on a machine without a driver
    UnplugDriver,
    /// Put the driver library back
    PlugDriver,
}

/// Kind of a memory error.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum EccArg {
    /// The hardware corrected it
    Corrected,
    /// The hardware could not correct it
    Uncorrected,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LinkState {
    /// The link carries data
    Up,
    /// The link carries no data
    Down,
}

/// MIG mode of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MigMode {
    /// The card is used through MIG devices
    On,
    /// The card is used as a whole
    Off,
}

// === impl NodeChange ===

impl NodeChange {
    /// Makes the change. Returns the line to print.
    pub(super) fn apply_change(self, node: &Node) -> anyhow::Result<String> {
        // The name is found before the change: the change may remove the device.
        let device = match self.change_target() {
            Some(target) => describe_target(node, target)?,
            None => "all devices".to_owned(),
        };
        let told = self
            .apply_to_device(node, &device)
            .map_err(|error| hint(node, error));
        Ok(told? + "\n")
    }

    fn change_target(&self) -> Option<&DeviceTarget> {
        match self {
            Self::Lose { target }
            | Self::Restore { target }
            | Self::Xid { target, .. }
            | Self::Ecc { target, .. }
            | Self::Set { target, .. }
            | Self::Processes { target, .. }
            | Self::Link { target, .. }
            | Self::RemoveGpu { target }
            | Self::Mig { target, .. }
            | Self::AddMig { target, .. }
            | Self::RemoveMig { target } => Some(target),
            Self::Hang { device, .. } | Self::Fail { device, .. } => device.as_ref(),
            Self::Clear { .. } | Self::AddGpu { .. } | Self::UnplugDriver | Self::PlugDriver => {
                None
            }
        }
    }

    fn apply_to_device(self, node: &Node, device: &str) -> Result<String, Error> {
        Ok(match self {
            Self::Lose { target } => {
                node.lose_cards(&target)?;
                format!("{device} has fallen off the bus")
            }
            Self::Restore { target } => {
                node.restore_cards(&target)?;
                format!("{device} is back on the bus")
            }
            Self::Xid { target, number } => {
                node.raise_xid(&target, number)?;
                format!(
                    "the driver reports {} on {device}",
                    nvidia_rules::xid::describe_xid(number)
                )
            }
            Self::Ecc { target, kind } => {
                node.count_ecc_error(&target, kind.into())?;
                format!("the driver reports a memory error on {device}")
            }
            Self::Set {
                target,
                sensor,
                value,
            } => {
                node.set_sensor(&target, &sensor, value)?;
                format!("{sensor} of {device} is {value}")
            }
            Self::Mig { mode, target } => {
                node.set_mig(&target, mode == MigMode::On)?;
                let mode = if mode == MigMode::On { "on" } else { "off" };
                format!("MIG mode is {mode} on {device}")
            }
            Self::AddMig { target, profile } => {
                let made = node.add_mig(&target, &profile)?.join(", ");
                format!("{device} has a new MIG device {profile}: {made}")
            }
            Self::RemoveMig { target } => {
                node.remove_mig(&target)?;
                format!("{device} is removed")
            }
            Self::RemoveGpu { target } => {
                node.remove_gpu(&target)?;
                format!("{device} is taken out; `ostler sim add-gpu` puts it back")
            }
            rest => rest.apply_to_use(node, device)?,
        })
    }

    /// Changes of processes and links.
    fn apply_to_use(self, node: &Node, device: &str) -> Result<String, Error> {
        Ok(match self {
            Self::Processes { target, processes } => {
                let processes: Vec<_> = processes.into_iter().map(ProcessArg::to_process).collect();
                node.set_processes(&target, &processes)?;
                match processes.len() {
                    0 => format!("no process computes on {device}"),
                    1 => format!("one process computes on {device}"),
                    count => format!("{count} processes compute on {device}"),
                }
            }
            Self::Link { target, link, way } => {
                node.set_link(&target, link, way == LinkState::Up)?;
                let way = if way == LinkState::Up { "up" } else { "down" };
                format!("NVLink {link} of {device} is {way}")
            }
            rest => rest.apply_to_driver(node, device)?,
        })
    }

    /// Changes that are not for one device.
    fn apply_to_driver(self, node: &Node, device: &str) -> Result<String, Error> {
        Ok(match self {
            Self::Hang {
                call,
                device: target,
                time,
            } => {
                let millis = time
                    .map(|time| u64::try_from(time.as_duration().as_millis()).unwrap_or(u64::MAX));
                node.set_fault(&call, target.as_ref(), Effect::Hang { millis })?;
                let end = time.map_or("until `ostler sim clear`".to_owned(), |t| {
                    format!("for {t}")
                });
                format!("{} hangs {end} on {device}", describe_call(&call))
            }
            Self::Fail {
                call,
                code,
                device: target,
            } => {
                node.set_fault(
                    &call,
                    target.as_ref(),
                    Effect::Fail {
                        code: code.nvml_number(),
                    },
                )?;
                format!("{} fails with {code} on {device}", describe_call(&call))
            }
            Self::Clear { call } => match node.clear_faults(call.as_deref())? {
                0 => "there was no such fault; `ostler sim show` lists those there are".to_owned(),
                1 => "one fault has ended".to_owned(),
                count => format!("{count} faults have ended"),
            },
            Self::AddGpu { pci, model, numa } => {
                let gpu = node.add_gpu(&NewGpu { pci, model, numa })?;
                let (index, uuid, name) = (gpu.index, gpu.uuid, gpu.name);
                format!("GPU {index} ({uuid}) is put in at {}: {name}", gpu.pci)
            }
            Self::UnplugDriver => {
                node.unplug_driver()?;
                "the driver library is taken away; programs that have loaded it keep it".to_owned()
            }
            Self::PlugDriver => {
                node.plug_driver()?;
                format!(
                    "the driver library is at {}",
                    node.driver_library().display()
                )
            }
            _ => String::new(),
        })
    }
}

// === impl EccKind ===

impl From<EccArg> for EccKind {
    fn from(kind: EccArg) -> Self {
        match kind {
            EccArg::Corrected => Self::Corrected,
            EccArg::Uncorrected => Self::Uncorrected,
        }
    }
}

/// Describes the devices that a target means. A target that does not exist is returned as typed.
fn describe_target(node: &Node, target: &DeviceTarget) -> Result<String, Error> {
    let gpus = node.list_gpus()?;
    let card = |wanted: &dyn Fn(&sim::GpuInfo) -> bool| {
        let gpu = gpus.iter().find(|gpu| wanted(gpu));
        gpu.map(|gpu| format!("GPU {} ({})", gpu.index, gpu.uuid))
    };
    let found = match target {
        DeviceTarget::All => Some(format!("each of the {} GPUs", gpus.len())),
        DeviceTarget::Index(index) => card(&|gpu| gpu.index == *index),
        DeviceTarget::Pci(pci) => card(&|gpu| gpu.pci == *pci),
        DeviceTarget::Uuid(uuid) => card(&|gpu| gpu.uuid == *uuid),
        DeviceTarget::Mig(..) => None,
    };
    let part = || -> Result<Option<String>, Error> {
        let typed = target.to_string();
        let migs = node.list_migs()?;
        let mig = migs
            .iter()
            .find(|mig| mig.index == typed || mig.uuid == typed);
        Ok(mig.map(|mig| format!("MIG device {} ({}, {})", mig.index, mig.uuid, mig.profile)))
    };
    Ok(match found {
        Some(found) => found,
        None => part()?.unwrap_or_else(|| target.to_string()),
    })
}

fn describe_call(call: &str) -> &str {
    if call == "*" { "every NVML call" } else { call }
}

/// Adds a remedy to an error.
fn hint(node: &Node, error: Error) -> anyhow::Error {
    let off = || {
        node.list_gpus()
            .is_ok_and(|gpus| gpus.iter().any(|gpu| !gpu.mig_enabled))
    };
    match error {
        Error::Missing(_) => anyhow!("{error}; `ostler sim show` lists those there are"),
        Error::Mig(_) if off() => {
            anyhow!(
                "{error}; `ostler sim show` shows the cards, `ostler sim mig on TARGET` switches MIG mode on"
            )
        }
        Error::Mig(_) => anyhow!("{error}; `ostler sim remove-mig` makes room"),
        error => error.into(),
    }
}
