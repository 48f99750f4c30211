//! CDI: specs, in which a container runtime looks up the names that containers are given. Their types, names,
//! order and checks, and the store of their files.

mod check;
mod name;
mod spec;
pub mod store;
mod tidy;

pub use self::{
    check::{Problem, Severity, check},
    name::{Annotation, is_device, is_part, split_kind},
    spec::Spec,
    store::{InUse, Key, Outcome, Store, Wanted},
};

/// The most bytes that are read of a spec or a config of others.
const TEXT_LIMIT: u64 = 4 << 20;
