//! Types that all crates share: devices, their ids and addresses, the links between them, their
//! health, and the snapshot with all of it. No I/O, no async, no policy.

mod attribute;
mod backend;
mod card;
mod companion;
mod condition;
mod device;
mod driver_files;
mod event;
mod id;
mod index;
mod known;
mod link;
mod node_pattern;
mod pci;
mod reading;
#[cfg(feature = "sample")]
pub mod sample;
mod shape;
mod snapshot;
mod telemetry;
mod transition;
mod verdict;
mod version;

pub use self::{
    attribute::{
        AttributeName, Attributes, Capacities, CapacityName, InvalidAttributeName, Value, names,
    },
    backend::{Backend, Driver, Extras, Phase, StuckCall, Unreadable, Work},
    card::{CardRef, InvalidCardRef},
    companion::Companions,
    condition::{Condition, ConditionName, ConditionState, InvalidConditionName},
    device::{CallFailure, Device, DeviceNode, Kind, NodeRole},
    driver_files::{DriverFile, DriverFiles, FileKind, FileLink, NodeStat, Platform, resolve_link},
    event::{Event, EventCode, InvalidEventCode},
    id::{DeviceId, InvalidResourceName, ResourceName},
    index::{Index, InvalidIndex},
    known::{KnownOr, known_items},
    link::{Ancestor, Link},
    node_pattern::{InvalidNodePattern, NodePattern},
    pci::{InvalidPciAddress, PciAddress},
    reading::{Deep, Performing, Reading, RecoveryAction, Tier, Trend, Values, Working},
    shape::{Shape, Span},
    snapshot::{Entry, Snapshot},
    telemetry::{Ecc, Process, Samples, SinceReset, Telemetry},
    transition::Transition,
    verdict::{Cause, CauseKind, State, Verdict},
    version::{InvalidVersion, Version},
};
