//! The whole agent: the real program on a simulated node, over real sockets in temporary folders.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod process;
mod rig;

mod commands;
mod driver;
mod hangs;
mod health;
mod ids;
mod overlap;
mod probes;
mod registration;
mod reload;
mod rpcs;
mod shutdown;
