//! containerd's config: the main file and the files that it imports.

use std::{
    collections::{BTreeSet, VecDeque},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{CdiKeys, SupportEvidence, list_files, path_below, read_toml};

/// Paths of the main file: of containerd itself, k3s and RKE2.
pub(super) const PATHS: [&str; 3] = [
    "/etc/containerd/config.toml",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
];
/// Version of config files since containerd 2.0.
const VERSION_2_0: u32 = 3;
/// Limit for the number of files that are read.
const MOST_FILES: usize = 100;

/// A config file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerdFile {
    version: Option<u32>,
    imports: Vec<String>,
    plugins: ContainerdPlugins,
}

/// Tables that can have CDI's keys. containerd ignores the keys in other tables.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerdPlugins {
    /// Table of config version 3, for containerd 2.
    #[serde(rename = "io.containerd.cri.v1.runtime")]
    runtime: Option<CdiKeys>,
    /// Table of config version 2, for containerd 1.
    #[serde(rename = "io.containerd.grpc.v1.cri")]
    cri: Option<CdiKeys>,
}

/// Evidence in the config at this path of the host; `None` if there is no such file.
pub(super) fn judge_containerd(
    dir: &Path,
    root: &Path,
    path: &str,
) -> Option<Result<SupportEvidence, String>> {
    let main = path_below(root, Path::new(path));
    let name = main.display().to_string();
    let (version, keys) = match load_keys(root, Path::new(path)) {
        Ok(loaded) => loaded?,
        Err(why) => return Some(Err(why)),
    };
    if let Some(against) = keys.passes_over(dir, &name) {
        return Some(Ok(against));
    }
    Some(Ok(match keys.enable_cdi {
        Some(true) => SupportEvidence::new(true, format!("{name} has enable_cdi = true")),
        Some(false) => SupportEvidence::new(false, format!("{name} has enable_cdi = false")),
        None if version == VERSION_2_0 => SupportEvidence::new(
            true,
            format!("{name} is one of containerd 2, which takes CDI names"),
        ),
        None => SupportEvidence::new(
            false,
            format!("{name} does not say enable_cdi, and may be of a containerd that has it off"),
        ),
    }))
}

/// Reads the version of the main file, and the keys of all files. The order is that of containerd's `LoadConfig`
/// (cmd/containerd/server/config/config.go): the main file, the files that it imports, then the files that those
/// import, each once. A later file overrides an earlier one.
fn load_keys(root: &Path, main: &Path) -> Result<Option<(u32, CdiKeys)>, String> {
    let mut pending = VecDeque::from([main.to_owned()]);
    let mut loaded = BTreeSet::new();
    let mut found = None;
    while let Some(path) = pending.pop_front() {
        if !loaded.insert(path.clone()) {
            continue;
        }
        let seen = path_below(root, &path);
        if loaded.len() > MOST_FILES {
            return Err(format!(
                "{} imports more than {MOST_FILES} files",
                main.display()
            ));
        }
        let file: ContainerdFile = match (read_toml(&seen)?, found.is_some()) {
            (Some(file), _) => file,
            (None, false) => return Ok(None),
            (None, true) => {
                let (main, seen) = (main.display(), seen.display());
                return Err(format!("{main} imports {seen}, which is not there"));
            }
        };
        for import in &file.imports {
            pending.extend(resolve_import(root, &path, import)?);
        }
        let (version, keys) = found.get_or_insert((file.version.unwrap_or(1), CdiKeys::default()));
        let version = *version;
        file.merge_into(version, keys);
    }
    Ok(found)
}

/// Lists the files that an import of the file `from` means, as paths of the host. A `*` is supported in the file
/// name, not in the names of folders.
fn resolve_import(root: &Path, from: &Path, import: &str) -> Result<Vec<PathBuf>, String> {
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
    let found = list_files(&path_below(root, folder), |name| {
        matches_pattern(pattern, name)
    });
    let names = found.iter().filter_map(|path| path.file_name());
    Ok(names.map(|name| folder.join(name)).collect())
}

fn not_followed(from: &Path, import: &str) -> String {
    let from = from.display();
    format!(
        "{from} imports `{import}`, which the agent does not follow; set cdi.runtime if it is known"
    )
}

/// True if a name matches a pattern, in which `*` stands for any characters.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(begin) else {
        return false;
    };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter()
        .any(|at| matches_pattern(rest, &name[at..]))
}

// === impl ContainerdFile ===

impl ContainerdFile {
    /// Adds the keys of the file. containerd 2 merges a table of a later file into the earlier one. In containerd 1
    /// the later table replaces the earlier one, with all its keys.
    fn merge_into(self, version: u32, keys: &mut CdiKeys) {
        // An imported file without a version has that of the main file.
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
        assert_eq!(matches_pattern(pattern, name), expected);
    }
}
