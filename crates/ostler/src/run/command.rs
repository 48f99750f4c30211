//! How this program starts itself again to run a command of a user's.

use std::ffi::OsString;

use prepare::command::Runner;
use probe::supervisor::Children;

/// A runner of commands below this program, with a place where its processes are written down.
pub(super) fn own_runner(children: Children) -> Runner {
    // The running program itself, even if its file was replaced meanwhile.
    let shim = ["/proc/self/exe", "shim"].map(OsString::from);
    Runner::new(shim, std::env::vars_os(), children)
}
