//! Tests of the device plugin front end over real sockets in temporary folders.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod node;
mod registrar;
mod setting;

mod calls;
mod lifecycle;
mod list;
mod overlap;
mod recovery;
