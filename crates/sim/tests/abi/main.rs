//! Tests of the driver library from outside: loaded with dlopen from a node's folder and called
//! over its C ABI.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]
#![expect(unsafe_code, reason = "a C ABI is called")]

mod cards;
mod chaos;
mod drive;
mod events;
mod faults;
mod files;
mod legacy;
mod links;
mod partitions;
mod processes;
mod rig;
mod robust;
mod settings;
mod table;
