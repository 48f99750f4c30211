//! containerd's config: the main file, and those that it imports.

use std::{
    collections::{BTreeSet, VecDeque},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{CdiKeys, Evidence, below, files, read_toml};

/// The main file: containerd's own, k3s's and RKE2's.
pub(super) const PATHS: [&str; 3] = [
    "/etc/containerd/config.toml",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
];
/// The version of config files since containerd 2.0.
const VERSION_2_0: u32 = 3;
/// The most files that are read.
const MOST_FILES: usize = 100;

/// A config file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    version: Option<u32>,
    imports: Vec<String>,
    plugins: Plugins,
}

/// The tables that can have CDI's keys. In no other table do they count.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Plugins {
    /// Version 3, of containerd 2.
    #[serde(rename = "io.containerd.cri.v1.runtime")]
    runtime: Option<CdiKeys>,
    /// Version 2.
    #[serde(rename = "io.containerd.grpc.v1.cri")]
    cri: Option<CdiKeys>,
}

/// Evidence in the config at this path of the host; nothing where there is none.
pub(super) fn judge(dir: &Path, root: &Path, path: &str) -> Option<Result<Evidence, String>> {
    let main = below(root, Path::new(path));
    let name = main.display().to_string();
    let (version, keys) = match load(root, Path::new(path)) {
        Ok(loaded) => loaded?,
        Err(why) => return Some(Err(why)),
    };
    if let Some(against) = keys.passes_over(dir, &name) {
        return Some(Ok(against));
    }
    Some(Ok(match keys.enable_cdi {
        Some(true) => Evidence::new(true, format!("{name} has enable_cdi = true")),
        Some(false) => Evidence::new(false, format!("{name} has enable_cdi = false")),
        None if version == VERSION_2_0 => Evidence::new(
            true,
            format!("{name} is one of containerd 2, which takes CDI names"),
        ),
        None => Evidence::new(
            false,
            format!("{name} does not say enable_cdi, and may be of a containerd that has it off"),
        ),
    }))
}

/// The version of the main file, and the keys of all files. Files are read in the order of containerd's
/// `LoadConfig` (cmd/containerd/server/config/config.go): the main one, those that it imports, then those that
/// they import, each once. What is read later counts.
fn load(root: &Path, main: &Path) -> Result<Option<(u32, CdiKeys)>, String> {
    let mut pending = VecDeque::from([main.to_owned()]);
    let mut loaded = BTreeSet::new();
    let mut found = None;
    while let Some(path) = pending.pop_front() {
        if !loaded.insert(path.clone()) {
            continue;
        }
        let seen = below(root, &path);
        if loaded.len() > MOST_FILES {
            return Err(format!(
                "{} imports more than {MOST_FILES} files",
                main.display()
            ));
        }
        let file: File = match (read_toml(&seen)?, found.is_some()) {
            (Some(file), _) => file,
            (None, false) => return Ok(None),
            (None, true) => {
                let (main, seen) = (main.display(), seen.display());
                return Err(format!("{main} imports {seen}, which is not there"));
            }
        };
        for import in &file.imports {
            pending.extend(resolve(root, &path, import)?);
        }
        let (version, keys) = found.get_or_insert((file.version.unwrap_or(1), CdiKeys::default()));
        let version = *version;
        file.merge(version, keys);
    }
    Ok(found)
}

/// The files that an import of the file `from` stands for, as paths of the host. A pattern is understood in the
/// name of a file, not in that of a folder.
fn resolve(root: &Path, from: &Path, import: &str) -> Result<Vec<PathBuf>, String> {
    let folder = from.parent().unwrap_or(Path::new("/"));
    let path = folder.join(import);
    if !import.contains('*') {
        return Ok(vec![path]);
    }
    let (folder, pattern) = match (
        path.parent(),
        path.file_name().and_then(|name| name.to_str()),
    ) {
        (Some(folder), Some(pattern)) if !folder.to_string_lossy().contains('*') => {
            (folder, pattern)
        }
        _ => return Err(not_followed(from, import)),
    };
    if pattern.contains(['?', '[', '\\']) {
        return Err(not_followed(from, import));
    }
    let found = files(&below(root, folder), |name| fits(pattern, name));
    let names = found.iter().filter_map(|path| path.file_name());
    Ok(names.map(|name| folder.join(name)).collect())
}

fn not_followed(from: &Path, import: &str) -> String {
    let from = from.display();
    format!(
        "{from} imports `{import}`, which the agent does not follow; set cdi.runtime if it is known"
    )
}

/// Returns true if a name is what a pattern with `*` stands for.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(begin) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|at| fits(rest, &name[at..]))
}

// === impl File ===

impl File {
    /// Adds what the file says. containerd 2 merges a table of a later file into that of an earlier one; before,
    /// the later table took its place, so that what it does not say is not said.
    fn merge(self, version: u32, keys: &mut CdiKeys) {
        // A file without a version can be of any.
        let is_new = self.version.unwrap_or(version) == VERSION_2_0;
        let table = if is_new {
            self.plugins.runtime
        } else {
            self.plugins.cri
        };
        match table {
            Some(table) if version == VERSION_2_0 => keys.override_by(table),
            Some(table) => *keys = table,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("*.toml", "a.toml", true)]
    #[case("*.toml", ".toml", true)]
    #[case("*.toml", "a.tom", false)]
    #[case("1*-c*.toml", "10-cdi.toml", true)]
    #[case("1*-c*.toml", "10-x.toml", false)]
    #[case("*", "é", true)]
    #[case("a", "a", true)]
    fn a_star_stands_for_any_letters(
        #[case] pattern: &str,
        #[case] name: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(fits(pattern, name), expected);
    }
}
