//! NVIDIA's own names: the command line, the variables and the config file of
//! `nvidia-device-plugin`, translated at one place into [`Config`](crate::Config).

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
