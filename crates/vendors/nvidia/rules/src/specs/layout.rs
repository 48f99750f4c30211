//! Layout of the driver's libraries in a container: their folders, and the links by which programs
//! find them.

use std::collections::{BTreeMap, BTreeSet};

use model::{DriverFile, FileKind, FileLink, resolve_link};

use super::mount::container_path;

/// Links that programs need even if the host does not have them: prefix of the library's name, path
/// of the link beside it, and the link's target; empty for the library itself. NVIDIA's toolkit
/// makes the same links.
const NEEDED: [(&str, &str, &str); 6] = [
    ("libcuda.so.", "libcuda.so.1", ""),
    ("libcuda.so.", "libcuda.so", "libcuda.so.1"),
    ("libnvidia-ml.so.", "libnvidia-ml.so.1", ""),
    (
        "libnvidia-opticalflow.so.",
        "libnvidia-opticalflow.so",
        "libnvidia-opticalflow.so.1",
    ),
    ("libGLX_nvidia.so.", "libGLX_indirect.so.0", ""),
    (
        "libnvidia-allocator.so.",
        "gbm/nvidia-drm_gbm.so",
        "../libnvidia-allocator.so.1",
    ),
];

/// Link, and the file that it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkedFile<'a> {
    /// File at the end of the link.
    pub(super) file: &'a DriverFile,
    /// Target of the link.
    pub(super) target: &'a str,
}

/// Returns the folders of libraries in a container, sorted.
pub(super) fn loader_folders<'a>(files: &[&'a DriverFile]) -> BTreeSet<&'a str> {
    library_files(files)
        .filter_map(|file| Some(container_path(file).rsplit_once('/')?.0))
        // Plug-ins are opened by path, so the loader's cache does not need them.
        .filter(|folder| !folder.ends_with("/gbm") && !folder.contains("/xorg"))
        .collect()
}

/// Returns the folders in a container that have CUDA's library, sorted.
pub(super) fn cuda_folders<'a>(files: &[&'a DriverFile]) -> BTreeSet<&'a str> {
    library_files(files)
        .filter_map(|file| container_path(file).rsplit_once('/'))
        .filter(|(_, name)| name.starts_with("libcuda.so."))
        .map(|(folder, _)| folder)
        .collect()
}

/// Returns every link that a container needs, by its path: the links of the host, the sonames, and
/// the links in `NEEDED`.
pub(super) fn container_links<'a>(files: &[&'a DriverFile]) -> BTreeMap<String, LinkedFile<'a>> {
    let mut links = BTreeMap::new();
    for file in files {
        // Links of the host come first: an inserted link never replaces them.
        for FileLink { path, target } in &file.links {
            links.insert(path.clone(), LinkedFile { file, target });
        }
    }
    let there: BTreeSet<&str> = files.iter().map(|file| container_path(file)).collect();
    for file in library_files(files) {
        for (link, target) in soname_link(file).into_iter().chain(needed(file)) {
            if !there.contains(link.as_str()) {
                links.entry(link).or_insert(LinkedFile { file, target });
            }
        }
    }
    mend(&mut links, &there);
    links
}

/// Changes links whose target is a link that the container does not have, as those through
/// `/etc/alternatives`: they lead to their file directly.
fn mend(links: &mut BTreeMap<String, LinkedFile<'_>>, there: &BTreeSet<&str>) {
    let dangling: Vec<String> = links
        .iter()
        .filter(|(path, link)| {
            let target = resolve_link(path, link.target);
            !there.contains(target.as_str()) && !links.contains_key(&target)
        })
        .map(|(path, _)| path.clone())
        .collect();
    for path in dangling {
        if let Some(link) = links.get_mut(&path) {
            link.target = container_path(link.file);
        }
    }
}

/// Returns the link by a library's soname. Without an updated cache, the loader finds a library by
/// this name only.
fn soname_link(file: &DriverFile) -> Option<(String, &str)> {
    let (folder, name) = container_path(file).rsplit_once('/')?;
    let soname = file.soname.as_deref()?;
    Some((format!("{folder}/{soname}"), name))
}

/// Returns the links of `NEEDED` for a library.
fn needed(file: &DriverFile) -> impl Iterator<Item = (String, &str)> {
    let (folder, name) = container_path(file).rsplit_once('/').unwrap_or_default();
    let links = NEEDED.iter().filter(move |(begin, ..)| {
        // Only the file with the driver's version, `libcuda.so.580.95.05`, and not one that is
        // named by its soname.
        name.strip_prefix(begin)
            .is_some_and(|rest| rest.contains('.'))
    });
    links.map(move |(_, link, target)| {
        let target = if target.is_empty() { name } else { *target };
        (format!("{folder}/{link}"), target)
    })
}

/// Returns the libraries among the files.
fn library_files<'a>(files: &[&'a DriverFile]) -> impl Iterator<Item = &'a DriverFile> {
    let is_library = |kind| matches!(kind, FileKind::Library | FileKind::Companion);
    let files = files.iter().copied();
    files.filter(move |file| is_library(file.kind))
}
