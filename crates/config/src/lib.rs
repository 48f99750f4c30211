//! `ostler.yaml`, flags and environment → one resolved [`Config`]. Flags and variables win over
//! the file, the file over the defaults.

mod file;
mod period;
mod resolve;

pub use self::{
    file::{Error, File, load, parse},
    period::Period,
    resolve::{Config, Health, Kubelet, Overrides, Probe},
};
