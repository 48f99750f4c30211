//! Access to the host: a root folder that stands for `/`, bounded reads of small files, the identity
//! of a file, watched folders, atomic replacement of files, blocking jobs that may hang, unix
//! sockets that remove their files, and a process with all its descendants.

pub mod atomic;
pub mod lane;
pub mod small;
pub mod socket;
pub mod tree;
pub mod watch;

mod identity;
mod root;

pub use self::{identity::FileIdentity, root::HostRoot};
