//! Container Device Interface (CDI): specs, in which a container runtime looks up the device names of a
//! container. This crate has their types, names, order and checks, the store of their files, and the evidence
//! that the runtime reads them.

mod check;
mod name;
mod runtime;
mod spec;
pub mod store;
mod tidy;

pub use self::{
    check::{SpecProblem, SpecSeverity, check_spec},
    name::{Annotation, is_device, is_part, split_kind},
    runtime::{SupportEvidence, find_runtime_support},
    spec::CdiSpec,
    store::{InUse, SpecKey, Store, StoreOutcome, WantedFile},
};

/// Size limit, in bytes, of specs and configs that are read.
const TEXT_LIMIT: u64 = 4 << 20;
