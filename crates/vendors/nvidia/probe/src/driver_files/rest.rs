//! Files of a driver beside its libraries: settings, firmware, sockets, programs. The lists follow
//! those of NVIDIA's toolkit 1.20.0 (nvcdi).

use model::FileKind;

use super::search::{RootSearch, WantedKind, join_path};

/// Folders of settings.
const SHARES: [&str; 3] = ["/etc", "/usr/local/share", "/usr/share"];

/// Settings and data for EGL, OptiX, OpenCL and the X server.
const CONFIGS: [&str; 8] = [
    "glvnd/egl_vendor.d/10_nvidia.json",
    "egl/egl_external_platform.d/15_nvidia_gbm.json",
    "egl/egl_external_platform.d/10_nvidia_wayland.json",
    "egl/egl_external_platform.d/09_nvidia_wayland2.json",
    "nvidia/nvoptix.bin",
    "X11/xorg.conf.d/10-nvidia.conf",
    "X11/xorg.conf.d/nvidia-drm-outputclass.conf",
    "OpenCL/vendors/nvidia.icd",
];

/// Settings for Vulkan. A container needs them in its `/etc`; some drivers have them in their root
/// folder.
const VULKAN: [&str; 5] = [
    "vulkan/icd.d/nvidia_icd.json",
    "vulkan/icd.d/nvidia_icd.x86_64.json",
    "vulkan/icd.d/nvidia_icd.aarch64.json",
    "vulkan/icd.d/nvidia_layers.json",
    "vulkan/implicit_layer.d/nvidia_layers.json",
];

/// Firmware search path of the kernel, without the folders of one kernel release.
const FIRMWARE: [&str; 2] = ["/lib/firmware/updates", "/lib/firmware"];

/// Files of the kernel that name one more firmware folder, and the kernel's release.
const FIRMWARE_PATH: &str = "/sys/module/firmware_class/parameters/path";
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Folders of daemon sockets, and the sockets.
const RUNS: [&str; 2] = ["/run", "/var/run"];
const SOCKETS: [&str; 2] = ["nvidia-persistenced/socket", "nvidia-fabricmanager/socket"];

/// Folder of an MPS daemon that was started with NVIDIA's defaults.
const MPS: &str = "/tmp/nvidia-mps";

/// Folders of programs.
const BINS: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];
const BINARIES: [&str; 7] = [
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "nvidia-imex",
    "nvidia-imex-ctl",
];

/// Programs that a container runtime runs as hooks, and further folders where the GPU operator's
/// toolkit container installs them.
const HOOKS: [&str; 2] = ["nvidia-cdi-hook", "nvidia-ctk"];
const TOOLKIT: [&str; 2] = ["/usr/local/nvidia/toolkit", "/usr/local/nvidia/bin"];

/// Adds all of these files. `version` selects the firmware.
pub(super) fn add_other_files(search: &mut RootSearch<'_>, version: &str) {
    configs(search);
    vulkan(search);
    firmware(search, version);
    sockets(search);
    for name in BINARIES {
        let places = BINS.map(|folder| join_path(folder, name));
        add_first(search, &places, WantedKind::Program, FileKind::Binary);
    }
    for (path, want) in [
        ("/run/udev", WantedKind::Folder),
        ("/etc/cufile.json", WantedKind::File),
    ] {
        add_first(search, &[path.to_owned()], want, FileKind::Gds);
    }
}

/// Finds the programs that can be run as hooks, under the paths by which an operator knows them.
pub(super) fn hooks(search: &mut RootSearch<'_>) -> Vec<String> {
    let folders = || BINS.iter().chain(&TOOLKIT);
    let mut found = Vec::new();
    for name in HOOKS {
        let mut places = folders().map(|folder| join_path(folder, name));
        found.extend(places.find(|place| search.find_path(place, WantedKind::Program).is_some()));
    }
    found
}

/// Adds settings from every folder that has them.
fn configs(search: &mut RootSearch<'_>) {
    for name in CONFIGS {
        for share in SHARES {
            let place = join_path(share, name);
            add_first(search, &[place], WantedKind::File, FileKind::Config);
        }
    }
}

/// Adds Vulkan's settings, each from the first folder that has it.
fn vulkan(search: &mut RootSearch<'_>) {
    for name in VULKAN {
        let places = SHARES
            .iter()
            .chain(&["/"])
            .map(|share| join_path(share, name));
        let mut found = places.filter_map(|place| search.find_path(&place, WantedKind::File));
        if let Some(path) = found.next() {
            drop(found);
            search.add_file(path, FileKind::Config, Some(&join_path("/etc", name)));
        }
    }
}

/// Adds the GSP firmware. The kernel searches these folders in the same order
/// (drivers/base/firmware_loader/main.c, fw_path).
fn firmware(search: &mut RootSearch<'_>, version: &str) {
    let files = search.host_files();
    let own = files.read_trimmed(FIRMWARE_PATH, None);
    let own = own.filter(|path| path.starts_with('/') && !path.contains(char::is_control));
    let release = files.read_trimmed(RELEASE, None);
    let release = release.filter(|text| is_name(text));
    let mut folders: Vec<String> = own.into_iter().collect();
    for folder in FIRMWARE {
        folders.extend(release.iter().map(|release| join_path(folder, release)));
        folders.push(folder.to_owned());
    }
    for folder in folders {
        let place = join_path(&folder, &format!("nvidia/{version}"));
        let Some(real) = search.find_folder(&place) else {
            continue;
        };
        for (name, _) in search.list_folder(&real).items {
            if name.starts_with("gsp") && name.ends_with(".bin") {
                let file = join_path(&place, &name);
                add_first(search, &[file], WantedKind::File, FileKind::Firmware);
            }
        }
    }
}

/// Adds the sockets of persistence daemon and fabric manager, and the folder of the MPS daemon.
fn sockets(search: &mut RootSearch<'_>) {
    for name in SOCKETS {
        let places = RUNS.map(|folder| join_path(folder, name));
        add_first(search, &places, WantedKind::Socket, FileKind::Ipc);
    }
    add_first(search, &[MPS.to_owned()], WantedKind::Folder, FileKind::Ipc);
}

/// Adds the first of these places that is of the wanted kind, for the same path in a container.
fn add_first(search: &mut RootSearch<'_>, places: &[String], want: WantedKind, kind: FileKind) {
    for place in places {
        if let Some(path) = search.find_path(place, want) {
            search.add_file(path, kind, Some(place));
            return;
        }
    }
}

/// Returns true if a text is a plain file name of less than 128 bytes.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+~".contains(c);
    !text.is_empty() && !text.starts_with('.') && text.len() < 128 && text.chars().all(plain)
}
