//! A process and everything it started: memory, CPU time and wake-ups, from `/proc`.

use std::path::PathBuf;

use anyhow::Context as _;
use rustix::process::Pid;
use tokio::time::Instant;

/// The processes, the first one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pids: Vec<i32>,
}

/// The memory of all processes.
#[derive(Clone, Debug)]
pub(crate) struct TreeMemory {
    /// Each process.
    pub(crate) processes: Vec<Process>,
}

/// The memory of one process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// Its command line in short.
    pub(crate) name: String,
    /// Its memory.
    pub(crate) memory: Memory,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    /// Private memory, and a fair share of what is shared.
    pub(crate) pss: f64,
    /// What no other process has mapped.
    pub(crate) private: f64,
    /// What others have mapped too.
    pub(crate) shared: f64,
    /// What is not of a file: heap and stacks. It does not depend on who else runs.
    pub(crate) anonymous: f64,
}

/// What the processes used up since they started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    at: Instant,
    nanos: u64,
    switches: u64,
}

/// What they used up in some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    seconds: f64,
    cpu_seconds: f64,
    switches: f64,
}

// === impl Tree ===

impl Tree {
    /// The process and its descendants as they are now.
    pub(crate) fn of(root: Pid) -> anyhow::Result<Self> {
        let mut all: Vec<(i32, i32)> = Vec::new();
        for entry in fs_err::read_dir("/proc")?.flatten() {
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            // One that ended meanwhile is not ours.
            if let Some(pid) = pid
                && let Ok(stat) = fs_err::read_to_string(file(pid, "stat"))
                && let Some(parent) = parent(&stat)
            {
                all.push((pid, parent));
            }
        }
        let mut pids = vec![root.as_raw_nonzero().get()];
        let mut at = 0;
        while let Some(parent) = pids.get(at).copied() {
            let children = all.iter().filter(|(_, of)| *of == parent);
            pids.extend(children.map(|(pid, _)| *pid));
            at += 1;
        }
        Ok(Self { pids })
    }

    /// Their memory.
    pub(crate) fn memory(&self) -> anyhow::Result<TreeMemory> {
        let process = |pid: &i32| {
            let rollup = fs_err::read_to_string(file(*pid, "smaps_rollup"))?;
            Ok(Process {
                name: name(&fs_err::read_to_string(file(*pid, "cmdline"))?),
                memory: Memory::parse(&rollup),
            })
        };
        let processes = self.pids.iter().map(process);
        Ok(TreeMemory {
            processes: processes.collect::<anyhow::Result<_>>()?,
        })
    }
}

// === impl TreeMemory ===

impl TreeMemory {
    /// All processes together.
    pub(crate) fn total(&self) -> Memory {
        let mut total = Memory::default();
        for process in &self.processes {
            total.pss += process.memory.pss;
            total.private += process.memory.private;
            total.shared += process.memory.shared;
            total.anonymous += process.memory.anonymous;
        }
        total
    }
}

// === impl Memory ===

impl Memory {
    /// Reads `smaps_rollup`; a line that is not there counts nothing.
    fn parse(rollup: &str) -> Self {
        let bytes = |key: &str| {
            let line = rollup.lines().find_map(|line| line.strip_prefix(key));
            let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<f64>().ok());
            kib.unwrap_or(0.0) * 1024.0
        };
        Self {
            pss: bytes("Pss:"),
            private: bytes("Private_Clean:") + bytes("Private_Dirty:"),
            shared: bytes("Shared_Clean:") + bytes("Shared_Dirty:"),
            anonymous: bytes("Anonymous:"),
        }
    }
}

// === impl Usage ===

impl Usage {
    /// What these processes used up until now.
    pub(crate) fn of(tree: &Tree) -> anyhow::Result<Self> {
        let (mut nanos, mut switches) = (0, 0);
        for pid in &tree.pids {
            for task in fs_err::read_dir(file(*pid, "task"))?.flatten() {
                // The times in `stat` are in steps of 10 ms: too coarse for an idle program.
                let ran = fs_err::read_to_string(task.path().join("schedstat"))?;
                nanos += running(&ran).context("the kernel counts no CPU time (schedstat)")?;
                let status = fs_err::read_to_string(task.path().join("status"));
                switches += status.map_or(0, |status| woken(&status));
            }
        }
        Ok(Self {
            at: Instant::now(),
            nanos,
            switches,
        })
    }

