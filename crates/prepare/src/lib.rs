//! Preparation of devices before a container starts on them: nobody else may be at work on them, or
//! they are reset, or a command of the user's runs first. All commands of users and vendors are run
//! here, in one place. Nothing here asks a driver; it waits for what the probe says.

pub mod command;
mod deep;
mod look;
mod preparer;
mod reset;

pub use self::{
    deep::{DeepWires, Rounds, run_deep_checks},
    preparer::Preparer,
};
