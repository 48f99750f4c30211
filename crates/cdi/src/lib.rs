//! CDI: specs, in which a container runtime looks up the names that containers are given. Their types, names,
//! order and checks, the store of their files, and what is known of the runtime that reads them.

mod check;
mod name;
mod runtime;
mod spec;
pub mod store;
mod tidy;

pub use self::{
    check::{Problem, Severity, check},
    name::{Annotation, is_device, is_part, split_kind},
    runtime::{Evidence, evidence},
    spec::Spec,
    store::{InUse, Key, Outcome, Store, Wanted},
};

/// The most bytes that are read of a spec or a config of others.
const TEXT_LIMIT: u64 = 4 << 20;
