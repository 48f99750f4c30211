//! Files of a Tegra board. The system lists in CSV files the device nodes, folders, files and links
//! that containers need. Entries that are not there are skipped: the lists are the same for many
//! boards.

use std::collections::{BTreeMap, BTreeSet};

use model::{FileKind, FileLink, NodeStat};
use probe::sysfs::HostFiles;

use super::{
    super::nodes::ANY_DRIVER,
    csv::{self, BoardEntry, BoardEntryKind},
    glob, libraries, nodes,
    search::{RootSearch, WantedKind, join_path},
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
pub(super) fn add_board_files(search: &mut RootSearch<'_>) -> Vec<String> {
    let (mut patterns, mut libraries) = (BTreeSet::new(), BTreeSet::new());
    let (mut seen, mut lists) = (false, MOST_LISTS);
    for name in FILES {
        let place = join_path(FOLDER, name);
        let Some(path) = search.find_path(&place, WantedKind::File) else {
            continue;
        };
        seen = true;
        for BoardEntry { kind, path } in read_board_list(search, &path) {
            if kind == BoardEntryKind::Node {
                patterns.insert(path);
                continue;
            }
            let paths = expand_paths(search, &path, &mut lists);
            match kind {
                BoardEntryKind::Folder => add_board_folders(search, paths),
                _ => libraries.extend(add_listed_files(search, paths)),
            }
        }
    }
    if !seen {
        search.add_problem(format!(
            "none of {} is in {FOLDER}: what containers need on this board is not known; install \
             what JetPack has for containers, or let the agent see the folder",
            FILES.join(", ")
        ));
    }
    if let Some(path) = search.find_path(RELEASE, WantedKind::File) {
        search.add_file(path, FileKind::Config, Some(RELEASE));
    }
    for folder in libraries {
        libraries::add_links(search, &folder);
    }
    if lists == 0 || patterns.len() > MOST_PATHS {
        search.add_problem(format!(
            "the files in {FOLDER} have more patterns than are looked up; the others are left out"
        ));
    }
    patterns.into_iter().take(MOST_PATHS).collect()
}

/// Returns the device nodes that match the patterns. Adds their file system facts to `stats`.
pub(super) fn find_board_nodes(
    files: &HostFiles,
    patterns: &[String],
    stats: &mut BTreeMap<String, NodeStat>,
) -> Vec<String> {
    let mut lists = MOST_LISTS;
    let mut list = |folder: &str| {
        if !take_one(&mut lists) {
            return Vec::new();
        }
        let mut names = files.list_names(&join_path(folder, ""));
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
fn read_board_list(search: &mut RootSearch<'_>, path: &str) -> Vec<BoardEntry> {
    // The list itself is checked too: its content may be replaced without a change to its folder.
    search.note_path(path);
    let most = u64::try_from(MOST_BYTES + 1).unwrap_or(u64::MAX);
    let bytes = search.first_bytes(path, most).unwrap_or_default();
    let end = match bytes.len() > MOST_BYTES {
        false => bytes.len(),
        true => {
            search.add_problem(format!(
                "{path} has more than {MOST_BYTES} bytes; the rest of it is not read"
            ));
            let mut line = bytes[..MOST_BYTES].iter();
            line.rposition(|byte| *byte == b'\n').unwrap_or(0)
        }
    };
    let mut found = Vec::new();
    for (at, entry) in csv::parse_board_list(&bytes[..end]) {
        match entry {
            Ok(entry) => found.push(entry),
            Err(wrong) => search.add_problem(format!("{path}:{at} is passed over: {wrong}")),
        }
    }
    found
}

/// Adds folders, under the paths by which the lists name them.
fn add_board_folders(search: &mut RootSearch<'_>, paths: Vec<String>) {
    for path in paths {
        if let Some(real) = search.find_path(&path, WantedKind::Folder) {
            search.add_file(real, FileKind::Config, Some(&path));
        }
    }
}

/// Adds files, and the links that lead to them. Returns the folders of those that are libraries.
fn add_listed_files(search: &mut RootSearch<'_>, paths: Vec<String>) -> Vec<String> {
    let mut folders = Vec::new();
    for path in paths {
        let Some(real) = search.find_path(&path, WantedKind::File) else {
            continue;
        };
        let kind = match is_library(&real) {
            true => FileKind::Library,
            false => FileKind::Config,
        };
        search.add_file(real.clone(), kind, None);
        let last = add_link_chain(search, path, &real);
        if last != real && search.resolve_path(&last).as_ref() == Some(&real) {
            // A folder on the path is a link that the container does not have, so the file is
            // mounted under this path too.
            search.add_file(real.clone(), kind, Some(&last));
        }
        if kind == FileKind::Library {
            folders.extend(real.rsplit_once('/').map(|(folder, _)| folder.to_owned()));
        }
    }
    folders
}

/// Adds the links from a path to a file. Returns the path to which the last link leads.
fn add_link_chain(search: &mut RootSearch<'_>, path: String, real: &str) -> String {
    let mut at = path;
    for _ in 0..MOST_HOPS {
        let Some(target) = search.link_target(&at) else {
            break;
        };
        let next = model::resolve_link(&at, &target);
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
fn expand_paths(search: &mut RootSearch<'_>, pattern: &str, lists: &mut usize) -> Vec<String> {
    glob::expand(pattern, MOST_PATHS, |folder| {
        let Some(real) = search.find_folder(folder).filter(|_| take_one(lists)) else {
            return Vec::new();
        };
        let items = search.list_folder(&real).items.into_iter();
        items.map(|(name, _)| name).collect()
    })
}

/// Takes one from `left`; `false` if none is left.
fn take_one(left: &mut usize) -> bool {
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
