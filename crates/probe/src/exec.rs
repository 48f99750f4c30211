//! Start of a probe that is the user's program: this process executes the program, with fewer
//! rights than the agent has.

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

/// Environment variables that a probe inherits.
const VARIABLES: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "NODE_NAME"];

/// Resource limits of the process, soft and hard.
const LIMITS: [(Resource, u64); 4] = [
    (Resource::As, 2 << 30),
    (Resource::Core, 0),
    (Resource::Fsize, 64 << 20),
    (Resource::Nofile, 256),
];

/// Error of the start of a program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is empty.
    #[error("no program is named")]
    NoProgram,
    /// The descriptor of the protocol is in use already.
    #[error("descriptor {DESCRIPTOR}, on which a probe writes, is taken")]
    Descriptor,
    /// The rights of the process cannot be dropped.
    #[error("cannot {attempt}")]
    Confine {
        /// Step that failed.
        attempt: &'static str,
        /// The kernel's error.
        source: rustix::io::Errno,
    },
    /// The program cannot be executed.
    #[error("cannot start {program}")]
    Start {
        /// Program as named on the command line.
        program: String,
        /// Error of execve(2).
        source: io::Error,
    },
}

/// Replaces this process by a program that runs as a probe of the agent. The lines of the protocol
/// go to [`DESCRIPTOR`], which is this process's standard output; what the program prints goes to
/// the standard error. The program is killed when the agent dies. It inherits five environment
/// variables, has no capabilities and cannot gain privileges. Its memory is limited to 2 GiB, its
/// files to 256 open ones of 64 MiB each, and it writes no core dump.
///
/// # Errors
/// The program cannot be started. Does not return otherwise.
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

/// Moves the standard output to the descriptor of the protocol. A library that prints to the
/// standard output must not break a line of the protocol.
fn open_descriptor() -> Result<(), Error> {
    let confined = |attempt| move |source| Error::Confine { attempt, source };
    let lines = fcntl_dupfd_cloexec(io::stdout(), DESCRIPTOR)
        .map_err(confined("move the standard output"))?;
    if lines.as_raw_fd() != DESCRIPTOR {
        return Err(Error::Descriptor);
    }
    fcntl_setfd(&lines, FdFlags::empty()).map_err(confined("keep a descriptor open"))?;
    dup2_stdout(io::stderr()).map_err(confined("replace the standard output"))?;
    // Not closed here: the program inherits the descriptor.
    let _ = lines.into_raw_fd();
    Ok(())
}

/// Drops the rights of this process that no probe needs.
fn confine() -> Result<(), Error> {
    let confined = |attempt| move |source| Error::Confine { attempt, source };
    // The setting survives execve(2), except of programs with set-user-ID bits or file capabilities
    // (prctl(2), PR_SET_PDEATHSIG). Such programs gain nothing here: see no_new_privs below.
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
    // A failure is ignored. It means that this process lacks CAP_SETPCAP, and with no_new_privs set
    // a program gets no capability that this process lacks (capabilities(7)).
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
