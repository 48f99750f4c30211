//! Reads `ostler.yaml`, or NVIDIA's v1 file, with flags and environment variables into one resolved
//! [`Config`]. Flags win over variables, variables over the file, the file over the defaults. All
//! problems are reported at once, each with its place and a remedy. The origin of each value is
//! kept for `ostler config explain`.

mod backends;
mod cdi;
mod error;
mod event_action;
mod explain;
mod file;
mod health;
mod kubelet;
pub mod nvidia;
mod origin;
mod period;
mod pools;
mod pre_start;
mod probe;
mod problem;
mod resolve;
mod schema;
mod size;
mod source;
mod thresholds;

#[cfg(feature = "acme")]
pub use self::backends::{AcmeBackend, AcmeHalves};
pub use self::{
    backends::{
        BackendOverrides, Backends, Discovery, ExecBackend, Mig, NvidiaBackend, NvidiaCdi,
        NvidiaHandover, NvidiaOverrides, NvidiaProbe, Startup, XidBase, XidSet, Xids,
    },
    cdi::{Cdi, RuntimeSupport},
    error::Error,
    event_action::EventAction,
    explain::ConfigRow,
    file::{load_native, parse_native},
    health::{Health, MonitorLoss, Periods, TierWeights, UnknownAs, Weight},
    kubelet::Kubelet,
    origin::Origins,
    period::{Period, PeriodOrOff},
    pools::{
        Distinct, ExtraMount, Handover, IdStrategy, InvalidTemplate, KindName, ListStrategy,
        Method, Placement, Policy, Pool, Pools, Selector, Sharing, Template, ValueTemplate,
        Weights,
    },
    pre_start::{PreStart, PreStartMode},
    probe::Probe,
    problem::{ConfigProblem, ConfigProblems, ProblemSeverity, Snippet, ValueOrigin},
    resolve::{Config, Overrides, Resolved, native},
    schema::schema,
    size::Size,
    source::Placed,
    thresholds::{NumberOrOff, Thresholds},
};
