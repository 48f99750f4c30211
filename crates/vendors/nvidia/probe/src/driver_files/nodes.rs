//! File system facts about device nodes, and the DRM nodes of each card.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
};

use model::{CardRef, NodeStat, PciAddress};
use probe::sysfs::HostFiles;

/// Folders with device nodes, and the prefixes of their names.
const FOLDERS: [(&str, &[&str]); 5] = [
    ("/dev", &["nvidia", "gdrdrv", "dxg"]),
    ("/dev/nvidia-caps", &["nvidia-cap"]),
    ("/dev/nvidia-caps-imex-channels", &["channel"]),
    ("/dev/dri", DRAWS),
    ("/dev/infiniband", &["uverbs", "rdma_cm"]),
];

/// Prefixes of the names of DRM nodes.
const DRAWS: &[&str] = &["card", "renderD"];

/// Most nodes that are taken from a folder.
const MOST: usize = 4096;

/// Reads the facts of every device node of the driver and its companions.
pub(super) fn read_node_stats(files: &HostFiles) -> BTreeMap<String, NodeStat> {
    let stat = |path: String| Some((path.clone(), stat_of(files, &path)?));
    list_node_paths(files).filter_map(stat).collect()
}

/// Returns the facts of the device node at a path; `None` if there is none.
pub(super) fn stat_of(files: &HostFiles, path: &str) -> Option<NodeStat> {
    files.node_metadata(path).as_ref().and_then(stat)
}

/// Lists the nodes that are missing under the configured device root but present in the host's own
/// `/dev`.
pub(in super::super) fn strays(files: &HostFiles) -> BTreeSet<String> {
    match files.sees_dev() {
        true => list_node_paths(files)
            .filter(|path| files.is_stray(path))
            .collect(),
        false => BTreeSet::new(),
    }
}

/// Lists the DRM nodes of each card that the host has in `/dev/dri`.
pub(super) fn find_drm_nodes(
    files: &HostFiles,
    cards: impl Iterator<Item = PciAddress>,
) -> BTreeMap<PciAddress, Vec<String>> {
    let mut found = BTreeMap::new();
    for card in cards {
        let folder = format!("/sys/bus/pci/devices/{card}/drm");
        let at = Some(CardRef::Pci(card));
        let mut nodes: Vec<String> = files
            .card_names(&folder, at)
            .into_iter()
            .filter(|name| is_node(name, DRAWS))
            .map(|name| format!("/dev/dri/{name}"))
            .take(MOST)
            .filter(|path| files.has_file(path, at))
            .collect();
        nodes.sort();
        if !nodes.is_empty() {
            found.insert(card, nodes);
        }
    }
    found
}

/// Lists the paths whose names are those of device nodes.
fn list_node_paths(files: &HostFiles) -> impl Iterator<Item = String> {
    FOLDERS.into_iter().flat_map(|(folder, starts)| {
        let mut names = files.list_names(&format!("{folder}/"));
        names.retain(|name| is_node(name, starts));
        names.sort();
        names.dedup();
        let names = names.into_iter().take(MOST);
        names.map(move |name| format!("{folder}/{name}"))
    })
}

/// Converts the metadata of a character device; `None` for other files.
fn stat(meta: &std::fs::Metadata) -> Option<NodeStat> {
    let device = meta.rdev();
    meta.file_type().is_char_device().then(|| NodeStat {
        major: rustix::fs::major(device),
        minor: rustix::fs::minor(device),
        // File type bits are not part of `fileMode` in a CDI spec.
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
    })
}

/// Returns true if a name has one of these prefixes and plain characters after it.
fn is_node(name: &str, starts: &[&str]) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    starts.iter().any(|start| name.starts_with(start)) && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::{super::super::fixture::make_tree, *};

    fn files(root: &Path) -> HostFiles {
        HostFiles::new(root, Arc::default())
    }

    #[test]
    fn says_of_a_device_node_what_the_file_system_says() {
        let null = stat(&fs_err::metadata("/dev/null").unwrap()).unwrap();
        assert_eq!((null.major, null.minor), (1, 3));
        assert_eq!(null.mode & 0o666, 0o666);
        assert_eq!(stat(&fs_err::metadata("/").unwrap()), None);
    }

    #[test]
    fn a_file_under_the_name_of_a_node_has_no_numbers() {
        let root = make_tree(&["dev/nvidia0", "dev/nvidia-caps/nvidia-cap1"]);
        assert!(read_node_stats(&files(root.path())).is_empty());
    }

    #[test]
    fn nodes_of_a_driver_in_a_container_are_where_they_were_said_to_be() {
        let host = make_tree(&["dev/nvidia0", "dev/nvidiactl", "dev/tty"]);
        let driver = make_tree(&["dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm"]);
        let files = files(host.path()).with_dev(Some(driver.path().to_owned()));
        assert_eq!(strays(&files), BTreeSet::new());
    }

    #[test]
    fn nodes_that_only_the_host_has_are_told() {
        let host = make_tree(&[
            "dev/nvidia0",
            "dev/nvidiactl",
            "dev/tty",
            "dev/dri/card1",
            "dev/infiniband/uverbs0",
        ]);
        let driver = make_tree(&["dev/nvidia0"]);
        let there = [
            "/dev/dri/card1",
            "/dev/infiniband/uverbs0",
            "/dev/nvidiactl",
        ];
        let both = files(host.path()).with_dev(Some(driver.path().to_owned()));
        assert_eq!(strays(&both), there.map(str::to_owned).into());
        let nowhere = host.path().join("not-mounted");
        for unknown in [None, Some(nowhere)] {
            let files = files(host.path()).with_dev(unknown);
            assert_eq!(strays(&files), BTreeSet::new());
        }
    }

    /// `/dev/null` and `/dev/zero`, which every machine has, stand in for device nodes.
    #[test]
    fn a_node_is_looked_at_where_it_was_said_to_be_unless_that_is_none() {
        let [host, driver] = [
            make_tree(&["dev/x"]),
            make_tree(&["dev/nvidia0", "dev/nvidia1"]),
        ];
        for (root, node, device) in [
            (&host, "nvidia0", "/dev/null"),
            (&host, "nvidia2", "/dev/null"),
            (&driver, "nvidia2", "/dev/zero"),
        ] {
            let node = root.path().join("dev").join(node);
            fs_err::os::unix::fs::symlink(device, node).unwrap();
        }
        let both = files(host.path()).with_dev(Some(driver.path().to_owned()));
        let minors: Vec<_> = read_node_stats(&both)
            .iter()
            .map(|(path, node)| (path.clone(), node.minor))
            .collect();
        let expected = [("/dev/nvidia0", 3), ("/dev/nvidia2", 5)];
        assert_eq!(
            minors,
            expected.map(|(path, minor)| (path.to_owned(), minor))
        );
        let file = "the file in the named folder is no node";
        assert_eq!(strays(&both), ["/dev/nvidia0".to_owned()].into(), "{file}");
    }
}
