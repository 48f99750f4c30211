//! CDI: specs, in which a container runtime looks up the names that containers are given.

mod name;
mod node;
mod spec;
mod tidy;

pub use self::{
    name::{Annotation, is_device, is_part, under},
    node::Nodes,
    spec::{ContainerEdits, Device, DeviceNode, Hook, Mount, Spec, split_kind},
};
