//! Tests of the whole agent: the real program on a simulated node, over real sockets in temporary
//! folders.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod process;
mod rig;

mod backends;
mod broken;
mod causes;
mod cdi;
mod commands;
mod deep;
mod driver;
mod dropin;
mod hangs;
mod health;
mod ids;
mod keeping;
mod layout;
mod load;
mod looks;
mod operator;
mod overlap;
mod pools;
mod prestart;
mod probes;
mod registration;
mod reload;
mod rpcs;
mod scripts;
mod shutdown;
mod topology;
