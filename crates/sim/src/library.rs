//! Where the built driver library is.

use std::{
    io,
    path::{Path, PathBuf},
};

/// The file that cargo makes of this crate.
const FILE: &str = "libsim.so";

/// The library is not where it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program does not know where it lies itself.
    #[error("cannot find the program's own folder")]
    Program(#[source] io::Error),
    /// None of the places has it.
    #[error("cannot find the simulated driver library; looked for {}", list(.tried))]
    Missing {
        /// The files that were looked for.
        tried: Vec<PathBuf>,
    },
}

/// The built library: in cargo's `deps` folder, beside the program, or in `../lib/ostler`.
///
/// # Errors
/// If it is in none of these places; the message names them.
pub fn find() -> Result<PathBuf, Error> {
    let program = std::env::current_exe().map_err(Error::Program)?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    beside(folder)
}

/// The library of a program in this folder. A test's program lies in `deps` itself, and cargo
/// keeps `deps` the freshest, so that is where to look first.
fn beside(folder: &Path) -> Result<PathBuf, Error> {
    let tried =
        ["deps", ".", "../lib/ostler", "../deps"].map(|place| folder.join(place).join(FILE));
    match tried.iter().find(|file| file.is_file()) {
        Some(file) => fs_err::canonicalize(file).map_err(Error::Program),
        None => Err(Error::Missing {
            tried: tried.to_vec(),
        }),
    }
}

fn list(files: &[PathBuf]) -> String {
    let files: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    files.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_an_installed_library() {
        let dir = tempfile::tempdir().unwrap();
        let lib = dir.path().join("lib/ostler");
        fs_err::create_dir_all(dir.path().join("bin")).unwrap();
        fs_err::create_dir_all(&lib).unwrap();
        fs_err::write(lib.join(FILE), "").unwrap();
        let found = beside(&dir.path().join("bin")).unwrap();
        assert_eq!(found, lib.canonicalize().unwrap().join(FILE));
    }

    #[test]
    fn names_every_place_it_looked_in() {
        let dir = tempfile::tempdir().unwrap();
        let error = beside(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("deps/libsim.so") && error.contains("lib/ostler"),
            "{error}"
        );
    }
}
