//! Layouts of driver files in distributions and driver containers, as the probe reports them. The
//! probe's own tests check that it finds such files.

use std::path::PathBuf;

use model::{DriverFile, FileKind, FileLink, NodeStat};
use rstest::rstest;

use super::*;

/// Layout of a machine's driver files.
struct Layout {
    /// Folder of the libraries.
    lib: &'static str,
    /// Driver root and device root on the host.
    roots: [&'static str; 2],
    /// Programs for hooks under the driver root.
    hooks: &'static [&'static str],
    /// Hook path in the config.
    hook_path: &'static str,
    /// True if links lead through `/etc/alternatives`, which no container has.
    alternatives: bool,
}

const DEBIAN: Layout = Layout {
    lib: "/usr/lib/x86_64-linux-gnu",
    roots: ["/", "/"],
    hooks: &["/usr/bin/nvidia-ctk", "/usr/bin/nvidia-cdi-hook"],
    hook_path: NvidiaCdi::HOOK_PATH,
    alternatives: true,
};
const RHEL: Layout = Layout {
    lib: "/usr/lib64",
    hooks: &["/usr/bin/nvidia-cdi-hook"],
    alternatives: false,
    ..DEBIAN
};
const CONTAINER_DRIVER: Layout = Layout {
    roots: ["/run/nvidia/driver", "/run/nvidia/driver"],
    hooks: &[],
    alternatives: false,
    ..DEBIAN
};
const GPU_OPERATOR: Layout = Layout {
    roots: ["/run/nvidia/driver", "/"],
    hook_path: "/usr/local/nvidia/toolkit/nvidia-ctk",
    ..CONTAINER_DRIVER
};
const ARM: Layout = Layout {
    lib: "/usr/lib/aarch64-linux-gnu",
    alternatives: false,
    ..DEBIAN
};

pub(super) fn file(path: &str, kind: FileKind, links: &[(&str, &str)]) -> DriverFile {
    let links = links.iter().map(|(path, target)| FileLink {
        path: (*path).to_owned(),
        target: (*target).to_owned(),
    });
    DriverFile {
        path: path.to_owned(),
        kind,
        container_path: None,
        soname: None,
        links: links.collect(),
    }
}

/// Makes some files of each kind.
fn tree(layout: &Layout) -> Vec<DriverFile> {
    let lib = |name: &str| format!("{}/{name}", layout.lib);
    let cuda = format!("libcuda.so.{VERSION}");
    let mut files = vec![
        file(
            &lib(&cuda),
            FileKind::Library,
            &[(&lib("libcuda.so.1"), &cuda)],
        ),
        file(
            &lib(&format!("libnvidia-ml.so.{VERSION}")),
            FileKind::Library,
            &[(
                &lib("libnvidia-ml.so.1"),
                &format!("libnvidia-ml.so.{VERSION}"),
            )],
        ),
        file(
            &lib(&format!("vdpau/libvdpau_nvidia.so.{VERSION}")),
            FileKind::Library,
            &[],
        ),
        file("/usr/bin/nvidia-smi", FileKind::Binary, &[]),
        file(
            &format!("/usr/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin"),
            FileKind::Firmware,
            &[],
        ),
        file("/run/nvidia-persistenced/socket", FileKind::Ipc, &[]),
        file("/etc/OpenCL/vendors/nvidia.icd", FileKind::Config, &[]),
        file("/etc/cufile.json", FileKind::Gds, &[]),
    ];
    files.push(DriverFile {
        container_path: Some("/etc/vulkan/icd.d/nvidia_icd.json".to_owned()),
        ..file(
            "/usr/share/vulkan/icd.d/nvidia_icd.json",
            FileKind::Config,
            &[],
        )
    });
    if layout.alternatives {
        files[0].links.push(FileLink {
            path: lib("libcuda.so"),
            target: "/etc/alternatives/glx--libcuda.so-x86_64-linux-gnu".to_owned(),
        });
    }
    files.sort();
    files
}

fn files(layout: &Layout) -> DriverFiles {
    let stat = |minor, mode, gid| NodeStat {
        major: 195,
        minor,
        mode,
        uid: 0,
        gid,
    };
    let nodes = [
        ("/dev/nvidia0", stat(0, 0o666, 0)),
        ("/dev/nvidiactl", stat(255, 0o666, 0)),
        ("/dev/nvidia-uvm", stat(0, 0o666, 0)),
        ("/dev/dri/card0", stat(1, 0o660, 44)),
        ("/dev/dri/renderD128", stat(128, 0o660, 110)),
    ];
    DriverFiles {
        files: tree(layout),
        nodes: nodes.map(|(path, stat)| (path.to_owned(), stat)).into(),
        drm: [(
            "0000:3b:00.0".parse().unwrap(),
            vec![
                "/dev/dri/card0".to_owned(),
                "/dev/dri/renderD128".to_owned(),
            ],
        )]
        .into(),
        hooks: layout.hooks.iter().map(|hook| (*hook).to_owned()).collect(),
        ..DriverFiles::default()
    }
}

fn settings(layout: &Layout) -> (SpecContents, NvidiaCdi) {
    let wish = SpecContents {
        dev_root: PathBuf::from(layout.roots[1]),
        ..SpecContents::default()
    };
    let cdi = NvidiaCdi {
        driver_root: layout.roots[0].into(),
        hook_path: layout.hook_path.into(),
        ..cdi()
    };
    (wish, cdi)
}

/// Makes one card with a display, on a machine with this layout.
pub(super) fn one(layout_of: &str) -> (Snapshot, SpecContents, NvidiaCdi) {
    let layout = match layout_of {
        "debian" => DEBIAN,
        "rhel" => RHEL,
        "container-driver" => CONTAINER_DRIVER,
        "gpu-operator" => GPU_OPERATOR,
        "aarch64" => ARM,
        other => panic!("no layout {other}"),
    };
    let card = Card {
        pci: Some("0000:3b:00.0".parse().unwrap()),
        ..indexed_card(0)
    };
    let (wish, cdi) = settings(&layout);
    (machine(vec![card], files(&layout)), wish, cdi)
}

#[rstest]
fn a_layout_has_this_spec(
    #[values("debian", "rhel", "container-driver", "gpu-operator", "aarch64")] name: &str,
) {
    let (snapshot, wish, cdi) = one(name);
    let made = made(&snapshot, &wish, &cdi);
    let [spec] = &made.specs[..] else {
        panic!("{:?}", made.specs);
    };
    let value = serde_json::to_value(spec).unwrap();
    assert_eq!(check_spec(&value), []);
    let notes: String = made
        .notes
        .iter()
        .map(|note| format!("note: {note}\n"))
        .collect();
    insta::assert_snapshot!(name, notes + &spec.to_text());
}
