//! Preparation of devices before a container starts: the devices must be free, or are reset, or a
//! command of the user runs first. All commands of users and vendors run in this crate. It calls no
//! driver: it waits for the samples of the probe.

pub mod command;
mod deep;
mod look;
mod preparer;
mod reset;

pub use self::{
    deep::{DeepCheckChannels, LastRound, run_deep_checks},
    preparer::Preparer,
};
