//! Bounded reads of small files that other programs write. To open one never waits for a writer, only
//! regular files are read, and a read stops at a limit even if the file grows.
//!
//! A disk that hangs still blocks the caller: use a [`Lane`](crate::lane::Lane) if that matters.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use rustix::fs::{CWD, Mode, OFlags, openat};

// O_NONBLOCK: open(2) of a FIFO would wait for a writer. O_NOCTTY: a terminal would become the
// controlling terminal of the agent.
/// Flags of open(2) for files of other programs.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Error of a bounded read. The text does not have the path: the caller adds it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is that of a folder, a device, a FIFO or a socket.
    #[error("it is no regular file")]
    NotAFile,
    /// The file is longer than its limit.
    #[error("it has more than {}", size(*limit))]
    TooLarge {
        /// Limit in bytes.
        limit: u64,
    },
    /// The file is not valid UTF-8.
    #[error("it is no text")]
    NotText,
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a regular file of at most `limit` bytes. Links are followed.
///
/// # Errors
///
/// Anything but a regular file is [`Error::NotAFile`], a longer file [`Error::TooLarge`].
pub fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    // To open a device file can have effects: a watchdog timer starts, a tape is wound back. So the
    // type is checked before the file is opened. It is checked again afterwards, because the file
    // may have been replaced in between.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::NotAFile);
    }
    read_opened(&open_regular(path)?, limit)
}

/// Reads a regular file of at most `limit` bytes as UTF-8. Links are followed.
///
/// # Errors
///
/// Those of [`read_bytes`], and [`Error::NotText`] for bytes that are not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String, Error> {
    String::from_utf8(read_bytes(path, limit)?).map_err(|_| Error::NotText)
}

/// Opens a regular file without a wait for other processes.
pub(crate) fn open_regular(path: &Path) -> Result<File, Error> {
    let file = File::from(openat(CWD, path, FLAGS, Mode::empty()).map_err(io::Error::from)?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(Error::NotAFile)
    }
}

/// Reads an open file from its present position, at most `limit` bytes.
pub(crate) fn read_opened(file: &File, limit: u64) -> Result<Vec<u8>, Error> {
    // The size from stat(2) is not used: files in /proc and /sys report 0 or one page.
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge { limit });
    }
    Ok(bytes)
}

fn size(bytes: u64) -> String {
    if bytes > 0 && bytes.trailing_zeros() >= 20 {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        os::unix::{fs::symlink, net::UnixListener},
        sync::atomic::{AtomicBool, Ordering},
    };

    use rstest::rstest;
    use rustix::fs::{FileType, mknodat};

    use super::*;

    fn fifo(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    }

    fn socket(path: &Path) {
        drop(UnixListener::bind(path).unwrap());
    }

    fn link_to_fifo(path: &Path) {
        let fifo_path = path.with_extension("fifo");
        fifo(&fifo_path);
        symlink(fifo_path, path).unwrap();
    }

    #[rstest]
    #[case::fifo(fifo)]
    #[case::link_to_a_fifo(link_to_fifo)]
    #[case::socket(socket)]
    #[case::folder(|path: &Path| fs_err::create_dir(path).unwrap())]
    #[case::device(|path: &Path| symlink("/dev/zero", path).unwrap())]
    fn refuses_what_is_no_regular_file(#[case] make: fn(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it");
        make(&path);
        let error = read_bytes(&path, 10).unwrap_err();
        assert!(matches!(error, Error::NotAFile), "{error}");
    }

    /// The file was replaced between the check and the open call.
    #[rstest]
    #[case::fifo(fifo)]
    #[case::folder(|path: &Path| fs_err::create_dir(path).unwrap())]
    #[case::device(|path: &Path| symlink("/dev/zero", path).unwrap())]
    fn refuses_it_when_it_is_open_too(#[case] make: fn(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it");
        make(&path);
        let error = open_regular(&path).unwrap_err();
        assert!(matches!(error, Error::NotAFile), "{error}");
    }

    #[rstest]
    #[case::nothing(|_: &Path| ())]
    #[case::loop_of_links(|path: &Path| symlink(path, path).unwrap())]
    #[case::link_to_nothing(|path: &Path| symlink("nothing", path).unwrap())]
    fn says_what_the_system_says(#[case] make: fn(&Path)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it");
        make(&path);
        let expected = std::fs::metadata(&path).unwrap_err().raw_os_error();
        match read_bytes(&path, 10).unwrap_err() {
            Error::Io(error) => assert_eq!(error.raw_os_error(), expected),
            other => panic!("{other}"),
        }
    }

    #[rstest]
    #[case(0, true)]
    #[case(9, true)]
    #[case(10, true)]
    #[case(11, false)]
    #[case(1 << 40, false)]
    fn reads_up_to_the_limit(#[case] length: u64, #[case] fits: bool) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(length).unwrap();
        match read_bytes(file.path(), 10) {
            Ok(bytes) => assert!(fits && bytes.len() as u64 == length),
            Err(error) => assert!(!fits && matches!(error, Error::TooLarge { limit: 10 })),
        }
    }

    #[test]
    fn comes_to_an_end_with_a_file_that_grows() {
        let limit = 1 << 16;
        let file = tempfile::NamedTempFile::new().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    file.as_file().write_all(&[b'x'; 4096]).unwrap();
                    if file.as_file().metadata().unwrap().len() > 64 << 20 {
                        file.as_file().set_len(0).unwrap();
                    }
                }
            });
            let read = (0..200).map(|_| read_bytes(file.path(), limit));
            let ended = read.map(|read| match read {
                Ok(bytes) => bytes.len() as u64 <= limit,
                Err(error) => matches!(error, Error::TooLarge { .. }),
            });
            let ended: Vec<bool> = ended.collect();
            stop.store(true, Ordering::Relaxed);
            assert!(ended.into_iter().all(|good| good));
        });
    }

    #[test]
    fn a_text_is_utf_8() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), "naïve").unwrap();
        assert_eq!(read_text(file.path(), 10).unwrap(), "naïve");
        fs_err::write(file.path(), b"na\xefve").unwrap();
        let error = read_text(file.path(), 10).unwrap_err();
        assert!(matches!(error, Error::NotText), "{error}");
    }

    #[test]
    fn reads_files_of_the_kernel_whose_length_is_not_told() {
        let text = read_text(Path::new("/proc/self/stat"), 4096).unwrap();
        assert!(text.starts_with(&std::process::id().to_string()), "{text}");
    }

    #[rstest]
    #[case(4 << 20, "it has more than 4 MiB")]
    #[case(1000, "it has more than 1000 bytes")]
    fn tells_the_limit(#[case] limit: u64, #[case] expected: &str) {
        assert_eq!(Error::TooLarge { limit }.to_string(), expected);
    }
}
