//! A probe that is a program of the user's: this process becomes it, with fewer rights than the agent
//! has.

use std::{
    env,
    ffi::OsString,
    io,
    os::{
        fd::{AsRawFd as _, IntoRawFd as _},
        unix::process::CommandExt as _,
    },
    process::Command,
};

use rustix::{
    io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd},
    process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit},
    stdio::dup2_stdout,
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

use crate::protocol::DESCRIPTOR;

/// The variables that a probe inherits.
const VARIABLES: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "NODE_NAME"];

/// Limits of the process, each with its value.
const LIMITS: [(Resource, u64); 4] = [
    (Resource::As, 2 << 30),
    (Resource::Core, 0),
    (Resource::Fsize, 64 << 20),
    (Resource::Nofile, 256),
];

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No program is named.
    #[error("no program is named")]
    NoProgram,
    /// The descriptor for the lines of the probe is taken.
    #[error("descriptor {DESCRIPTOR}, on which a probe writes, is taken")]
    Descriptor,
    /// The rights of the process could not be taken away.
    #[error("cannot {attempt}")]
    Confine {
        /// The step that failed.
        attempt: &'static str,
        /// The kernel's reason.
        source: rustix::io::Errno,
    },
    /// The program could not be started.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
}

/// Becomes a program and its arguments, as a probe of the agent: lines go to [`DESCRIPTOR`], which is
/// the standard output of this process, and the standard output to the standard error. The program
/// dies with the agent, has few variables, no capabilities, no way to more rights, and limits on
/// memory (2 GiB), files (256 open, 64 MiB each) and core dumps (none).
///
/// # Errors
/// Why the program was not started. Without an error it does not return.
pub fn exec(command: &[OsString]) -> Result<std::convert::Infallible, Error> {
    let (program, arguments) = command.split_first().ok_or(Error::NoProgram)?;
    open_descriptor()?;
    confine()?;
    let inherited = VARIABLES
        .into_iter()
        .filter_map(|name| Some((name, env::var_os(name)?)));
    let source = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(inherited)
        .exec();
    Err(Error::Start {
        program: program.to_string_lossy().into_owned(),
        source,
    })
}

/// Moves the standard output to the descriptor of the protocol, so that nothing else that prints is
/// taken for a line of it.
fn open_descriptor() -> Result<(), Error> {
    let confined = |attempt| move |source| Error::Confine { attempt, source };
    let lines = fcntl_dupfd_cloexec(io::stdout(), DESCRIPTOR)
        .map_err(confined("move the standard output"))?;
    if lines.as_raw_fd() != DESCRIPTOR {
        return Err(Error::Descriptor);
    }
    fcntl_setfd(&lines, FdFlags::empty()).map_err(confined("keep a descriptor open"))?;
    dup2_stdout(io::stderr()).map_err(confined("replace the standard output"))?;
    // It stays open until the program ends.
    let _ = lines.into_raw_fd();
    Ok(())
}

/// Takes rights from this process that no probe needs.
fn confine() -> Result<(), Error> {
    let confined = |attempt| move |source| Error::Confine { attempt, source };
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(confined("ask for the parent's death signal"))?;
    for (resource, most) in LIMITS {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit).map_err(confined("set a limit"))?;
    }
    set_no_new_privs(true).map_err(confined("give up new privileges"))?;
    // An agent that may not change the bounding set has no capabilities to pass on by it: since new
    // privileges are given up, a program has no more than this process (capabilities(7)).
    for capability in CapabilitySet::all() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    clear_ambient_capability_set().map_err(confined("clear the ambient capabilities"))?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(confined("give up the capabilities"))
}
