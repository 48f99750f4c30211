//! The driver's libraries: in which folders they are, and by which links they are found.

use std::collections::{BTreeMap, BTreeSet};

use model::{DriverFile, FileKind, FileLink, follow};

use super::mount::inside;

/// Links that programs need, whether the host has them or not: the beginning of the library's
/// name, the link beside it, and what the link says; empty for the library itself.
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

/// A link, and the file that it leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linked<'a> {
    /// The file.
    pub(super) file: &'a DriverFile,
    /// What the link says.
    pub(super) target: &'a str,
}

/// The folders of the libraries in a container, sorted.
pub(super) fn folders<'a>(files: &[&'a DriverFile]) -> BTreeSet<&'a str> {
    libraries(files)
        .filter_map(|file| Some(inside(file).rsplit_once('/')?.0))
        // Plug-ins are found by whoever loads them, and not by the loader.
        .filter(|folder| !folder.ends_with("/gbm") && !folder.contains("/xorg"))
        .collect()
}

/// The folders that have CUDA's library, sorted.
pub(super) fn cuda_folders<'a>(files: &[&'a DriverFile]) -> BTreeSet<&'a str> {
    libraries(files)
        .filter_map(|file| inside(file).rsplit_once('/'))
        .filter(|(_, name)| name.starts_with("libcuda.so."))
        .map(|(folder, _)| folder)
        .collect()
}

/// Every link to a file that a container is to have, by its path: those of the host, those by which
/// a loader looks for a library, and those that programs need besides.
pub(super) fn links<'a>(files: &[&'a DriverFile]) -> BTreeMap<String, Linked<'a>> {
    let mut links = BTreeMap::new();
    for file in files {
        for FileLink { path, target } in &file.links {
            links.insert(path.clone(), Linked { file, target });
        }
    }
    let there: BTreeSet<&str> = files.iter().map(|file| inside(file)).collect();
    for file in libraries(files) {
        for (link, target) in soname(file).into_iter().chain(needed(file)) {
            if !there.contains(link.as_str()) {
                links.entry(link).or_insert(Linked { file, target });
            }
        }
    }
    mend(&mut links, &there);
    links
}

/// A link that leads over one that the container does not have, as those of `/etc/alternatives`,
/// leads to its file at once.
fn mend(links: &mut BTreeMap<String, Linked<'_>>, there: &BTreeSet<&str>) {
    let dangling: Vec<String> = links
        .iter()
        .filter(|(path, link)| {
            let target = follow(path, link.target);
            !there.contains(target.as_str()) && !links.contains_key(&target)
        })
        .map(|(path, _)| path.clone())
        .collect();
    for path in dangling {
        if let Some(link) = links.get_mut(&path) {
            link.target = inside(link.file);
        }
    }
}

/// The link by the name that a library gives itself.
fn soname(file: &DriverFile) -> Option<(String, &str)> {
    let (folder, name) = inside(file).rsplit_once('/')?;
    let soname = file.soname.as_deref()?;
    Some((format!("{folder}/{soname}"), name))
}

fn needed(file: &DriverFile) -> impl Iterator<Item = (String, &str)> {
    let (folder, name) = inside(file).rsplit_once('/').unwrap_or_default();
    let links = NEEDED.iter().filter(move |(begin, ..)| {
        // Only the library itself: a name with a version of the driver, and not its soname.
        name.strip_prefix(begin)
            .is_some_and(|rest| rest.contains('.'))
    });
    links.map(move |(_, link, target)| {
        let target = if target.is_empty() { name } else { *target };
        (format!("{folder}/{link}"), target)
    })
}

fn libraries<'a>(files: &[&'a DriverFile]) -> impl Iterator<Item = &'a DriverFile> {
    let is_library = |kind| matches!(kind, FileKind::Library | FileKind::Companion);
    let files = files.iter().copied();
    files.filter(move |file| is_library(file.kind))
}
