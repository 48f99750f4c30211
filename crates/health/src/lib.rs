//! Health of devices: turns what probes and operators report about a device into a verdict with
//! causes, and says what ends each cause. Pure: time is an argument, nothing is read from the host,
//! and all state is in the record of each device.

mod check;
mod history;
mod policy;
mod record;
mod saved;
mod sight;

pub use self::{
    check::Check,
    history::{History, compare_verdicts},
    policy::HealthPolicy,
    record::DeviceRecord,
    saved::{Continuity, SavedDevice, SavedHealth, prune_devices},
    sight::{Now, Observation},
};
