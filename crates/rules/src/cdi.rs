//! CDI: specs, in which a container runtime looks up the names that containers are given.

mod name;
mod spec;
mod tidy;

pub use self::{
    name::{Annotation, is_device, is_part},
    spec::{Device, Spec, split_kind},
};
