//! Runner of users' commands: this program, started again as `ostler shim`.

use std::ffi::OsString;

use prepare::command::Runner;
use probe::supervisor::ChildRegistry;

/// Makes the runner of users' commands. Its processes are recorded in `children`, so that the reaper
/// leaves them alone.
pub(super) fn own_runner(children: ChildRegistry) -> Runner {
    // This link names the running program even if its file was replaced by an upgrade (proc(5)).
    let shim = ["/proc/self/exe", "shim"].map(OsString::from);
    Runner::new(shim, std::env::vars_os(), children)
}
