//! The lookup of a path below a root by hand, for kernels that do not offer `openat2`. Every part is
//! opened in the folder that was opened before it, links are followed by their texts, and `..` goes
//! back to the folder that was open: so nothing that is renamed meanwhile leads out of the root.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::Path,
};

use rustix::{
    fs::{FileType, Mode, OFlags, fstat, openat, readlinkat},
    io::Errno,
};

use super::LastLink;

/// The most links on the way of one path, as in the kernel.
const LINK_LIMIT: usize = 40;

/// The most parts of a path, those of its links included. Each may keep a descriptor open.
const PART_LIMIT: usize = 256;

/// Finds a path below a root. The descriptor is only good for a look, and for being opened by its
/// name in `/proc`.
pub(super) fn walk(root: &OwnedFd, path: &Path, last: LastLink) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut ahead = parts(path.as_os_str());
    // What is open from the root to here, the root left out.
    let mut open: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    for _ in 0..PART_LIMIT {
        let here: BorrowedFd<'_> = open.last().map_or(root.as_fd(), |folder| folder.as_fd());
        let Some(part) = ahead.pop() else {
            // Opened anew rather than copied: the root is the caller's.
            return open
                .pop()
                .map_or_else(|| openat(root, ".", flags, Mode::empty()), Ok);
        };
        if part == "." {
            continue;
        }
        if part == ".." {
            open.pop();
            continue;
        }
        let next = openat(here, &part, flags, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&next)?.st_mode) {
            FileType::Symlink if last == LastLink::Follow || !ahead.is_empty() => {
                links += 1;
                if links > LINK_LIMIT {
                    break;
                }
                let target = target(&next)?;
                if target.as_bytes().starts_with(b"/") {
                    open.clear();
                }
                ahead.extend(parts(&target));
            }
            FileType::Directory => open.push(next),
            _ if ahead.is_empty() => open.push(next),
            _ => return Err(Errno::NOTDIR),
        }
    }
    Err(Errno::LOOP)
}

/// The text of an open link.
pub(super) fn target(link: &OwnedFd) -> Result<OsString, Errno> {
    let target = readlinkat(link, "", Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()))
}

/// The parts of a path, the last one first. A slash at the end stands for `/.`, as in the kernel:
/// what comes before it has to be a folder.
fn parts(path: &OsStr) -> Vec<OsString> {
    let path = path.as_bytes();
    let end = path.ends_with(b"/").then_some(&b"."[..]);
    let parts = path.split(|byte| *byte == b'/').rev();
    let parts = end.into_iter().chain(parts.filter(|part| !part.is_empty()));
    parts
        .map(|part| OsStr::from_bytes(part).to_owned())
        .collect()
}
