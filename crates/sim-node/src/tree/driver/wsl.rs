//! Driver under WSL: its folder in the driver store, and the libraries that load those of the
//! store.

use std::path::Path;

use super::{HOOKS, LibraryMachine, NVML, elf, programs};
use crate::{store::DXCORE, tree::HostTree};

/// Folder of the driver in the store, and folder of the libraries that load those of the store.
const STORE: &str = "usr/lib/wsl/drivers/nv_dispi.inf_amd64_9f1c3b7a5d2e8046";
const LIB: &str = "usr/lib/wsl/lib";

/// Libraries in the store: file name and soname.
const STORED: [(&str, &str); 9] = [
    ("libcuda.so.1.1", "libcuda.so.1"),
    ("libcuda_loader.so", "libcuda_loader.so"),
    ("libnvcuvid.so.1", "libnvcuvid.so.1"),
    ("libnvdxgdmal.so.1", "libnvdxgdmal.so.1"),
    ("libnvidia-encode.so.1", "libnvidia-encode.so.1"),
    ("libnvidia-ml_loader.so", "libnvidia-ml_loader.so"),
    ("libnvidia-nvvm70.so.4", "libnvidia-nvvm70.so.4"),
    (
        "libnvidia-ptxjitcompiler.so.1",
        "libnvidia-ptxjitcompiler.so.1",
    ),
    ("libnvoptix_loader.so.1", "libnvoptix_loader.so.1"),
];

/// Libraries that load those of the store. Some exist under several names, as files and not as
/// links.
const LEADING: [(&str, &str); 6] = [
    ("libcuda.so", "libcuda.so.1"),
    ("libcuda.so.1", "libcuda.so.1"),
    ("libcuda.so.1.1", "libcuda.so.1"),
    ("libnvcuvid.so.1", "libnvcuvid.so.1"),
    ("libnvidia-encode.so.1", "libnvidia-encode.so.1"),
    ("libnvidia-opticalflow.so.1", "libnvidia-opticalflow.so.1"),
];

/// Adds the installation. `library` is the file that `libnvidia-ml.so.1` loads, with `libdxcore.so`
/// beside it.
pub(super) fn add_wsl_driver(
    tree: &mut HostTree,
    machine: LibraryMachine,
    version: &str,
    library: &Path,
) {
    for (folder, libraries) in [(STORE, &STORED[..]), (LIB, &LEADING[..])] {
        for (name, soname) in libraries {
            let bytes = elf::shared_library(machine, soname, None);
            tree.add_file(format!("{folder}/{name}"), bytes);
        }
        let nvml = format!("{NVML}.so.1");
        let bytes = elf::shared_library(LibraryMachine::HERE, &nvml, Some(library));
        tree.add_file(format!("{folder}/{nvml}"), bytes);
        programs(tree, folder, &["nvidia-smi"], version);
    }
    let dxcore = elf::shared_library(
        LibraryMachine::HERE,
        DXCORE,
        Some(&library.with_file_name(DXCORE)),
    );
    tree.add_file(format!("{LIB}/{DXCORE}"), dxcore);
    tree.add_file(format!("{STORE}/nvcubins.bin"), "cubins");
    // The store has files of the Windows driver, too.
    tree.add_file(format!("{STORE}/nvlddmkm.sys"), "Windows");
    programs(tree, "usr/bin", &HOOKS, version);
}
