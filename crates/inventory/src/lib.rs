//! The inventory: all known devices in one snapshot, with a verdict for each. It keeps devices that
//! are not seen any more, so that a lost card stays listed with its cause, and it saves its state
//! over a restart of the agent.
//!
//! One task owns the state. All others read what the task publishes, or request a change.

mod inventory;
mod known;
mod publish;
pub mod release;
mod request;
mod sight;
mod state;
mod task;
mod tell;

pub use self::{
    publish::{Published, Readers},
    request::{ChangeRequest, ChangeRequests, Details, DeviceChange},
    state::{SavedState, StateDraft, StateFileStatus, keep_state_file},
    task::{Inputs, run_inventory},
};
