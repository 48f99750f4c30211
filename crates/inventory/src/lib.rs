//! The inventory: everything that was seen, put into one snapshot with a verdict for each device.
//! It remembers devices that are not seen any more, so that a lost card stays listed, with its
//! cause; and what it remembers outlives the agent.
//!
//! [`run`] owns the state; everybody else reads what it publishes, or asks it for a change.

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
    request::{Change, Details, Request, Requests},
    state::{Draft, Keeping, State, keep},
    task::{Inputs, run},
};
