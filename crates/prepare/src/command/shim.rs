//! The process between the agent and a command. All that the command starts is below the shim, however
//! it goes about it, and is ended with the command, and when the agent ends.
//!
//! Its standard input is a socket. The end of it is the order to end everything; what became of the
//! command is written to it, as one line.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::{
        fd::AsFd,
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use host::tree;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpid, kill_process_group,
    set_child_subreaper, wait, waitid,
};

/// Time between two tries to end what is left.
const STEP: Duration = Duration::from_millis(10);

/// Runs a command to its end, or to the end of the standard input, and ends all that it started. Returns
/// when none of it is left: a process that sits in the kernel does not hear that it was killed.
///
/// # Errors
/// The standard input is no socket. That the command cannot be started is told on it.
pub fn shim(command: &[OsString]) -> io::Result<()> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let group = match start(command) {
        Ok(group) => group,
        Err(error) => return writeln!(control, "error {error}"),
    };
    let has_ended = Arc::new(AtomicBool::new(false));
    let (order, is_done) = (control.try_clone()?, Arc::clone(&has_ended));
    thread::Builder::new().spawn(move || end_when_told(order, group, &is_done))?;
    // Its id is its own until it is reaped.
    let status = waitid(
        WaitId::Pid(group),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    );
    has_ended.store(true, Ordering::SeqCst);
    // Nobody listens any more if it was told to end.
    let _ = match status {
        Ok(Some(status)) => writeln!(control, "status {}", raw(&status)),
        Ok(None) => Ok(()),
        Err(error) => writeln!(control, "error it cannot be waited for: {error}"),
    };
    let _ = kill_process_group(group, Signal::KILL);
    reap_all();
    Ok(())
}

/// Starts the command in a process group of its own. What it leaves behind comes to this process.
fn start(command: &[OsString]) -> io::Result<Pid> {
    let no_command = || io::Error::new(io::ErrorKind::InvalidInput, "no command is named");
    let (program, args) = command.split_first().ok_or_else(no_command)?;
    set_child_subreaper(Some(getpid()))?;
    let child = Command::new(program)
        .args(args)
        .process_group(0)
        .stdin(Stdio::null())
        .spawn()?;
    Pid::from_raw(child.id().cast_signed()).ok_or_else(no_command)
}

/// Waits for the end of the input, and then kills everything until the command has ended.
fn end_when_told(mut order: UnixStream, group: Pid, has_ended: &AtomicBool) {
    while let Ok(1..) = order.read(&mut [0; 64]) {}
    while !has_ended.load(Ordering::SeqCst) {
        let _ = kill_process_group(group, Signal::KILL);
        tree::end_below_us();
        thread::sleep(STEP);
    }
}

/// Kills and reaps until nothing is left. The children of a process that is reaped are here already.
fn reap_all() {
    loop {
        tree::end_below_us();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_none_left) => return,
            }
        }
        thread::sleep(STEP);
    }
}

/// A status as `wait` tells it.
fn raw(status: &WaitIdStatus) -> i32 {
    match status.exit_status() {
        Some(code) => code << 8,
        None => status.terminating_signal().unwrap_or_default(),
    }
}
