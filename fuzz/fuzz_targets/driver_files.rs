//! Loader caches and libraries of any bytes, and driver trees of any shape: a reported file exists,
//! is below the root and is not a link, except for a library under its own name.
#![no_main]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use libfuzzer_sys::fuzz_target;

/// Components of the paths.
const PARTS: [&[u8]; 16] = [
    b"usr",
    b"lib",
    b"lib64",
    b"bin",
    b"etc",
    b"run",
    b"vdpau",
    b"gbm",
    b"..",
    b"nvidia-smi",
    b"libcuda.so",
    b"libcuda.so.1",
    b"libcuda.so.580.1",
    b"libnvidia-ml.so.580.1",
    b"lib\n\xff.so.580.1",
    b"libnvidia-egl-gbm.so.1.1",
];

/// Limit of entries in a tree.
const MOST: usize = 48;

/// Limit of bytes in a library.
const MOST_BYTES: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let Ok(folder) = tempfile::tempdir() else {
        return;
    };
    let Ok(root) = folder.path().canonicalize() else {
        return;
    };
    let (shape, cache) = bytes.split_at(bytes.len().min(4 * MOST));
    for thing in shape.chunks_exact(4) {
        let [one, two] = [path(thing[1], thing[2]), path(thing[3], thing[0])];
        make(&root, thing[0], one, two, cache);
    }
    let etc = root.join("etc");
    let _ = fs::create_dir(&etc);
    if etc.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        let _ = fs::write(etc.join("new"), cache);
        let _ = fs::rename(etc.join("new"), etc.join("ld.so.cache"));
    }
    let found = nvidia_probe::find_driver_files(cache, &root, "580.1");
    for file in &found.files {
        let place = root.join(file.path.trim_start_matches('/'));
        assert_eq!(place.canonicalize().ok().as_ref(), Some(&place), "{file:?}");
        let soname = file.soname.as_deref().unwrap_or("x.so");
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-+~".contains(c);
        assert!(
            soname.contains(".so") && soname.chars().all(plain),
            "{file:?}"
        );
    }
    assert!(found.problems.iter().all(|line| !line.contains('\n')));
});

/// Path of up to four components.
fn path(one: u8, two: u8) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    let parts = [one & 15, one >> 4, two & 15, two >> 4];
    let count = usize::from(one ^ two) % 4 + 1;
    let part = |n: &u8| std::ffi::OsStr::from_bytes(PARTS[usize::from(*n)]);
    parts.iter().take(count).map(part).collect()
}

/// Creates a library, a folder or a link; never outside the root.
fn make(root: &Path, kind: u8, path: PathBuf, target: PathBuf, rest: &[u8]) {
    if path.components().any(|part| part.as_os_str() == "..") {
        return;
    }
    let place = root.join(path);
    let inside = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(root));
    let Some(folder) = place.parent() else { return };
    if !folder
        .ancestors()
        .find(|path| path.exists())
        .is_some_and(inside)
        || fs::create_dir_all(folder).is_err()
        || !inside(folder)
    {
        return;
    }
    let mut library = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0".to_vec();
    library[4] = if kind & 64 == 0 { 2 } else { 1 };
    library.extend(rest.iter().skip(library.len()).take(MOST_BYTES));
    let _ = match kind % 4 {
        0 => fs::write(folder.join("new"), library)
            .and_then(|()| fs::rename(folder.join("new"), &place)),
        1 => fs::create_dir(&place),
        2 => symlink(target, &place),
        _ => symlink(Path::new("/").join(target), &place),
    };
}
