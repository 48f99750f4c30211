//! Driver files in a temporary folder, and the result of the search.

mod boards;
mod hostile;
mod layouts;
mod names;
mod random;

use std::path::PathBuf;

use model::{DeviceNode, NodeRole};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

const VERSION: &str = "580.95.05";
const MINUTE: Duration = Duration::from_secs(61);
const HOUR: Duration = Duration::from_secs(3600);

/// Folder that stands for a machine's `/`.
struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Self(sim::scratch().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.path().join(path);
        fs_err::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        fs_err::write(self.place(path), content).unwrap();
        self
    }

    /// Makes libraries for this machine: 62 is x86-64, 183 AArch64, 3 a 32-bit x86.
    fn libraries(&self, machine: u8, folder: &str, names: &[&str]) -> &Self {
        for name in names {
            self.file(&format!("{folder}/{name}"), elf(machine));
        }
        self
    }

    fn programs(&self, folder: &str, names: &[&str]) -> &Self {
        for name in names {
            let path = format!("{folder}/{name}");
            self.file(&path, "#!/bin/sh\n");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs_err::set_permissions(self.place(&path), mode).unwrap();
        }
        self
    }

    fn links(&self, links: &[(&str, &str)]) -> &Self {
        for (path, target) in links {
            fs_err::os::unix::fs::symlink(target, self.place(path)).unwrap();
        }
        self
    }

    fn special(&self, path: &str, kind: FileType) -> &Self {
        mknodat(CWD, self.place(path), kind, Mode::RWXU, 0).unwrap();
        self
    }

    /// Sets old times on every folder, so that only later changes count as changes.
    fn age(&self) -> &Self {
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs_err::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
            }
            let opened = std::fs::File::open(&folder).unwrap();
            opened.set_modified(SystemTime::now() - HOUR).unwrap();
        }
        self
    }

    fn finder(&self) -> FileFinder {
        FileFinder::new(self.path(), HostFiles::new(self.path(), Arc::default()))
    }

    fn find(&self) -> DriverFiles {
        Arc::unwrap_or_clone(
            self.finder()
                .find_current_files(&driver(), &[], Instant::now()),
        )
    }
}

/// Makes a library without a soname.
fn elf(machine: u8) -> Vec<u8> {
    elf::tests::make_library(machine, "")
}

fn driver() -> Driver {
    Driver {
        version: VERSION.to_owned(),
        cuda: None,
        library: None,
        instance: None,
    }
}

