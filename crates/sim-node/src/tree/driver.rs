//! Installation of the driver: libraries with their links, programs, firmware and settings, at the
//! paths of Debian and Ubuntu. Under WSL they are in the driver store; a Tegra system also has the
//! files that list them. All of them are empty shells except `libnvidia-ml.so.1`, which loads the
//! node's driver library.

use std::path::Path;

use super::HostTree;
use crate::state::{NodePlatform, NodeState};

mod elf;
mod loader;
mod tegra;
mod wsl;

pub(super) use elf::LibraryMachine;

/// Libraries with the driver's version: name, number of the soname if it has one, and true if a
/// link without a number exists.
const LIBRARIES: [(&str, Option<u32>, bool); 31] = [
    ("libEGL_nvidia", Some(0), false),
    ("libGLESv1_CM_nvidia", Some(1), false),
    ("libGLESv2_nvidia", Some(2), false),
    ("libGLX_nvidia", Some(0), false),
    ("libcuda", Some(1), true),
    ("libcudadebugger", Some(1), false),
    ("libnvcuvid", Some(1), true),
    ("libnvidia-allocator", Some(1), true),
    ("libnvidia-api", Some(1), false),
    ("libnvidia-cfg", Some(1), true),
    ("libnvidia-eglcore", None, false),
    ("libnvidia-encode", Some(1), true),
    ("libnvidia-fbc", Some(1), true),
    ("libnvidia-glcore", None, false),
    ("libnvidia-glsi", None, false),
    ("libnvidia-glvkspirv", None, false),
    ("libnvidia-gpucomp", None, false),
    ("libnvidia-gtk3", None, false),
    (NVML, Some(1), true),
    ("libnvidia-ngx", Some(1), false),
    ("libnvidia-nvvm", Some(4), true),
    ("libnvidia-opencl", Some(1), false),
    ("libnvidia-opticalflow", Some(1), true),
    ("libnvidia-pkcs11", None, false),
    ("libnvidia-pkcs11-openssl3", None, false),
    ("libnvidia-ptxjitcompiler", Some(1), true),
    ("libnvidia-rtcore", None, false),
    ("libnvidia-tls", None, false),
    ("libnvidia-wayland-client", None, false),
    ("libnvoptix", Some(1), false),
    ("vdpau/libvdpau_nvidia", Some(1), false),
];

/// The library that can be loaded and called.
const NVML: &str = "libnvidia-ml";

/// Libraries with versions of their own: name, version, number of the soname.
const OTHERS: [(&str, &str, u32); 3] = [
    ("libnvidia-egl-gbm", "1.1.2", 1),
    ("libnvidia-egl-wayland", "1.1.19", 1),
    ("libnvidia-nvvm70", "4", 4),
];

/// Programs that hooks call.
const HOOKS: [&str; 2] = ["nvidia-cdi-hook", "nvidia-ctk"];

const PROGRAMS: [&str; 7] = [
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "nvidia-debugdump",
    "nvidia-imex",
    "nvidia-imex-ctl",
    "nvidia-persistenced",
    "nvidia-smi",
];

/// Settings files, each with the library that it names.
const SETTINGS: [(&str, &str); 6] = [
    ("etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n"),
    (
        "etc/vulkan/icd.d/nvidia_icd.json",
        r#"{"file_format_version": "1.0.1", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.4.312"}}"#,
    ),
    (
        "usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json",
        r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "libnvidia-egl-wayland.so.1"}}"#,
    ),
    (
        "usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
        r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "libnvidia-egl-gbm.so.1"}}"#,
    ),
    (
        "usr/share/glvnd/egl_vendor.d/10_nvidia.json",
        r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "libEGL_nvidia.so.0"}}"#,
    ),
    (
        "usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf",
        "Section \"OutputClass\"\n    Identifier \"nvidia\"\n    MatchDriver \"nvidia-drm\"\n    \
         Driver \"nvidia\"\nEndSection\n",
    ),
];

/// Adds the installation. `library` is the file that `libnvidia-ml.so.1` loads.
pub(super) fn add_driver(tree: &mut HostTree, state: &NodeState, library: &Path) {
    let version = &state.driver.version;
    if !is_name(version) {
        return;
    }
    for (old, new) in [("bin", "usr/bin"), ("lib", "usr/lib"), ("sbin", "usr/sbin")] {
        tree.add_relative_link(old, new);
    }
    match state.machine.platform {
        NodePlatform::BareMetal | NodePlatform::Vgpu => add_usual_driver(tree, state, library),
        NodePlatform::Wsl => wsl::add_wsl_driver(
            tree,
            LibraryMachine::machine_of_state(state),
            version,
            library,
        ),
        NodePlatform::Tegra => {
            let software = state.machine.tegra.as_ref();
            tegra::add_tegra_driver(tree, software.map_or(35, |software| software.release));
        }
    }
}

