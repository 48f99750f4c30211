//! What the whole house talks about: devices, their ids and places, the links between them, their
//! health, and the snapshot that holds it all. No I/O, no async, no policy.

mod backend;
mod device;
mod id;
mod link;
mod pci;
mod snapshot;
mod telemetry;
mod verdict;

pub use self::{
    backend::{Backend, Driver, Extras, Phase, StuckCall, Unreadable, Work},
    device::{CallFailure, Device, DeviceNode, Kind, NodeRole},
    id::{DeviceId, InvalidResourceName, ResourceName},
    link::{Ancestor, Link},
    pci::{InvalidPciAddress, PciAddress},
    snapshot::{Entry, Snapshot},
    telemetry::{Ecc, Telemetry},
    verdict::{Cause, CauseKind, State, Verdict},
};
