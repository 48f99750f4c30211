//! The host as the agent sees it: a rooted `/sys`, `/proc` and `/dev`, small files of others that
//! are read without waiting, the identity of a file, folders that tell when they change, files that
//! are replaced whole, blocking work that may hang, unix sockets that clean up after themselves, and
//! a process with all that it started.

pub mod atomic;
pub mod lane;
pub mod small;
pub mod socket;
pub mod tree;
pub mod watch;

mod identity;
mod root;

pub use self::{identity::FileIdentity, root::Root};