    /// The difference to an earlier moment.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn since(&self, before: &Self) -> Used {
        Used {
            seconds: self.at.duration_since(before.at).as_secs_f64(),
            cpu_seconds: self.nanos.saturating_sub(before.nanos) as f64 / 1e9,
            switches: self.switches.saturating_sub(before.switches) as f64,
        }
    }
}

// === impl Used ===

impl Used {
    /// The time on all cores.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.cpu_seconds
    }

    /// How often a thread was woken.
    pub(crate) fn switches(&self) -> f64 {
        self.switches
    }

    /// The part of one core's time.
    pub(crate) fn share(&self) -> f64 {
        self.cpu_seconds / self.seconds
    }

    /// How often a thread was woken, per second.
    pub(crate) fn wakes(&self) -> f64 {
        self.switches / self.seconds
    }
}

/// The parent in `/proc/PID/stat`; the name before it may itself hold blanks and brackets.
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn file(pid: i32, name: &str) -> PathBuf {
    format!("/proc/{pid}/{name}").into()
}

/// How long a thread ran, in nanoseconds: the first number of its `schedstat`.
fn running(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

/// How often a thread went to sleep by itself, and so was woken.
fn woken(status: &str) -> u64 {
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// The program and its command: `ostler run`, `ostler probe nvidia`.
fn name(cmdline: &str) -> String {
    let mut words = cmdline.split('\0');
    let program = words.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let words = words.take_while(|word| !word.is_empty() && !word.starts_with('-'));
    [program]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn reads_a_process_whose_name_is_meant_to_confuse() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194304 1 0 0 0 20 4 0 0 20 0 2 0 5 6 7";
        assert_eq!(parent(text), Some(3));
        assert_eq!(parent("7 (a"), None);
    }

    #[test]
    fn reads_how_long_a_thread_ran() {
        assert_eq!(running("9214713 66381 12\n"), Some(9_214_713));
        assert_eq!(running(""), None);
    }

    #[test]
    fn sums_private_and_shared_memory() {
        let rollup = "1-2 ---p 0 00:00 0 [rollup]\nRss: 30 kB\nPss:   10 kB\nPss_Dirty: 1 kB\n\
                      Shared_Clean:  20 kB\nShared_Dirty: 1 kB\nPrivate_Clean: 2 kB\n\
                      Private_Dirty:  3 kB\nAnonymous:   4 kB\nAnonHugePages: 1 kB\n";
        let kib = |n: f64| n * 1024.0;
        assert_eq!(
            Memory::parse(rollup),
            Memory {
                pss: kib(10.0),
                private: kib(5.0),
                shared: kib(21.0),
                anonymous: kib(4.0),
            }
        );
    }

    #[rstest]
    #[case("/usr/bin/ostler\0run\0--host-root\0/x\0", "ostler run")]
    #[case("ostler\0probe\0nvidia\0--child\0", "ostler probe nvidia")]
    #[case("sleep\0", "sleep")]
    fn a_process_is_named_by_its_command(#[case] cmdline: &str, #[case] expected: &str) {
        assert_eq!(name(cmdline), expected);
    }

    #[test]
    fn a_tree_holds_this_process_and_its_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        // A child has its own command line only a moment after it was started.
        let look = || {
            let tree = Tree::of(rustix::process::getpid()).ok()?;
            let memory = tree.memory().ok()?;
            let mut processes = memory.processes.iter();
            let named = processes.any(|process| process.name == "sleep 60");
            named.then_some((tree, memory))
        };
        let found = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            look()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let (tree, memory) = found.expect("the child is in the tree under its name");
        let pid = i32::try_from(child.id()).unwrap();
        assert!(tree.pids.contains(&pid));
        assert!(memory.total().pss > 0.0);
    }
}
