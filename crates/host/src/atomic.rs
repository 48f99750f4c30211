//! Files that are replaced whole: a reader finds the old text or the new, never a part of it, and
//! after a power cut too.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use fs_err::{File, OpenOptions};

/// Tells apart the drafts of one process.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// Puts `bytes` at `path` with the permissions `mode`, whatever the umask is. The folder must
/// exist. The draft beside it is called `.NAME.tmp-…`, so that nobody who looks for files by their
/// endings takes it for one; it is removed when something fails.
///
/// It waits for the disk: call it where that hinders nobody.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let draft = draft(path)?;
    let done = fill(&draft, bytes, mode).and_then(|()| fs_err::rename(&draft, path));
    if done.is_err() {
        // Nothing more can be done about a draft that cannot be removed.
        let _ = fs_err::remove_file(&draft);
        return done;
    }
    // The name is on the disk when its folder is.
    File::open(folder(path))?.sync_all()
}

fn fill(draft: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // One of a process that had our id and was killed. `create_new` does not follow links.
    match fs_err::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    options.options_mut().mode(mode);
    let mut file = options.open(draft)?;
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
    Ok(folder(path).join(draft))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn replaces_a_file_and_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        write(&path, b"one", 0o600).unwrap();
        write(&path, b"two", 0o640).unwrap();
        assert_eq!(fs_err::read(&path).unwrap(), b"two");
        let mode = fs_err::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
        assert_eq!(names(folder.path()), ["state.json"]);
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs_err::create_dir_all(path.join("full")).unwrap();
        let error = write(&path, b"text", 0o600).unwrap_err();
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("no/file"), b"", 0o600).unwrap_err();
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
        let error = write(Path::new("/"), b"", 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
