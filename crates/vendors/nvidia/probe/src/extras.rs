//! Companions of the cards: IMEX channels, the nodes of GPUDirect Storage, GDRCopy and RDMA, and
//! the MPS daemons that are up. Read from names in folders, without a driver call.

use std::path::{Path, PathBuf};

use model::{Companions, Extras};
use nvidia_rules::companions as classes;
use probe::sysfs::HostFiles;

use super::{driver_files, nodes::ANY_DRIVER};

/// Folder of the IMEX channels.
const IMEX: &str = "/dev/nvidia-caps-imex-channels";

/// Most items of each kind: a folder may hold anything.
const MOST: usize = 4096;

/// Reads all companions. `mps` is the folder of the MPS daemons as this process sees it.
pub(super) fn read_extras(files: &HostFiles, mps: Option<&PathBuf>) -> Extras {
    let channel = |name: &String| -> Option<u32> {
        let number = name.strip_prefix("channel")?.parse().ok()?;
        // A mount whose source was missing leaves a file or a folder, which is not a channel.
        // NVIDIA's device plugin requires a character device too.
        let path = format!("{IMEX}/{name}");
        files.has_node(&path, &ANY_DRIVER).then_some(number)
    };
    let channels = sorted_unique(files.list_names(IMEX).iter().filter_map(channel));
    let gds = list_nodes(files, "/dev", |name| is_numbered(name, "nvidia-fs"));
    let gdrcopy = list_nodes(files, "/dev", |name| name == "gdrdrv");
    let mofed = list_nodes(files, "/dev/infiniband", |name| {
        is_numbered(name, "uverbs") || name == "rdma_cm"
    });
    let daemons = mps.map(|root| daemons(files, root)).unwrap_or_default();
    Extras {
        companions: Companions::default()
            .with_class(classes::IMEX_CHANNEL, channels)
            .with_class(classes::GDS, gds)
            .with_class(classes::GDRCOPY, gdrcopy)
            .with_class(classes::MOFED, mofed)
            .with_class(classes::MPS, daemons),
        host_nodes: driver_files::strays(files),
        files: None,
    }
}

/// Lists the paths in a folder whose names are wanted.
fn list_nodes(files: &HostFiles, folder: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let names = files.list_names(&format!("{folder}/"));
    let names = names.iter().filter(|name| wanted(name));
    sorted_unique(names.map(|name| format!("{folder}/{name}")))
}

/// Lists the resources whose daemon is up: `<root>/<domain>/<name>/.started`. NVIDIA's
/// mps-control-daemon makes that file after it has started the daemon.
fn daemons(files: &HostFiles, root: &Path) -> Vec<String> {
    files.watch_files(format!("list {}", root.display()), || {
        let domains = list_subfolders(root).into_iter();
        let resources = domains.flat_map(|(domain, path)| {
            let inside = list_subfolders(&path).into_iter();
            inside.map(move |(name, path)| (format!("{domain}/{name}"), path))
        });
        // The file `.ready` of mps-control-daemon is for all daemons of the node, `.started` for
        // one resource.
        let up = resources.filter(|(_, path)| path.join(".started").exists());
        sorted_unique(up.map(|(resource, _)| resource))
    })
}

/// Lists the folders in a folder, with their names.
fn list_subfolders(root: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs_err::read_dir(root).into_iter().flatten().flatten();
    entries
        .take(MOST)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}

/// Returns true for a prefix with a number, or the prefix alone.
fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Collects at most `MOST` items, sorted and each once.
fn sorted_unique<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.take(MOST).collect();
    items.sort();
    items.dedup();
    items
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{super::fixture::make_tree, *};

    fn files(root: &Path) -> HostFiles {
        HostFiles::new(root, Arc::default())
    }

    fn channels(root: &Path) -> Vec<u32> {
        let extras = read_extras(&files(root), None);
        extras
            .companions
            .list_numbers(classes::IMEX_CHANNEL)
            .collect()
    }

    #[test]
    fn lists_what_the_host_has_and_nothing_that_only_looks_like_it() {
        let root = make_tree(&[
            "dev/nvidia-caps-imex-channels/channel10",
            "dev/nvidia-caps-imex-channels/channel0",
            "dev/nvidia-caps-imex-channels/channelX",
            "dev/nvidia-caps-imex-channels/channel7/folder",
            "dev/nvidiactl",
            "dev/nvidia-fs1",
            "dev/nvidia-fs0",
            "dev/nvidia-fsx",
            "dev/gdrdrv",
            "dev/infiniband/uverbs0",
            "dev/infiniband/rdma_cm",
            "dev/infiniband/issm0",
        ]);
        let extras = read_extras(&files(root.path()), None);
        let numbers = extras.companions.list_numbers(classes::IMEX_CHANNEL);
        assert!(numbers.eq([0, 10]));
        assert_eq!(
            extras.companions.list_class(classes::GDS),
            ["/dev/nvidia-fs0", "/dev/nvidia-fs1"]
        );
        assert_eq!(
            extras.companions.list_class(classes::GDRCOPY),
            ["/dev/gdrdrv"]
        );
        let mofed = ["/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0"];
        assert_eq!(extras.companions.list_class(classes::MOFED), mofed);
        assert!(extras.companions.list_class(classes::MPS).is_empty());
    }

    /// `/dev/null`, which every machine has, stands in for device nodes.
    #[test]
    fn a_channel_is_a_device_node_and_no_plain_file_where_nodes_are_nodes() {
        let root = make_tree(&["dev/nvidia-caps-imex-channels/channel1"]);
        let at = |path: &str| root.path().join(path);
        for node in ["dev/nvidiactl", "dev/nvidia-caps-imex-channels/channel0"] {
            fs_err::os::unix::fs::symlink("/dev/null", at(node)).unwrap();
        }
        assert_eq!(channels(root.path()), [0]);
        fs_err::remove_file(at("dev/nvidiactl")).unwrap();
        fs_err::write(at("dev/nvidiactl"), "").unwrap();
        assert_eq!(channels(root.path()), [0, 1]);
    }

    #[test]
    fn a_second_place_for_device_nodes_counts_too() {
        let (root, driver) = (make_tree(&["dev/null"]), make_tree(&["dev/gdrdrv"]));
        let files = files(root.path()).with_dev(Some(driver.path().to_owned()));
        let extras = read_extras(&files, None);
        assert_eq!(
            extras.companions.list_class(classes::GDRCOPY),
            ["/dev/gdrdrv"]
        );
    }

    #[test]
    fn an_mps_daemon_counts_once_it_has_started() {
        let mps = make_tree(&[
            "nvidia.com/gpu/.started",
            "nvidia.com/gpu.shared/pipe/control",
            ".ready",
            "shm/x",
        ]);
        let root = make_tree(&[]);
        let extras = read_extras(&files(root.path()), Some(&mps.path().to_owned()));
        assert_eq!(
            extras.companions.list_class(classes::MPS),
            ["nvidia.com/gpu"]
        );
        let nowhere = mps.path().join("nowhere");
        assert!(read_extras(&files(root.path()), Some(&nowhere)).is_empty());
    }
}
