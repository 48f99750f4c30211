//! Command line, variables and config file of `nvidia-device-plugin`, translated into
//! [`Config`](crate::Config) in one place, `translate`.

mod file;
mod flags;
mod help;
mod merge;
mod pools;
mod sharing;
mod translate;
mod validate;

pub use self::{
    file::{
        File, FlagsSection, GfdFlags, Imex, NamedPattern, PluginFlags, SleepInterval, is_v1, load,
        parse,
    },
    flags::{Call, FlagError, Flags},
    help::help,
    sharing::{DeviceRef, Devices, Replicated, ReplicatedResource, ResourceName},
    translate::{config, resolve},
};
