//! The Rust files of a source tree, with those of the product told apart from tests.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use super::source_file::SourceFile;

/// Folders, and files without `.rs`, that hold no product code. `acme` is the vendor of the tests.
const NO_PRODUCT: [&str; 7] = [
    "acme", "benches", "examples", "fuzz", "oracle", "testdata", "tests",
];

/// All that is measured of one state of the code.
#[derive(Debug, Default)]
pub(super) struct SourceTree {
    /// Lines of all Rust files: product, tests, `bench`, `e2e`, `fuzz`.
    pub(super) all_lines: usize,
    /// The files of the product, by path.
    pub(super) product: Vec<SourceFile>,
}

// === impl SourceTree ===

impl SourceTree {
    /// Reads and parses a tree in a folder. Paths are shown from that folder on.
    ///
    /// # Errors
    /// If a file cannot be read, or a file of the product cannot be parsed.
    pub(super) fn read_folder(root: &Path) -> anyhow::Result<Self> {
        let mut paths = Vec::new();
        collect_paths(root, &mut paths)?;
        paths.sort();
        let mut tree = Self::default();
        for path in paths {
            let text = fs_err::read_to_string(&path)?;
            tree.all_lines += text.lines().count();
            let inside = path.strip_prefix(root)?;
            if is_product(inside) {
                tree.product.push(SourceFile::parse(inside, text)?);
            }
        }
        tree.drop_test_modules();
        Ok(tree)
    }

    /// Reads the tree of a commit.
    ///
    /// # Errors
    /// If this clone lacks the commit, and as above.
    pub(super) fn read_commit(root: &Path, commit: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut archive = Command::new("git")
            .args(["archive", commit])
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run git")?;
        let mut unpack = Command::new("tar");
        unpack.arg("-x").current_dir(folder.path());
        unpack.stdin(archive.stdout.take().context("git has no output")?);
        let is_unpacked = unpack.status().context("cannot run tar")?.success();
        ensure!(
            archive.wait()?.success() && is_unpacked,
            "cannot unpack commit {commit}; a shallow clone lacks it (`git fetch --unshallow`)"
        );
        Self::read_folder(folder.path())
    }

    /// Leaves the files out that are declared by `#[cfg(test)] mod name;`, and those below them.
    fn drop_test_modules(&mut self) {
        let declared = self.product.iter().flat_map(SourceFile::test_modules);
        let stems: BTreeSet<PathBuf> = declared.collect();
        self.product.retain(|file| {
            let stem = file.path.with_extension("");
            !stem.ancestors().any(|folder| stems.contains(folder))
        });
    }
}

/// Adds the paths of all Rust files below a folder. Build output and hidden folders are left out.
fn collect_paths(folder: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect_paths(&path, paths)?;
            }
        } else if name.ends_with(".rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// True for `crates/**/src/**`, without the folders and files of [`NO_PRODUCT`].
fn is_product(path: &Path) -> bool {
    let stem = path.with_extension("");
    let names: Vec<_> = stem.iter().filter_map(|name| name.to_str()).collect();
    names.first() == Some(&"crates")
        && names.contains(&"src")
        && !names.iter().any(|name| NO_PRODUCT.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product_paths(files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let tree = SourceTree::read_folder(root.path()).unwrap();
        assert_eq!(tree.all_lines, files.len());
        let paths = tree.product.iter();
        paths.map(|file| file.path.display().to_string()).collect()
    }

    #[test]
    fn leaves_out_tests_examples_and_other_packages() {
        let paths = product_paths(&[
            ("bench/src/main.rs", "fn main() {}"),
            ("crates/a/examples/show.rs", "fn main() {}"),
            ("crates/a/src/lib.rs", "mod tests;"),
            ("crates/a/src/part/tests.rs", "fn rejects() {}"),
            ("crates/a/src/tests/more.rs", "fn accepts() {}"),
            ("crates/a/tests/flow.rs", "fn flows() {}"),
            ("crates/vendors/b/rules/src/lib.rs", "fn rule() {}"),
        ]);
        let expected = ["crates/a/src/lib.rs", "crates/vendors/b/rules/src/lib.rs"];
        assert_eq!(paths, expected);
    }

    #[test]
    fn leaves_out_modules_that_are_declared_as_tests() {
        let paths = product_paths(&[
            ("crates/a/src/lib.rs", "#[cfg(test)] mod brute; mod part;"),
            ("crates/a/src/brute.rs", "mod force;"),
            ("crates/a/src/brute/force.rs", "fn tries() {}"),
            (
                "crates/a/src/part.rs",
                "#[cfg(test)] mod fixture; mod kept;",
            ),
            ("crates/a/src/part/fixture.rs", "fn builds() {}"),
            ("crates/a/src/part/kept.rs", "fn keeps() {}"),
        ]);
        let expected = [
            "crates/a/src/lib.rs",
            "crates/a/src/part/kept.rs",
            "crates/a/src/part.rs",
        ];
        assert_eq!(paths, expected);
    }
}
