//! A process with all that it started.
//!
//! They are found by their parents and not by a group of their own: a command that left the probe's
//! group would outlive a probe that is killed.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// How often it is looked for processes that were started meanwhile.
const LOOKS: usize = 3;

/// Kills a child and its descendants. One whose parent ended before is not found; it ends with the
/// probe.
pub(super) fn end(child: u32) {
    send(child, Signal::STOP);
    for _ in 0..LOOKS {
        for pid in descendants(child, &parents()) {
            send(pid, Signal::KILL);
        }
    }
    send(child, Signal::KILL);
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

fn descendants(root: u32, parents: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        let children = parents.iter().filter(|(_, of)| **of == parent);
        next.extend(
            children
                .map(|(pid, _)| *pid)
                .filter(|pid| found.insert(*pid)),
        );
    }
    found
}

/// The parent of every process. Nothing where `/proc` counts processes as another namespace does.
fn parents() -> BTreeMap<u32, u32> {
    let own = fs_err::read_link("/proc/self").unwrap_or_default();
    if own.to_str() != Some(&getpid().to_string()) {
        return BTreeMap::new();
    }
    let entries = fs_err::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs_err::read(entry.path().join("stat")).ok()?;
            Some((pid, parent(&String::from_utf8_lossy(&stat))?))
        })
        .collect()
}

/// `PID (NAME) STATE PARENT …`; the name may have anything in it.
fn parent(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (sh) S 3 7 7 0"), Some(3));
        assert_eq!(parent("7 (a) R 1 (b)) S 3 7 7 0"), Some(3));
        assert_eq!(parent("7 (sh"), None);
    }

    #[test]
    fn descendants_are_all_generations_and_nobody_else() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 5)]);
        assert_eq!(descendants(2, &parents), BTreeSet::from([3, 4]));
        assert_eq!(descendants(6, &parents), BTreeSet::new());
    }
}
