//! Boundary between the agent and the probe processes: the line protocol, the main loop of a probe
//! process, the host's files that every backend reads, and the supervisor in the agent. The
//! supervisor starts probe processes, restarts them, and goes on if one hangs or crashes.

pub mod check;
pub mod child;
pub mod exec;
pub mod protocol;
#[cfg(feature = "sample")]
pub mod sample;
pub mod supervisor;
pub mod sysfs;

mod calls;
mod sighting;

pub use self::{
    calls::{CallGuard, CallTable, OverdueCall},
    sighting::{BackendState, ReleaseStatus, Releases, Update},
};
