//! Lookup of a path below a root in user space, for systems without `openat2`. Every component is
//! opened relative to the open folder before it, links are followed by their targets, and `..` goes
//! back to the folder that is still open. So a rename during the lookup cannot lead out of the root.

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

/// Limit for the number of links in one lookup. The kernel has the same (MAXSYMLINKS).
const LINK_LIMIT: usize = 40;

/// Limit for the number of components in one lookup, with those of links. Each may keep a descriptor
/// open.
const PART_LIMIT: usize = 256;

/// Finds a path below a root. The descriptor is an O_PATH one: for stat(2), or to be opened again by
/// its name in `/proc`.
pub(super) fn walk(root: &OwnedFd, path: &Path, last: LastLink) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut ahead = split_parts(path.as_os_str());
    // Open descriptors from below the root to the present folder.
    let mut open: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    for _ in 0..PART_LIMIT {
        let here: BorrowedFd<'_> = open.last().map_or(root.as_fd(), |folder| folder.as_fd());
        let Some(part) = ahead.pop() else {
            // The path is the root itself. The caller owns its descriptor, so a new one is opened.
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
                let target = read_target(&next)?;
                if target.as_bytes().starts_with(b"/") {
                    open.clear();
                }
                ahead.extend(split_parts(&target));
            }
            FileType::Directory => open.push(next),
            _ if ahead.is_empty() => open.push(next),
            _ => return Err(Errno::NOTDIR),
        }
    }
    Err(Errno::LOOP)
}

/// Reads the target of an open link.
pub(super) fn read_target(link: &OwnedFd) -> Result<OsString, Errno> {
    let target = readlinkat(link, "", Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()))
}

/// Splits a path into its components, the last one first. A slash at the end becomes `.`, so that the
/// component before it must be a folder, as in the kernel.
fn split_parts(path: &OsStr) -> Vec<OsString> {
    let path = path.as_bytes();
    let end = path.ends_with(b"/").then_some(&b"."[..]);
    let parts = path.split(|byte| *byte == b'/').rev();
    let parts = end.into_iter().chain(parts.filter(|part| !part.is_empty()));
    parts
        .map(|part| OsStr::from_bytes(part).to_owned())
        .collect()
}
