//! Files of others: whatever is at a path is not waited for, and no more of it is read than a config
//! or a spec can have.

use std::{
    io::{self, Read as _},
    path::Path,
};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

/// The most bytes that are read.
const MOST: u64 = 4 << 20;

/// The text of a regular file.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mut options = fs_err::OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        let kind = io::ErrorKind::InvalidInput;
        return Err(io::Error::new(kind, "it is no regular file"));
    }
    let mut text = String::new();
    file.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        let message = format!("it has more than {} MiB", MOST >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}
