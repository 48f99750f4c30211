//! Simulated driver library, whose bytes are part of this crate. Its source is the crate
//! `sim-driver`; the build script compiles it.

use std::{
    fs::Permissions,
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

/// Contents of the file: a shared object with NVML's C ABI.
const BYTES: &[u8] = include_bytes!(env!("SIM_DRIVER_LIBRARY"));

/// Writes the library to a file. An existing file is replaced, not overwritten: a process that has
/// loaded the old one has its code mapped, and overwriting would change that code while it runs.
///
/// # Errors
/// If the file cannot be written.
pub fn write_library(file: &Path) -> io::Result<()> {
    let mut draft = tempfile::Builder::new()
        .prefix(".library-")
        .permissions(Permissions::from_mode(0o755))
        .tempfile_in(file.parent().unwrap_or(Path::new(".")))?;
    draft.write_all(BYTES)?;
    draft.persist(file).map_err(|e| e.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::fs::MetadataExt as _};

    use super::*;

    #[test]
    fn is_a_small_shared_object() {
        // ELF's type at offset 16: 3 is a shared object.
        assert_eq!((&BYTES[..4], BYTES[16]), (b"\x7fELF".as_slice(), 3));
        assert!(BYTES.len() < 2 << 20, "{} bytes", BYTES.len());
    }

    #[test]
    fn a_file_that_is_loaded_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("libnvidia-ml.so.1");
        fs_err::write(&file, "loaded").unwrap();
        let mut loaded = fs_err::File::open(&file).unwrap();
        write_library(&file).unwrap();
        let mut text = String::new();
        loaded.read_to_string(&mut text).unwrap();
        assert_eq!(text, "loaded");
        assert_eq!(fs_err::read(&file).unwrap(), BYTES);
        assert_eq!(fs_err::metadata(&file).unwrap().mode() & 0o444, 0o444);
        assert_eq!(fs_err::read_dir(dir.path()).unwrap().count(), 1);
    }
}
