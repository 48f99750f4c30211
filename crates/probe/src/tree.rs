//! A process with all that it started.
//!
//! They are found by their parents, whatever groups and sessions they made. One whose parent ended
//! is found below the next ancestor that adopts orphans; a probe with a command for deep checks does.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// How often it is looked for processes that were started meanwhile.
const LOOKS: usize = 3;

/// Kills a child with all that it started, and does not wait.
pub(crate) fn end(child: u32) {
    // What stands still starts nothing more.
    send(child, Signal::STOP);
    end_below(child);
    send(child, Signal::KILL);
}

/// Kills all that a process started, and does not wait. Returns its own children among them.
pub(crate) fn end_below(root: u32) -> BTreeSet<u32> {
    let mut parents = BTreeMap::new();
    for _ in 0..LOOKS {
        parents = self::parents();
        for pid in descendants(root, &parents) {
            send(pid, Signal::KILL);
        }
    }
    let children = parents.iter().filter(|(_, of)| **of == root);
    children.map(|(pid, _)| *pid).collect()
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
