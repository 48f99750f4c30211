//! Temporary folders for tests.

/// Makes a folder with these files, all of them empty.
pub(super) fn make_tree(paths: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for path in paths {
        let file = root.path().join(path);
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(file, "").unwrap();
    }
    root
}
