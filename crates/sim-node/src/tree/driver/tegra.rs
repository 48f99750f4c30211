//! Driver of a Tegra system, and the CSV files that list the files for containers.

use super::{HOOKS, LibraryMachine, elf, programs};
use crate::tree::{HostTree, platform::TEGRA_NODES};

/// Folder of the CSV files.
const CSV: &str = "etc/nvidia-container-runtime/host-files-for-container.d";

/// Libraries: file name, soname, and names of links to the library.
const LIBRARIES: [(&str, &str, &[&str]); 6] = [
    (
        "libcuda.so.1.1",
        "libcuda.so.1",
        &["libcuda.so.1", "libcuda.so"],
    ),
    ("libnvcuvidv4l2.so", "libnvcuvidv4l2.so", &[]),
    ("libnvos.so", "libnvos.so", &[]),
    ("libnvrm_gpu.so", "libnvrm_gpu.so", &[]),
    ("libnvrm_mem.so", "libnvrm_mem.so", &[]),
    ("libnvsciipc.so", "libnvsciipc.so", &[]),
];

/// Nodes that only other boards have: one CSV file covers many boards.
const OTHERS: [&str; 3] = ["fb0", "nvhost-nvdla0", "v4l2-nvenc"];

/// Settings: file below the folder of the libraries, and the link to it.
const SETTINGS: [(&str, &str); 2] = [
    ("nvidia_icd.json", "etc/vulkan/icd.d/nvidia_icd.json"),
    ("nvidia.json", "usr/share/glvnd/egl_vendor.d/10_nvidia.json"),
];

/// Folder of the GPU's firmware.
const FIRMWARE: &str = "lib/firmware/ga10b";

/// Adds the installation for this release of Jetson Linux.
pub(super) fn add_tegra_driver(tree: &mut HostTree, release: u32) {
    let own = if release < 36 { "tegra" } else { "nvidia" };
    let lib = format!("usr/lib/{}", LibraryMachine::Arm.triplet());
    let mut drivers = String::from("# What containers need of the driver.\n");
    for (name, soname, links) in LIBRARIES {
        tree.add_file(
            format!("{lib}/{own}/{name}"),
            elf::shared_library(LibraryMachine::Arm, soname, None),
        );
        drivers += &format!("lib, /{lib}/{own}/{name}\n");
        for link in links {
            tree.said_link(format!("{lib}/{own}/{link}"), name);
            drivers += &format!("sym, /{lib}/{own}/{link}\n");
        }
    }
    tree.said_link(format!("{lib}/libcuda.so"), &format!("{own}/libcuda.so"));
    drivers += &format!("sym, /{lib}/libcuda.so\n");
    for (name, link) in SETTINGS {
        tree.add_file(format!("{lib}/{own}/{name}"), "{}");
        tree.said_link(link, &format!("/{lib}/{own}/{name}"));
        drivers += &format!("lib, /{lib}/{own}/{name}\nsym, /{link}\n");
    }
    tree.add_file(format!("usr/{FIRMWARE}/gpmu_ucode_image.bin"), "firmware");
    drivers += &format!("dir, /{FIRMWARE}\n\nlib, /{lib}/{own}/libnvdla_runtime.so\n");
    let nodes = TEGRA_NODES.into_iter().chain(OTHERS);
    let devices: String = nodes.map(|node| format!("dev, /dev/{node}\n")).collect();
    tree.add_file(format!("{CSV}/devices.csv"), devices);
    tree.add_file(format!("{CSV}/drivers.csv"), drivers);
    programs(tree, "usr/bin", &HOOKS, &release.to_string());
}
