//! CDI: the names that containers are given, and the specs in which a runtime looks them up.

mod check;
mod flag;
mod hook;
mod layout;
mod make;
mod mount;
mod name;
mod node;
mod platform;
mod spec;
mod tidy;
mod wish;

pub(crate) use self::name::annotation;
pub use self::{
    check::{Problem, Severity, check},
    make::{Made, management, specs},
    name::{ALL, CLASSES, GDRCOPY, GDS, GPU, IMEX, MOFED, VENDOR, is_device, is_part, qualified},
    spec::{ContainerEdits, Device, DeviceNode, Hook, Mount, Spec},
    wish::Wish,
};

#[cfg(test)]
mod tests;
