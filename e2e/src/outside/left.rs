//! Check for leftovers of a run: processes, namespaces, mounts, cgroups.

use std::{collections::BTreeSet, path::Path, time::Duration};

use anyhow::{Result, bail, ensure};

use super::cgroup::Cgroups;
use crate::{inside, process, wait};

/// Time that the kernel may take to end the last processes and free their resources.
const LIMIT: Duration = Duration::from_secs(20);

/// Removes the cgroup, and fails if anything of the run is left.
///
/// # Errors
/// Names everything that is left.
pub(super) async fn check(work: &Path, cgroups: &Cgroups) -> Result<()> {
    let namespaces: BTreeSet<String> = fs_err::read_to_string(work.join(inside::NAMESPACES))
        .map(|text| text.lines().map(str::to_owned).collect())
        .unwrap_or_default();
    let gone = wait::until("the run to be gone", LIMIT, async || {
        let members = cgroups.members()?;
        ensure!(
            members.is_empty(),
            "processes are left: {}",
            members.join(", ")
        );
        check_namespaces(&namespaces)?;
        check_mounts(work)?;
        let left = cgroups.remove()?;
        ensure!(left.is_empty(), "cgroups are left: {left:?}");
        Ok(())
    })
    .await;
    if gone.is_err() {
        // Cleans up as far as possible.
        cgroups.remove()?;
    }
    gone
}

/// Fails if a process is in a namespace of the run, or holds one open.
fn check_namespaces(namespaces: &BTreeSet<String>) -> Result<()> {
    for pid in process::pids()? {
        for folder in ["ns", "fd"] {
            let Ok(entries) = fs_err::read_dir(format!("/proc/{pid}/{folder}")) else {
                continue;
            };
            for entry in entries.flatten() {
                let Ok(target) = fs_err::read_link(entry.path()) else {
                    continue;
                };
                let target = target.display().to_string();
                if namespaces.contains(&target) {
                    bail!("process {pid} still holds the namespace {target}");
                }
            }
        }
    }
    Ok(())
}

/// Fails if a mount of the run is visible outside.
fn check_mounts(work: &Path) -> Result<()> {
    let work = work.display().to_string();
    let mounts = fs_err::read_to_string("/proc/self/mountinfo")?;
    let left: Vec<&str> = mounts.lines().filter(|line| line.contains(&work)).collect();
    ensure!(left.is_empty(), "mounts are left: {}", left.join("; "));
    let pinned = mounts.lines().filter(|line| line.contains(" nsfs "));
    let pinned: Vec<&str> = pinned.filter(|line| line.contains("cni-")).collect();
    ensure!(
        pinned.is_empty(),
        "namespaces are left: {}",
        pinned.join("; ")
    );
    Ok(())
}
