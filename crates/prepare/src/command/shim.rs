//! Shim: the process between the agent and a command. It is a child subreaper (prctl(2)), so that every
//! process that the command starts stays below it, also after a double fork. It kills them all when the
//! command or the agent ends.
//!
//! The standard input is a socket. The end of its input is the order to kill everything. The shim writes the
//! result of the command to it, as one line.

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

/// Time between two tries to kill the processes that are left.
const STEP: Duration = Duration::from_millis(10);

/// Runs a command to its end, or to the end of the standard input, and kills all its descendants. Returns when
/// none is left. That can take long: a process in an uninterruptible system call survives SIGKILL until the
/// call returns.
///
/// # Errors
/// The standard input is not a socket. A command that cannot be started is reported on the socket.
pub fn shim(command: &[OsString]) -> io::Result<()> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let group = match start_in_group(command) {
        Ok(group) => group,
        Err(error) => return writeln!(control, "error {error}"),
    };
    let has_ended = Arc::new(AtomicBool::new(false));
    let (order, is_done) = (control.try_clone()?, Arc::clone(&has_ended));
    thread::Builder::new().spawn(move || end_when_told(order, group, &is_done))?;
    // WNOWAIT: the process stays a zombie, so that its id is not used again. A kill of its group can then
    // not hit another one.
    let status = waitid(
        WaitId::Pid(group),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    );
    has_ended.store(true, Ordering::SeqCst);
    // The write fails if the agent has closed the socket. That was the order to end, so it is no error.
    let _ = match status {
        Ok(Some(status)) => writeln!(control, "status {}", encode_status(&status)),
        Ok(None) => Ok(()),
        Err(error) => writeln!(control, "error it cannot be waited for: {error}"),
    };
    let _ = kill_process_group(group, Signal::KILL);
    reap_all();
    Ok(())
}

/// Starts the command in a process group of its own, and makes this process the parent of its orphans.
fn start_in_group(command: &[OsString]) -> io::Result<Pid> {
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

/// Waits for the end of the input, and then kills all descendants again and again until the command has
/// ended: each pass may miss processes that were just started.
fn end_when_told(mut order: UnixStream, group: Pid, has_ended: &AtomicBool) {
    while let Ok(1..) = order.read(&mut [0; 64]) {}
    while !has_ended.load(Ordering::SeqCst) {
        let _ = kill_process_group(group, Signal::KILL);
        tree::end_below_us();
        thread::sleep(STEP);
    }
}

/// Kills and reaps until no child is left. The kernel gives the children of an ended process to this one before
/// it can be reaped, so none is missed.
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

/// Encodes a status as wait(2) does.
fn encode_status(status: &WaitIdStatus) -> i32 {
    match status.exit_status() {
        Some(code) => code << 8,
        None => status.terminating_signal().unwrap_or_default(),
    }
}
