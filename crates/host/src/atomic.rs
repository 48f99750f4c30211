//! Atomic replacement of files: a reader finds the old content or the new one, never a part of it,
//! also after a power failure.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use fs_err::{File, OpenOptions};

/// Number of temporary files that this process has made, for unique names.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// Replaces the file at `path` by one with these bytes and the permissions `mode`, which do not
/// depend on the umask. The folder must exist. The temporary file beside it is called `.NAME.tmp-…`,
/// so that a program that selects files by their endings does not read it. A failed write removes it.
///
/// The call blocks until the disk has the data.
///
/// # Errors
/// A step failed; the error names the temporary file. The old file is then unchanged, unless only
/// the last sync of the folder failed.
pub fn replace_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let draft = draft(path)?;
    let done = write_draft(&draft, bytes, mode).and_then(|()| fs_err::rename(&draft, path));
    if done.is_err() {
        // If the removal fails too, the first error is the one to report.
        let _ = fs_err::remove_file(&draft);
        return done;
    }
    // fsync(2) of a file does not write the entry in its folder: the folder needs a sync of its own.
    File::open(parent_folder(path))?.sync_all()
}

fn write_draft(draft: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // A process with the same id, killed earlier, may have left such a file. In containers the id is
    // often 1. `create_new` (O_EXCL) does not follow a link that somebody puts there.
    match fs_err::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    options.options_mut().mode(mode);
    let mut file = options.open(draft)?;
    // open(2) removes the bits of the umask from the mode, hence the second call.
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn draft(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        let message = format!("{} does not name a file", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    let mut draft = OsString::from(".");
    draft.push(name);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    draft.push(format!(".tmp-{}-{number}", process::id()));
    Ok(parent_folder(path).join(draft))
}

fn parent_folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_names(folder: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn replaces_a_file_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        replace_file(&path, b"one", 0o600).unwrap();
        replace_file(&path, b"two", 0o640).unwrap();
        assert_eq!(fs_err::read(&path).unwrap(), b"two");
        let mode = fs_err::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
        assert_eq!(list_names(folder.path()), ["state.json"]);
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs_err::create_dir_all(path.join("full")).unwrap();
        let error = replace_file(&path, b"text", 0o600).unwrap_err();
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(list_names(folder.path()), ["taken"]);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = replace_file(&folder.path().join("no/file"), b"", 0o600).unwrap_err();
        assert!(error.to_string().contains("no/.file.tmp-"), "{error}");
    }

    #[test]
    fn a_draft_never_looks_like_a_spec() {
        let draft = draft(Path::new("/etc/cdi/ostler.json")).unwrap();
        let name = draft.to_str().unwrap();
        assert!(name.starts_with("/etc/cdi/.ostler.json.tmp-"));
        assert!(!name.ends_with(".json") && !name.ends_with(".yaml"));
    }

    #[test]
    fn a_path_without_a_name_is_refused() {
        let error = replace_file(Path::new("/"), b"", 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
