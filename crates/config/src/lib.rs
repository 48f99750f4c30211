//! `ostler.yaml`, or NVIDIA's v1 file, with flags and environment → one resolved [`Config`]. Flags
//! and variables win over the file, the file over the defaults. Everything that is wrong is told
//! at once, with its place and a remedy; where each value came from is kept.

mod error;
mod explain;
mod file;
pub mod nvidia;
mod origin;
mod period;
mod pools;
mod problem;
mod resolve;
mod size;
mod source;

pub use self::{
    error::Error,
    explain::Row,
    file::{
        BackendsFile, CdiFile, File, HandoverFile, HealthFile, KubeletFile, NvidiaBackendFile,
        PlacementFile, PoolFile, ProbeFile, SharingFile, load, parse, schema,
    },
    origin::Origins,
    period::Period,
    pools::{
        Distinct, Handover, IdStrategy, KindName, ListStrategy, Method, Mig, Placement, Policy,
        Pool, Pools, Selector, Sharing, Template, Weights,
    },
    problem::{Origin, Problem, Problems, Severity, Snippet},
    resolve::{
        Cdi, Config, Discovery, Health, Kubelet, Mode, Overrides, Probe, Resolved, XidSet, Xids,
        native,
    },
    size::Size,
    source::Said,
};
