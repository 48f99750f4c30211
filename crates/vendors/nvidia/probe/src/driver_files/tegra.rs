//! Files of a Tegra board. The system lists in CSV files the device nodes, folders, files and links
//! that containers need. Entries that are not there are skipped: the lists are the same for many
//! boards.

use std::collections::{BTreeMap, BTreeSet};

use model::{FileKind, FileLink, NodeStat};
use probe::sysfs::Files;

use super::{
    super::nodes::ANY_DRIVER,
    csv::{self, Entry, Kind},
    glob, libraries, nodes,
    search::{Search, Want, join},
};

/// Folder of the lists, and the lists for every container. NVIDIA's toolkit reads the same three;
/// other lists are for images that ask for them by name.
const FOLDER: &str = "/etc/nvidia-container-runtime/host-files-for-container.d";
const FILES: [&str; 3] = ["devices.csv", "drivers.csv", "l4t.csv"];

/// File that names the board's release.
const RELEASE: &str = "/etc/nv_tegra_release";

/// Most bytes that are read of a list.
const MOST_BYTES: usize = 1 << 20;

/// Most paths that one pattern expands to, and most patterns of nodes.
const MOST_PATHS: usize = 4096;

/// Most folders that are listed for patterns in one search.
const MOST_LISTS: usize = 1024;

/// Most links in a chain of links.
const MOST_HOPS: usize = 8;

/// Adds the files that the lists name. Returns the patterns of device nodes among them.
pub(super) fn add(search: &mut Search<'_>) -> Vec<String> {
    let (mut patterns, mut libraries) = (BTreeSet::new(), BTreeSet::new());
    let (mut seen, mut lists) = (false, MOST_LISTS);
    for name in FILES {
        let place = join(FOLDER, name);
        let Some(path) = search.get(&place, Want::File) else {
            continue;
        };
        seen = true;
        for Entry { kind, path } in read(search, &path) {
            if kind == Kind::Node {
                patterns.insert(path);
                continue;
            }
            let paths = paths(search, &path, &mut lists);
            match kind {
                Kind::Folder => folders(search, paths),
                _ => libraries.extend(files(search, paths)),
            }
        }
    }
    if !seen {
        search.problem(format!(
            "none of {} is in {FOLDER}: what containers need on this board is not known; install \
             what JetPack has for containers, or let the agent see the folder",
            FILES.join(", ")
        ));
    }
    if let Some(path) = search.get(RELEASE, Want::File) {
        search.add(path, FileKind::Config, Some(RELEASE));
    }
    for folder in libraries {
        libraries::add_links(search, &folder);
    }
    if lists == 0 || patterns.len() > MOST_PATHS {
        search.problem(format!(
            "the files in {FOLDER} have more patterns than are looked up; the others are left out"
        ));
    }
    patterns.into_iter().take(MOST_PATHS).collect()
}

/// Returns the device nodes that match the patterns. Adds their file system facts to `stats`.
pub(super) fn board(
    files: &Files,
    patterns: &[String],
    stats: &mut BTreeMap<String, NodeStat>,
) -> Vec<String> {
    let mut lists = MOST_LISTS;
    let mut list = |folder: &str| {
        if !afford(&mut lists) {
            return Vec::new();
        }
        let mut names = files.names(&join(folder, ""));
        names.retain(|name| !name.contains(char::is_control));
        names.sort();
        names.dedup();
        names
    };
    let paths = patterns.iter();
    let paths = paths.flat_map(|pattern| glob::expand(pattern, MOST_PATHS, &mut list));
    let paths: BTreeSet<String> = paths.collect();
    let is_node = |path: &String| files.has_node(path, &ANY_DRIVER);
    let nodes = paths.into_iter().filter(is_node);
    let nodes: Vec<String> = nodes.take(MOST_PATHS).collect();
    let stat = |path: &String| Some((path.clone(), nodes::stat_of(files, path)?));
    stats.extend(nodes.iter().filter_map(stat));
    nodes
}

/// Reads a list. A line that is not valid becomes a problem.
fn read(search: &mut Search<'_>, path: &str) -> Vec<Entry> {
    // The list itself is checked too: its content may be replaced without a change to its folder.
    search.ask(path);
    let most = u64::try_from(MOST_BYTES + 1).unwrap_or(u64::MAX);
    let bytes = search.head(path, most).unwrap_or_default();
    let end = match bytes.len() > MOST_BYTES {
        false => bytes.len(),
        true => {
            search.problem(format!(
                "{path} has more than {MOST_BYTES} bytes; the rest of it is not read"
            ));
            let mut line = bytes[..MOST_BYTES].iter();
            line.rposition(|byte| *byte == b'\n').unwrap_or(0)
        }
    };
    let mut found = Vec::new();
    for (at, entry) in csv::entries(&bytes[..end]) {
        match entry {
            Ok(entry) => found.push(entry),
            Err(wrong) => search.problem(format!("{path}:{at} is passed over: {wrong}")),
        }
    }
    found
}

/// Adds folders, under the paths by which the lists name them.
fn folders(search: &mut Search<'_>, paths: Vec<String>) {
    for path in paths {
        if let Some(real) = search.get(&path, Want::Folder) {
            search.add(real, FileKind::Config, Some(&path));
        }
    }
}

/// Adds files, and the links that lead to them. Returns the folders of those that are libraries.
fn files(search: &mut Search<'_>, paths: Vec<String>) -> Vec<String> {
    let mut folders = Vec::new();
    for path in paths {
        let Some(real) = search.get(&path, Want::File) else {
            continue;
        };
        let kind = match is_library(&real) {
            true => FileKind::Library,
            false => FileKind::Config,
        };
        search.add(real.clone(), kind, None);
        let last = follow(search, path, &real);
        if last != real && search.resolve(&last).as_ref() == Some(&real) {
            // A folder on the path is a link that the container does not have, so the file is
            // mounted under this path too.
            search.add(real.clone(), kind, Some(&last));
        }
        if kind == FileKind::Library {
            folders.extend(real.rsplit_once('/').map(|(folder, _)| folder.to_owned()));
        }
    }
    folders
}

/// Adds the links from a path to a file. Returns the path to which the last link leads.
fn follow(search: &mut Search<'_>, path: String, real: &str) -> String {
    let mut at = path;
    for _ in 0..MOST_HOPS {
        let Some(target) = search.target(&at) else {
            break;
        };
        let next = model::follow(&at, &target);
        let link = FileLink {
            path: std::mem::replace(&mut at, next),
            target,
        };
        search.add_link(real, link);
    }
    at
}

/// Expands a pattern into paths below the driver's root. `lists` is the number of folders that may
/// still be listed.
fn paths(search: &mut Search<'_>, pattern: &str, lists: &mut usize) -> Vec<String> {
    glob::expand(pattern, MOST_PATHS, |folder| {
        let Some(real) = search.folder(folder).filter(|_| afford(lists)) else {
            return Vec::new();
        };
        let items = search.list(&real).items.into_iter();
        items.map(|(name, _)| name).collect()
    })
}

/// Takes one from `left`; `false` if none is left.
fn afford(left: &mut usize) -> bool {
    let less = left.checked_sub(1);
    *left = less.unwrap_or(0);
    less.is_some()
}

/// Returns true if the name is that of a shared library.
fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let rest = name
        .strip_prefix("lib")
        .and_then(|name| name.rsplit_once(".so"));
    rest.is_some_and(|(_, end)| end.is_empty() || end.starts_with('.'))
}
