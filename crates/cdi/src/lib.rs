//! CDI: specs, in which a container runtime looks up the names that containers are given. Their types, names,
//! order and checks.

mod check;
mod name;
mod spec;
mod tidy;

pub use self::{
    check::{Problem, Severity, check},
    name::{Annotation, is_device, is_part, split_kind},
    spec::Spec,
};
