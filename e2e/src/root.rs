//! The node's own root: the machine's programs read-only, and all writable folders of the node in
//! the work folder. Nothing that the node writes reaches the machine.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::{
    fs::CWD,
    mount::{MountFlags, MountPropagationFlags, UnmountFlags},
};

use crate::{device, place};

/// Folders that the node takes from the machine: links stay links, folders are bind-mounted
/// read-only.
const TAKEN: [&str; 9] = [
    "usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt/cni",
];

/// Folders that the node writes to, or that are mount points.
const MADE: [&str; 15] = [
    "proc",
    "sys",
    "dev",
    "run/e2e/manifests",
    "run/e2e/config",
    "run/e2e/images",
    "run/cdi",
    "run/containerd",
    "root",
    "tmp",
    "logs",
    "old",
    "var/lib/containerd",
    "var/lib/kubelet/device-plugins",
    "var/log/pods",
];

/// A cgroup hierarchy of the machine.
#[derive(Debug)]
struct Hierarchy {
    point: PathBuf,
    options: String,
}

/// Builds the root in the work folder and moves into it.
///
/// # Errors
/// If a mount fails; the error names it.
pub fn build(work: &Path) -> Result<()> {
    let root = work.join("root");
    let hierarchies = hierarchies()?;
    change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    for folder in MADE {
        fs_err::create_dir_all(root.join(folder))?;
    }
    bind(&root, &root)?;
    bind(&work.join("logs"), &root.join("logs"))?;
    take(&root)?;
    mount("proc", &root.join("proc"), "proc", "")?;
    mount("sysfs", &root.join("sys"), "sysfs", "")?;
    mount_cgroups(&root, &hierarchies)?;
    device::populate(&root.join("dev"))?;
    fs_err::os::unix::fs::symlink("../run", root.join("var/run"))?;
    std::env::set_current_dir(&root)?;
    rustix::process::pivot_root(".", "old").context("cannot move into the node's root")?;
    std::env::set_current_dir("/")?;
    rustix::mount::unmount("/old", UnmountFlags::DETACH)?;
    // The kubelet needs its folder on a shared mount, and so do containers with mount propagation.
    change(
        "/",
        MountPropagationFlags::SHARED | MountPropagationFlags::REC,
    )
}

/// Mounts the machine's programs and settings.
fn take(root: &Path) -> Result<()> {
    for name in TAKEN {
        let (from, to) = (Path::new("/").join(name), root.join(name));
        let Ok(meta) = fs_err::symlink_metadata(&from) else {
            continue;
        };
        if meta.is_symlink() {
            fs_err::os::unix::fs::symlink(fs_err::read_link(&from)?, &to)?;
            continue;
        }
        fs_err::create_dir_all(&to)?;
        bind(&from, &to)?;
        let flags = MountFlags::BIND | MountFlags::RDONLY;
        rustix::mount::mount_remount(&to, flags, "")
            .with_context(|| format!("cannot make {} read-only", to.display()))?;
    }
    Ok(())
}

/// Mounts every cgroup hierarchy again. In our cgroup namespace its top is the cgroup of this run.
fn mount_cgroups(root: &Path, hierarchies: &[Hierarchy]) -> Result<()> {
    let top = root.join("sys/fs/cgroup");
    if let [only] = hierarchies
        && only.options.is_empty()
    {
        mount("cgroup2", &top, "cgroup2", "")?;
        return delegate(&top);
    }
    mount("tmpfs", &top, "tmpfs", "mode=755")?;
    for hierarchy in hierarchies.iter().filter(|h| !h.options.is_empty()) {
        let name = hierarchy
            .point
            .file_name()
            .context("a hierarchy has a name")?;
        let point = top.join(name);
        fs_err::create_dir(&point)?;
        mount("cgroup", &point, "cgroup", &hierarchy.options)?;
    }
    Ok(())
}

/// Enables all controllers of a version 2 cgroup for its children.
fn delegate(top: &Path) -> Result<()> {
    let controllers = fs_err::read_to_string(top.join("cgroup.controllers"))?;
    for controller in controllers.split_whitespace() {
        let line = format!("+{controller}");
        fs_err::write(top.join("cgroup.subtree_control"), line)?;
    }
    Ok(())
}

/// Hierarchies of the machine. The mount options of a version 1 hierarchy name its controllers.
fn hierarchies() -> Result<Vec<Hierarchy>> {
    let mounts = fs_err::read_to_string("/proc/self/mounts")?;
    let found = mounts.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let (point, kind, options) = (words.get(1)?, words.get(2)?, words.get(3)?);
        let is_own = |option: &&str| {
            !matches!(
                *option,
                "rw" | "ro" | "nosuid" | "nodev" | "noexec" | "relatime" | "noatime"
            )
        };
        let options = match *kind {
            "cgroup" => options
                .split(',')
                .filter(is_own)
                .collect::<Vec<_>>()
                .join(","),
            "cgroup2" => String::new(),
            _ => return None,
        };
        Some(Hierarchy {
            point: PathBuf::from(point),
            options,
        })
    });
    Ok(found.collect())
}

/// Removes everything that a reboot would: files in memory, and containers' mounts.
///
/// # Errors
/// If a mount stays.
pub fn forget() -> Result<()> {
    let mounts = fs_err::read_to_string("/proc/self/mounts")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let inner = points.filter(|point| {
        point.starts_with(place::CONTAINERD_STATE)
            || point.starts_with("/var/lib/kubelet/pods")
            || point.starts_with("/run/netns")
    });
    for point in inner.collect::<Vec<_>>().into_iter().rev() {
        rustix::mount::unmount(point, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {point}"))?;
    }
    for folder in [place::CONTAINERD_STATE, place::CDI, place::CONTROL] {
        if fs_err::exists(folder)? {
            fs_err::remove_dir_all(folder)?;
        }
    }
    fs_err::create_dir_all(place::CONTAINERD_STATE)?;
    for hierarchy in hierarchies()? {
        remove_cgroup(&hierarchy.point.join("kubepods"))?;
    }
    Ok(())
}

/// Removes a cgroup and its children, if it exists. Control files go with their folder.
fn remove_cgroup(folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroup(&entry.path())?;
        }
    }
    Ok(fs_err::remove_dir(folder)?)
}

fn bind(from: &Path, to: &Path) -> Result<()> {
    rustix::mount::mount_bind_recursive(from, to)
        .with_context(|| format!("cannot bind {} to {}", from.display(), to.display()))
}

fn change(point: &str, flags: MountPropagationFlags) -> Result<()> {
    rustix::mount::mount_change(point, flags)
        .with_context(|| format!("cannot change how mounts below {point} spread"))
}

/// Mounts a file system.
///
/// # Errors
/// If the mount fails; the error names the mount point.
pub fn mount(source: &str, point: &Path, kind: &str, options: &str) -> Result<()> {
    let data = std::ffi::CString::new(options)?;
    rustix::mount::mount(source, point, kind, MountFlags::empty(), data.as_c_str())
        .with_context(|| format!("cannot mount {kind} ({options}) on {}", point.display()))
}

/// Creates a node below `/dev`.
///
/// # Errors
/// If the node cannot be created; the error names the path.
pub fn make_node(path: &Path, major: u32, minor: u32) -> Result<()> {
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    let kind = rustix::fs::FileType::CharacterDevice;
    rustix::fs::mknodat(CWD, path, kind, mode, rustix::fs::makedev(major, minor))
        .with_context(|| format!("cannot make the device node {}", path.display()))?;
    // The mode above was reduced by the umask.
    rustix::fs::chmod(path, mode).with_context(|| format!("cannot open up {}", path.display()))
}
