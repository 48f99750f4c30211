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
        FlagsSection, GfdFlags, ImexSection, NamedPattern, PluginFlags, SleepInterval, V1File,
        is_v1, load_v1, parse_v1,
    },
    flags::{FlagError, GivenFlags, Invocation},
    help::help,
    sharing::{
        DeviceRef, NvidiaResourceName, ReplicatedResource, ReplicatedResources, SharedDevices,
    },
    translate::{translate_file, translate_flags},
};
