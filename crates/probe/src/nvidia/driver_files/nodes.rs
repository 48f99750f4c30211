//! What the file system says of device nodes, and which of them draw for which card.

use std::{
    collections::BTreeMap,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
};

use model::{NodeStat, PciAddress};
use nvml::Locator;

use super::super::files::Files;

/// Folders with device nodes, and the starts of their names.
const FOLDERS: [(&str, &[&str]); 5] = [
    ("/dev", &["nvidia", "gdrdrv", "dxg"]),
    ("/dev/nvidia-caps", &["nvidia-cap"]),
    ("/dev/nvidia-caps-imex-channels", &["channel"]),
    ("/dev/dri", DRAWS),
    ("/dev/infiniband", &["uverbs", "rdma_cm"]),
];

/// The starts of the names of nodes that draw.
const DRAWS: &[&str] = &["card", "renderD"];

/// The most nodes that are taken of a folder.
const MOST: usize = 4096;

/// The folders in which device nodes come and go.
pub(super) fn folders() -> impl Iterator<Item = &'static str> {
    FOLDERS.iter().map(|(folder, _)| *folder)
}

/// Every device node there is of the driver's and its companions'.
pub(super) fn read(files: &Files) -> BTreeMap<String, NodeStat> {
    let mut found = BTreeMap::new();
    for (folder, starts) in FOLDERS {
        let mut names = files.names(&format!("{folder}/"));
        names.retain(|name| is_node(name, starts));
        names.sort();
        names.dedup();
        for name in names.into_iter().take(MOST) {
            let path = format!("{folder}/{name}");
            if let Some(stat) = files.metadata(&path).as_ref().and_then(stat) {
                found.insert(path, stat);
            }
        }
    }
    found
}

/// The nodes that draw for each of these cards, as far as the host has them.
pub(super) fn drm(
    files: &Files,
    cards: impl Iterator<Item = PciAddress>,
) -> BTreeMap<PciAddress, Vec<String>> {
    let mut found = BTreeMap::new();
    for card in cards {
        let folder = format!("/sys/bus/pci/devices/{card}/drm");
        let at = Some(Locator::Pci(card));
        let mut nodes: Vec<String> = files
            .card_names(&folder, at)
            .into_iter()
            .filter(|name| is_node(name, DRAWS))
            .map(|name| format!("/dev/dri/{name}"))
            .take(MOST)
            .filter(|path| files.has(path, at))
            .collect();
        nodes.sort();
        if !nodes.is_empty() {
            found.insert(card, nodes);
        }
    }
    found
}

/// What is said of a device node; nothing of other files.
fn stat(meta: &std::fs::Metadata) -> Option<NodeStat> {
    let device = meta.rdev();
    meta.file_type().is_char_device().then(|| NodeStat {
        major: rustix::fs::major(device),
        minor: rustix::fs::minor(device),
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
    })
}

/// Whether a name is one of these starts, with letters and numbers behind it.
fn is_node(name: &str, starts: &[&str]) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    starts.iter().any(|start| name.starts_with(start)) && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_of_a_device_node_what_the_file_system_says() {
        let null = stat(&fs_err::metadata("/dev/null").unwrap()).unwrap();
        assert_eq!((null.major, null.minor), (1, 3));
        assert_eq!(null.mode & 0o666, 0o666);
        assert_eq!(stat(&fs_err::metadata("/").unwrap()), None);
    }

    #[test]
    fn a_file_under_the_name_of_a_node_has_no_numbers() {
        let root = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(root.path().join("dev/nvidia-caps")).unwrap();
        fs_err::write(root.path().join("dev/nvidia0"), "").unwrap();
        let files = Files::new(root.path(), std::sync::Arc::default());
        assert!(read(&files).is_empty());
    }
}
