//! The whole agent: the real program on a simulated node, over real sockets in temporary folders.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod process;
mod rig;

mod broken;
mod commands;
mod driver;
mod dropin;
mod hangs;
mod health;
mod ids;
mod layout;
mod load;
mod overlap;
mod pools;
mod probes;
mod registration;
mod reload;
mod rpcs;
mod shutdown;