/// Adds the installation of a machine with cards on a PCI bus.
fn add_usual_driver(tree: &mut HostTree, state: &NodeState, library: &Path) {
    let version = &state.driver.version;
    add_libraries(
        tree,
        LibraryMachine::machine_of_state(state),
        version,
        library,
    );
    xorg(tree, LibraryMachine::machine_of_state(state), version);
    programs(tree, "usr/bin", &HOOKS, version);
    programs(tree, "usr/bin", &PROGRAMS, version);
    for name in ["gsp_ga10x.bin", "gsp_tu10x.bin"] {
        tree.add_file(format!("usr/lib/firmware/nvidia/{version}/{name}"), "GSP");
    }
    for (path, text) in SETTINGS {
        tree.add_file(path, text);
    }
    tree.add_file("usr/share/nvidia/nvoptix.bin", "OptiX");
    tree.add_socket("run/nvidia-persistenced/socket");
    if state
        .models
        .values()
        .any(|model| model.links_per_switch > 0)
    {
        tree.add_socket("run/nvidia-fabricmanager/socket");
    }
}

fn programs(tree: &mut HostTree, folder: &str, names: &[&str], version: &str) {
    for name in names {
        let script =
            format!("#!/bin/sh\necho \"{name} {version}: there is no GPU, this is simulated\"\n");
        tree.add_program(format!("{folder}/{name}"), script);
    }
}

fn add_libraries(tree: &mut HostTree, machine: LibraryMachine, version: &str, nvml: &Path) {
    let folder = format!("usr/lib/{}", machine.triplet());
    let mut cached = Vec::new();
    for (name, number, bare) in LIBRARIES {
        let (below, stem) = name.rsplit_once('/').unwrap_or(("", name));
        let file = format!("{stem}.so.{version}");
        let soname = number.map_or_else(|| file.clone(), |number| format!("{stem}.so.{number}"));
        // NVML is really loaded, so it must be for the machine that this program runs on.
        let bytes = match stem == NVML {
            true => elf::shared_library(LibraryMachine::HERE, &soname, Some(nvml)),
            false => elf::shared_library(machine, &soname, None),
        };
        let at = match below {
            "" => folder.clone(),
            below => format!("{folder}/{below}"),
        };
        tree.add_file(format!("{at}/{file}"), bytes);
        if soname != file {
            tree.said_link(format!("{at}/{soname}"), &file);
        }
        if bare {
            tree.said_link(format!("{at}/{stem}.so"), &soname);
        }
        if below.is_empty() {
            cached.push(soname);
        }
    }
    for (name, version, number) in OTHERS {
        let (file, soname) = (
            format!("{name}.so.{version}"),
            format!("{name}.so.{number}"),
        );
        let bytes = elf::shared_library(machine, &soname, None);
        tree.add_file(format!("{folder}/{file}"), bytes);
        if soname != file {
            tree.said_link(format!("{folder}/{soname}"), &file);
        }
        cached.push(soname);
    }
    let gbm = format!("{folder}/gbm/nvidia-drm_gbm.so");
    tree.said_link(gbm, "../libnvidia-allocator.so.1");
    tree.add_file("etc/ld.so.cache", loader::cache(machine, &folder, &cached));
}

fn xorg(tree: &mut HostTree, machine: LibraryMachine, version: &str) {
    let modules = "usr/lib/xorg/modules";
    let driver = elf::shared_library(machine, "nvidia_drv.so", None);
    tree.add_file(format!("{modules}/drivers/nvidia_drv.so"), driver);
    let file = format!("libglxserver_nvidia.so.{version}");
    let server = elf::shared_library(machine, "libglxserver_nvidia.so", None);
    tree.add_file(format!("{modules}/extensions/{file}"), server);
    tree.said_link(
        format!("{modules}/extensions/libglxserver_nvidia.so"),
        &file,
    );
}

/// True if a version is a safe file name: one from a hand-written file must not lead out of the
/// tree.
fn is_name(version: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(plain)
}
