//! Program in the containers of the tests. It prints its environment, mounts and devices as one
//! line of JSON, then sleeps until it is stopped, or ends by itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::Metadata,
    io::Write as _,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Result;
use clap::Parser;
use e2e::report::{Answer, Mount, Node, Report};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags},
    io::Errno,
};
use tokio::signal::unix::{SignalKind, signal};

/// Prints what this container was given.
#[derive(Debug, Parser)]
struct Args {
    /// Say nothing, only hold the pod's namespaces.
    #[arg(long)]
    pause: bool,
    /// `pod/container`, so that the process can be found.
    #[arg(long, default_value = "")]
    name: String,
    /// Make nodes with this major number and try to open them.
    #[arg(long)]
    major: Option<u32>,
    /// The minor numbers to try.
    #[arg(long, value_delimiter = ',')]
    minors: Vec<u32>,
    /// End by itself after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// The exit status in that case.
    #[arg(long, default_value_t = 0)]
    status: u8,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let mut end = signal(SignalKind::terminate())?;
    if !args.pause {
        let line = serde_json::to_string(&look(&args)?)?;
        writeln!(std::io::stdout(), "{line}")?;
    }
    let Some(seconds) = args.seconds else {
        end.recv().await;
        return Ok(ExitCode::SUCCESS);
    };
    tokio::select! {
        _ = end.recv() => Ok(ExitCode::SUCCESS),
        () = tokio::time::sleep(Duration::from_secs(seconds)) => Ok(ExitCode::from(args.status)),
    }
}

fn look(args: &Args) -> Result<Report> {
    let mut tried = BTreeMap::new();
    if let Some(major) = args.major {
        for minor in &args.minors {
            tried.insert(*minor, attempt(major, *minor)?);
        }
    }
    Ok(Report {
        env: std::env::vars().collect(),
        mounts: mounts()?,
        dev: dev()?,
        groups: groups()?,
        nodes: nodes()?,
        tried,
    })
}

/// Mounts of this container.
fn mounts() -> Result<BTreeMap<String, Mount>> {
    let text = fs_err::read_to_string("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(Mount::parse).collect())
}

/// Groups of this process.
fn groups() -> Result<BTreeSet<u32>> {
    let groups = rustix::process::getgroups()?;
    Ok(groups.into_iter().map(|group| group.as_raw()).collect())
}

/// All device nodes below `/dev`, except for terminals.
fn dev() -> Result<BTreeMap<String, Node>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::from("/dev")];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && entry.file_name() != "pts" {
                folders.push(entry.path());
            } else if kind.is_char_device() || kind.is_block_device() {
                let path = entry.path().display().to_string();
                let node = node(&path, &entry.metadata()?);
                found.insert(path, node);
            }
        }
    }
    Ok(found)
}

fn node(path: &str, meta: &Metadata) -> Node {
    let kind = if meta.file_type().is_char_device() {
        "c"
    } else {
        "b"
    };
    let device = meta.rdev();
    let rights = [("r", OFlags::RDONLY), ("w", OFlags::WRONLY)];
    let rights = rights.into_iter().filter(|(_, flags)| {
        let flags = *flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        opened.err() != Some(Errno::PERM)
    });
    Node {
        kind: kind.to_owned(),
        numbers: (rustix::fs::major(device), rustix::fs::minor(device)),
        mode: meta.mode() & 0o7777,
        owner: (meta.uid(), meta.gid()),
        rights: rights.map(|(right, _)| right).collect(),
    }
}

/// Opens each `nvidia…` node, also in folders of such a name.
fn nodes() -> Result<BTreeMap<String, Answer>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::from("/dev")];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder)? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with("nvidia") {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = entry.path().display().to_string();
            let answer = open(&path);
            found.insert(path, answer);
        }
    }
    Ok(found)
}

/// Creates a node and opens it, as a container without the right to the device would try.
fn attempt(major: u32, minor: u32) -> Result<Answer> {
    let path = format!("/tmp/try{minor}");
    let mode = Mode::RUSR | Mode::WUSR;
    let device = rustix::fs::makedev(major, minor);
    match rustix::fs::mknodat(CWD, &path, FileType::CharacterDevice, mode, device) {
        Ok(()) | Err(Errno::EXIST) => Ok(open(&path)),
        Err(errno) => Ok(Answer::Error(errno.raw_os_error())),
    }
}

fn open(path: &str) -> Answer {
    match rustix::fs::open(path, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()) {
        Ok(_) => Answer::Opened,
        Err(Errno::NXIO) => Answer::NoDevice,
        Err(Errno::PERM) => Answer::Forbidden,
        Err(errno) => Answer::Error(errno.raw_os_error()),
    }
}