fn paths(found: &DriverFiles) -> Vec<&str> {
    found.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn looks_again_only_when_something_changed() {
    let host = Host::new();
    host.libraries(62, "usr/lib64", &["libcuda.so.580.95.05"]);
    let (mut finder, start) = (host.finder(), Instant::now());
    let first = finder.find_current_files(&driver(), &[], start);
    assert_eq!(paths(&first), ["/usr/lib64/libcuda.so.580.95.05"]);

    host.libraries(62, "usr/lib64", &["libnvidia-ml.so.580.95.05"]);
    let soon = finder.find_current_files(&driver(), &[], start + MINUTE / 2);
    assert!(Arc::ptr_eq(&first, &soon), "not before a minute is over");
    let later = finder.find_current_files(&driver(), &[], start + MINUTE);
    assert_eq!(later.files.len(), 2);
    let same = finder.find_current_files(&driver(), &[], start + 2 * MINUTE);
    assert!(Arc::ptr_eq(&later, &same));

    host.libraries(62, "usr/lib64", &["libcuda.so.590.1"]);
    let version = "590.1".to_owned();
    let other = Driver {
        version,
        ..driver()
    };
    let newer = finder.find_current_files(&other, &[], start + 2 * MINUTE);
    assert_eq!(paths(&newer), ["/usr/lib64/libcuda.so.590.1"]);
}

#[test]
fn a_folder_that_appears_is_noticed() {
    let host = Host::new();
    host.libraries(62, "usr/lib64", &["libcuda.so.580.95.05"]);
    let (mut finder, start) = (host.age().finder(), Instant::now());
    finder.find_current_files(&driver(), &[], start);
    host.programs("usr/bin", &["nvidia-smi", "nvidia-cdi-hook"]);
    let later = finder.find_current_files(&driver(), &[], start + MINUTE);
    assert!(paths(&later).contains(&"/usr/bin/nvidia-smi"));
    assert_eq!(later.hooks, ["/usr/bin/nvidia-cdi-hook"]);
}

#[test]
fn a_socket_that_goes_is_noticed() {
    let (host, socket) = (Host::new(), "run/nvidia-persistenced/socket");
    host.libraries(62, "usr/lib64", &["libcuda.so.580.95.05"])
        .special(socket, FileType::Socket);
    let (mut finder, start) = (host.age().finder(), Instant::now());
    let first = finder.find_current_files(&driver(), &[], start);
    assert!(paths(&first).contains(&"/run/nvidia-persistenced/socket"));
    fs_err::remove_file(host.path().join(socket)).unwrap();
    let later = finder.find_current_files(&driver(), &[], start + MINUTE);
    assert_eq!(paths(&later), ["/usr/lib64/libcuda.so.580.95.05"]);
}

#[test]
fn a_program_for_hooks_that_appears_is_noticed_where_its_link_leads_too() {
    let host = Host::new();
    host.libraries(62, "usr/lib64", &["libcuda.so.580.95.05"])
        .programs("usr/bin", &["sh"])
        .programs("opt/toolkit", &["nvidia-ctk.old"])
        .links(&[("usr/bin/nvidia-ctk", "../../opt/toolkit/nvidia-ctk.old")]);
    let (mut finder, start) = (host.age().finder(), Instant::now());
    let first = finder.find_current_files(&driver(), &[], start);
    assert_eq!(first.hooks, ["/usr/bin/nvidia-ctk"]);
    host.programs("usr/bin", &["nvidia-cdi-hook"]);
    let second = finder.find_current_files(&driver(), &[], start + MINUTE);
    assert_eq!(
        second.hooks,
        ["/usr/bin/nvidia-cdi-hook", "/usr/bin/nvidia-ctk"]
    );
    host.age();
    // The search that follows the change of the time itself.
    finder.find_current_files(&driver(), &[], start + 2 * MINUTE);
    fs_err::remove_file(host.path().join("opt/toolkit/nvidia-ctk.old")).unwrap();
    let third = finder.find_current_files(&driver(), &[], start + 3 * MINUTE);
    assert_eq!(third.hooks, ["/usr/bin/nvidia-cdi-hook"]);
}

#[test]
fn new_device_nodes_are_looked_at_at_once() {
    let host = Host::new();
    let address: PciAddress = "0000:4a:00.0".parse().unwrap();
    let card = |nodes: &[&str]| Device {
        pci: Some(address),
        nodes: nodes
            .iter()
            .map(|path| DeviceNode {
                path: (*path).to_owned(),
                role: NodeRole::Own,
            })
            .collect(),
        ..Device::card_of("nvidia", "GPU-0", "L40S")
    };
    let (mut finder, start) = (host.finder(), Instant::now());
    assert!(
        finder
            .find_current_files(&driver(), &[card(&[])], start)
            .drm
            .is_empty()
    );
    for name in ["card1", "renderD128", "card1-DP-1", "x/y"] {
        host.file(&format!("sys/bus/pci/devices/{address}/drm/{name}/dev"), "");
    }
    host.file("dev/dri/card1", "")
        .file("dev/dri/renderD128", "");
    let found = finder.find_current_files(&driver(), &[card(&["/dev/nvidia0"])], start);
    assert_eq!(
        found.drm[&address],
        ["/dev/dri/card1", "/dev/dri/renderD128"]
    );
}

#[test]
fn a_node_that_is_another_one_now_is_seen_at_once() {
    let host = Host::new();
    host.links(&[("dev/nvidia0", "/dev/null")]);
    let (mut finder, start) = (host.finder(), Instant::now());
    let first = finder.find_current_files(&driver(), &[], start);
    assert_eq!(first.nodes["/dev/nvidia0"].minor, 3);
    let same = finder.find_current_files(&driver(), &[], start);
    assert!(Arc::ptr_eq(&first, &same));
    fs_err::remove_file(host.path().join("dev/nvidia0")).unwrap();
    host.links(&[("dev/nvidia0", "/dev/zero")]);
    let later = finder.find_current_files(&driver(), &[], start);
    assert_eq!(later.nodes["/dev/nvidia0"].minor, 5);
}

#[test]
fn a_version_that_is_not_told_is_read_from_the_libraries() {
    let host = Host::new();
    host.libraries(62, "usr/lib64", &["libcuda.so.580.95.05", "libcuda.so.1"]);
    for version in ["unknown", "", "../../etc"] {
        let version = version.to_owned();
        let driver = Driver {
            version,
            ..driver()
        };
        let found = host
            .finder()
            .find_current_files(&driver, &[], Instant::now());
        assert_eq!(paths(&found), ["/usr/lib64/libcuda.so.580.95.05"]);
    }
    let nothing = Host::new();
    let version = "unknown".to_owned();
    let driver = Driver {
        version,
        ..driver()
    };
    let found = nothing
        .finder()
        .find_current_files(&driver, &[], Instant::now());
    assert_eq!(found.problems.len(), 1);
}

#[test]
fn the_folder_of_the_driver_library_itself_is_searched() {
    let host = Host::new();
    let library = host.place("opt/odd/libnvidia-ml.so.1");
    host.libraries(62, "opt/odd", &["libcuda.so.580.95.05"]);
    let driver = Driver {
        library: Some(library.display().to_string()),
        ..driver()
    };
    let found = host
        .finder()
        .find_current_files(&driver, &[], Instant::now());
    assert_eq!(paths(&found), ["/opt/odd/libcuda.so.580.95.05"]);
}
