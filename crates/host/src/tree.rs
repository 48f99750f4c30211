//! Descendants of this process.
//!
//! Descendants are found by their parent ids, so new process groups and sessions do not hide them.
//! An orphan is found below the next ancestor that is a child subreaper (prctl(2),
//! PR_SET_CHILD_SUBREAPER).

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Number of passes over `/proc`, to find processes that were started during a pass.
const LOOKS: usize = 3;

/// All processes, by their ids.
type ProcessTable = BTreeMap<u32, ProcessStat>;

// The kernel reuses process ids. An id is unique only together with the start time.
/// Parent and start time of a process, from `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessStat {
    parent: u32,
    started: u64,
}

/// Sends SIGKILL to all descendants of this process. Does not wait until they have ended.
pub fn end_below_us() {
    for _ in 0..LOOKS {
        let processes = read_processes();
        kill_seen(&descendants(own_pid(), &processes), &processes);
    }
}

/// Lists the ids of this process's children.
pub fn list_children() -> Vec<u32> {
    children_of(own_pid(), &read_processes()).collect()
}

fn own_pid() -> u32 {
    getpid().as_raw_nonzero().get().cast_unsigned()
}

/// Kills the processes that still have the start time that was seen.
fn kill_seen(pids: &BTreeSet<u32>, seen: &ProcessTable) {
    for pid in pids {
        let started = |process: &ProcessStat| process.started;
        if read_process(*pid).as_ref().map(started) == seen.get(pid).map(started) {
            send_signal(*pid, Signal::KILL);
        }
    }
}

fn send_signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

fn children_of(parent: u32, processes: &ProcessTable) -> impl Iterator<Item = u32> {
    let children = processes.iter().filter(move |(_, p)| p.parent == parent);
    children.map(|(pid, _)| *pid)
}

fn descendants(root: u32, processes: &ProcessTable) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        next.extend(children_of(parent, processes).filter(|pid| found.insert(*pid)));
    }
    found
}

/// Reads all processes from `/proc`.
fn read_processes() -> ProcessTable {
    // A `/proc` of another PID namespace shows other ids. A kill by such an id would hit an
    // unrelated process, so the list is empty then.
    let link = fs_err::read_link("/proc/self").unwrap_or_default();
    if link.to_str() != Some(&own_pid().to_string()) {
        return ProcessTable::new();
    }
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, read_process(pid)?))
        })
        .collect()
}

fn read_process(pid: u32) -> Option<ProcessStat> {
    let stat = fs_err::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&stat))
}

/// Parses `/proc/PID/stat`: `PID (NAME) STATE PARENT …`, with the start time as field 22 (proc(5)).
fn parse_stat(stat: &str) -> Option<ProcessStat> {
    // The name may have spaces and parentheses in it, so the search begins at the last parenthesis.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(1);
    Some(ProcessStat {
        parent: fields.next()?.parse().ok()?,
        started: fields.nth(17)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_start_are_found_behind_any_name() {
        let rest = "S 3 7 7 0 -1 64 1 0 0 0 0 0 0 0 20 0 1 0 4711 9 9";
        let found = Some(ProcessStat {
            parent: 3,
            started: 4711,
        });
        assert_eq!(parse_stat(&format!("7 (sh) {rest}")), found);
        assert_eq!(parse_stat(&format!("7 (a) R 1 (b)) {rest}")), found);
        assert_eq!(parse_stat("7 (sh"), None);
    }

    #[test]
    fn descendants_are_all_generations_and_nobody_else() {
        let processes = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5)];
        let processes = processes.map(|(pid, parent)| (pid, ProcessStat { parent, started: 0 }));
        let processes = ProcessTable::from(processes);
        assert_eq!(descendants(2, &processes), BTreeSet::from([3, 4]));
        assert_eq!(descendants(6, &processes), BTreeSet::new());
    }

    #[test]
    fn an_id_that_was_given_to_another_process_is_not_killed() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pids = BTreeSet::from([child.id()]);
        let mut seen = ProcessTable::from([(child.id(), read_process(child.id()).unwrap())]);
        seen.get_mut(&child.id()).unwrap().started -= 1;
        kill_seen(&pids, &seen);
        send_signal(child.id(), Signal::TERM);
        let status = child.wait().unwrap();
        let by = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(by, Some(Signal::TERM.as_raw()));
    }
}
