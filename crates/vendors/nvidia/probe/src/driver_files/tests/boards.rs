//! Machines whose driver is not installed in the usual way: WSL and Tegra boards.

use model::Platform;
use proptest::prelude::*;

use super::{random::check, *};

const STORES: &str = "usr/lib/wsl/drivers";
const STORE: &str = "usr/lib/wsl/drivers/nv_dispi.inf_amd64_0a1b2c3d4e5f6071";
const CSV: &str = "etc/nvidia-container-runtime/host-files-for-container.d";
const ARM: &str = "usr/lib/aarch64-linux-gnu";

/// Makes a WSL machine without a driver.
fn windows() -> Host {
    let host = Host::new();
    host.file("dev/dxg", "").libraries(
        62,
        "usr/lib/wsl/lib",
        &["libdxcore.so", "libd3d12.so", "libcuda.so.1", "libcuda.so"],
    );
    host
}

/// Makes a driver store of NVIDIA's.
fn store(host: &Host, folder: &str) {
    host.libraries(
        62,
        folder,
        &[
            "libcuda.so.1.1",
            "libcuda_loader.so",
            "libnvidia-ml.so.1",
            "libnvdxgdmal.so.1",
        ],
    )
    .file(&format!("{folder}/nvcubins.bin"), "x")
    .file(&format!("{folder}/nvlddmkm.sys"), "x")
    .programs(folder, &["nvidia-smi"]);
}

#[test]
fn below_windows_the_driver_is_in_the_store() {
    let host = windows();
    store(&host, STORE);
    host.libraries(62, "usr/lib/wsl/lib", &["libnvidia-encode.so.1"])
        .libraries(62, &format!("{STORES}/iigd_dch.inf_amd64_1"), &["libze.so"])
        .programs("usr/lib/wsl/lib", &["nvidia-smi"])
        .programs("usr/bin", &["nvidia-cdi-hook"]);
    insta::assert_yaml_snapshot!(host.find());
}

#[test]
fn several_stores_are_all_taken_and_told() {
    let host = windows();
    let other = format!("{STORES}/nvhm.inf_amd64_9");
    store(&host, STORE);
    store(&host, &other);
    let found = host.find();
    let cuda = paths(&found).into_iter();
    let cuda = cuda.filter(|path| path.contains("libcuda.so"));
    let both = [STORE, &other].map(|store| format!("/{store}/libcuda.so.1.1"));
    assert_eq!(cuda.collect::<Vec<_>>(), both);
    let programs = found.files.iter();
    let programs = programs.filter(|file| file.path.ends_with("nvidia-smi"));
    assert_eq!(programs.count(), 1, "a container has one");
    let [problem] = &found.problems[..] else {
        panic!("{:?}", found.problems);
    };
    assert!(problem.contains(&other), "{problem}");
}

#[test]
fn without_a_store_what_leads_to_it_is_taken_and_the_lack_told() {
    let found = windows().find();
    let libraries = ["libcuda.so", "libcuda.so.1", "libdxcore.so"];
    let libraries = libraries.map(|name| format!("/usr/lib/wsl/lib/{name}"));
    assert_eq!(paths(&found), libraries);
    assert!(found.problems[0].contains("/usr/lib/wsl/drivers"));
}

/// Returns the card of a Tegra board.
fn card() -> Device {
    Device::card_of("nvidia", "tegra", "NVIDIA Tegra")
        .with_attribute(model::names::INTEGRATED, true)
}

fn board(host: &Host) -> DriverFiles {
    let found = host
        .finder()
        .find_current_files(&driver(), &[card()], Instant::now());
    Arc::unwrap_or_clone(found)
}

/// Makes a Jetson with these lists.
fn jetson(devices: &str, drivers: &str) -> Host {
    let host = Host::new();
    host.file("dev/nvmap", "")
        .file(&format!("{CSV}/devices.csv"), devices)
        .file(&format!("{CSV}/drivers.csv"), drivers);
    host
}

#[test]
fn a_board_is_what_its_system_tells() {
    let devices =
        "# GPU\ndev, /dev/nvmap\ndev, /dev/nvhost-*\ndev, /dev/nvgpu/igpu?/as\ndev, /dev/none\n";
    let drivers = "\
lib, /usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1.1
sym, /usr/lib/aarch64-linux-gnu/libcuda.so
lib, /usr/lib/aarch64-linux-gnu/nvidia/libnvrm*.so
lib, /usr/lib/none.so
dir, /lib/firmware/ga10b
sym, /etc/vulkan/icd.d/nvidia_icd.json
";
    let host = jetson(devices, drivers);
    host.libraries(
        183,
        &format!("{ARM}/nvidia"),
        &[
            "libcuda.so.1.1",
            "libnvrm_gpu.so",
            "libnvrm_mem.so",
            "libother.so",
        ],
    )
    .file("dev/nvhost-gpu", "")
    .file("dev/nvhost-ctrl", "")
    .file("dev/nvgpu/igpu0/as", "")
    .file("usr/lib/firmware/ga10b/gpmu.bin", "x")
    .file(&format!("{ARM}/nvidia/nvidia_icd.json"), "{}")
    .file("etc/nv_tegra_release", "# R36")
    .file(&format!("{CSV}/cudnn.csv"), "lib, /etc/nv_tegra_release")
    .programs("usr/bin", &["nvidia-ctk"])
    .links(&[
        ("lib", "usr/lib"),
        (&format!("{ARM}/tegra"), "nvidia"),
        (&format!("{ARM}/libcuda.so"), "tegra/libcuda.so"),
        (&format!("{ARM}/nvidia/libcuda.so"), "libcuda.so.1.1"),
        (&format!("{ARM}/nvidia/libcuda.so.1"), "libcuda.so.1.1"),
        (
            "etc/vulkan/icd.d/nvidia_icd.json",
            &format!("/{ARM}/nvidia/nvidia_icd.json"),
        ),
    ]);
    insta::assert_yaml_snapshot!(board(&host));
}

#[test]
fn a_board_is_known_by_its_card_s_name_too() {
    let host = jetson("dev, /dev/nvmap\n", "");
    let card = Device::card_of("nvidia", "GPU-0", "Orin (nvgpu)");
    let found = host
        .finder()
        .find_current_files(&driver(), &[card], Instant::now());
    assert_eq!(found.platform, Platform::Tegra);
    assert_eq!(found.board_nodes, ["/dev/nvmap"]);
    assert_eq!(host.find().platform, Platform::Usual);
}

#[test]
fn lines_that_cannot_be_meant_are_told_with_their_place() {
    let host = jetson(
        "dev, /dev/nvmap\n\nbus, /dev/i2c-0\ndev\n",
        "dir, /usr/../..\n",
    );
    let found = board(&host);
    assert_eq!(found.board_nodes, ["/dev/nvmap"]);
    assert_eq!(
        found.problems,
        [
            format!("/{CSV}/devices.csv:3 is passed over: `bus` is none of dev, dir, lib and sym"),
            format!(
                "/{CSV}/devices.csv:4 is passed over: there is no comma between a kind and a path"
            ),
            format!(
                "/{CSV}/drivers.csv:1 is passed over: the path cannot be written down, or has `..` \
                 in it"
            ),
        ]
    );
}

#[test]
fn a_board_that_tells_nothing_is_told() {
    let host = Host::new();
    host.file(&format!("{CSV}/cuda.csv"), "dev, /dev/nvmap");
    let found = board(&host);
    assert!(found.files.is_empty() && found.board_nodes.is_empty());
    assert!(found.problems[0].contains("devices.csv"), "{found:?}");
}

#[test]
fn what_is_of_another_kind_is_left_out_and_told() {
    let drivers = "lib, /etc/a\ndir, /etc/b\nsym, /etc/c\n";
    let host = jetson("dev, /dev/nvmap\ndev, /dev/dri\n", drivers);
    host.file("dev/dri/card0", "")
        .file("etc/a/x", "")
        .file("etc/b", "")
        .links(&[("etc/c", "a")]);
    let found = board(&host);
    assert!(found.files.is_empty(), "{found:?}");
    assert_eq!(found.board_nodes, ["/dev/nvmap"]);
    let told = ["/etc/a", "/etc/b", "/etc/c"].map(|path| {
        let problems = found.problems.iter();
        problems.filter(|problem| problem.starts_with(path)).count()
    });
    assert_eq!(told, [1, 1, 1], "{:?}", found.problems);
}

#[test]
fn links_of_a_board_do_not_lead_out_of_its_root() {
    let outside = Host::new();
    outside.file("secret", "x");
    let host = jetson("", "sym, /etc/a\nsym, /etc/b\nlib, /etc/loop\n");
    let absolute = outside.path().join("secret").display().to_string();
    let up = format!("{}{absolute}", "../".repeat(40));
    host.links(&[("etc/a", &absolute), ("etc/b", &up), ("etc/loop", "loop")]);
    assert_eq!(board(&host).files, []);
}

#[test]
fn a_file_that_has_no_end_is_read_so_far() {
    let line = "dev, /dev/nvmap\n";
    let host = jetson(&line.repeat((2 << 20) / line.len()), "dev, /dev/nvmap\n");
    let found = board(&host);
    assert_eq!(found.board_nodes, ["/dev/nvmap"]);
    let [problem] = &found.problems[..] else {
        panic!("{:?}", found.problems);
    };
    assert!(problem.contains("bytes"), "{problem}");
}

#[test]
fn patterns_without_end_are_looked_up_so_far() {
    let devices: String = (0..1100).map(|n| format!("dev, /dev/n{n}/*\n")).collect();
    let drivers = "lib, /usr/*/*\n".repeat(600);
    let host = jetson(&format!("dev, /dev/nvmap\n{devices}"), &drivers);
    for n in 0..4 {
        host.file(&format!("usr/lib{n}/x"), "");
    }
    let found = board(&host);
    assert_eq!(found.board_nodes, ["/dev/nvmap"]);
    assert_eq!(found.files.len(), 4);
    let [problem] = &found.problems[..] else {
        panic!("{:?}", found.problems);
    };
    assert!(problem.contains("more patterns"), "{problem}");
}

#[test]
fn a_file_that_is_written_over_is_read_again() {
    let host = jetson("dev, /dev/nvmap\n", "lib, /etc/a\n");
    host.file("etc/a", "").file("etc/b", "");
    for name in ["devices.csv", "drivers.csv"] {
        let file = host.place(&format!("{CSV}/{name}"));
        let opened = std::fs::File::options().write(true).open(file).unwrap();
        opened.set_modified(SystemTime::now() - HOUR).unwrap();
    }
    let (mut finder, start) = (host.age().finder(), Instant::now());
    let first = finder.find_current_files(&driver(), &[card()], start);
    assert_eq!(paths(&first), ["/etc/a"]);
    let same = finder.find_current_files(&driver(), &[card()], start + MINUTE);
    assert!(Arc::ptr_eq(&first, &same));
    host.file(&format!("{CSV}/drivers.csv"), "lib, /etc/b\n");
    let later = finder.find_current_files(&driver(), &[card()], start + 2 * MINUTE);
    assert_eq!(paths(&later), ["/etc/b"]);
}

#[test]
fn nodes_of_a_board_that_come_later_are_seen_at_once() {
    let host = jetson("dev, /dev/nv*\n", "");
    let (mut finder, start) = (host.finder(), Instant::now());
    let first = finder.find_current_files(&driver(), &[card()], start);
    assert_eq!(first.board_nodes, ["/dev/nvmap"]);
    host.file("dev/nvhost-gpu", "");
    let later = finder.find_current_files(&driver(), &[card()], start);
    assert_eq!(later.board_nodes, ["/dev/nvhost-gpu", "/dev/nvmap"]);
    fs_err::remove_file(host.place("dev/nvhost-gpu")).unwrap();
    let again = finder.find_current_files(&driver(), &[card()], start);
    assert_eq!(again.board_nodes, ["/dev/nvmap"]);
}

/// Generates paths and patterns, some of which are on the board.
fn path() -> impl Strategy<Value = String> {
    let parts = [
        "usr",
        "lib",
        "tegra",
        "nvidia",
        "dev",
        "etc",
        "nv*",
        "*",
        "lib*.so*",
        "loop",
        "out",
        "nvmap",
        "libcuda.so",
        "..",
        "[a",
    ];
    let parts = proptest::collection::vec(proptest::sample::select(parts.to_vec()), 1..5);
    parts.prop_map(|parts| format!("/{}", parts.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_system_tells_what_is_reported_is_there(
        lines in proptest::collection::vec(("dev|dir|lib|sym", path()), 0..12),
    ) {
        let lines = lines.iter().map(|(kind, path)| format!("{kind}, {path}\n"));
        let host = jetson("dev, /dev/nv*\n", &lines.collect::<String>());
        host.libraries(183, "usr/lib/nvidia", &["libcuda.so.1.1", "libnvrm.so"])
            .file("dev/nv\nhost", "")
            .links(&[
                ("lib", "usr/lib"),
                ("usr/lib/tegra", "nvidia"),
                ("usr/lib/libcuda.so", "tegra/libcuda.so"),
                ("usr/lib/nvidia/libcuda.so", "libcuda.so.1.1"),
                ("usr/lib/loop", "../lib/loop"),
                ("usr/lib/out", "../../../../../../../../../etc/passwd"),
            ]);
        let found = board(&host);
        check(&host, &found);
        let nodes = found.board_nodes.iter();
        let odd = nodes.filter(|node| node.contains(char::is_control) || !node.starts_with('/'));
        prop_assert_eq!(odd.count(), 0);
        for node in &found.board_nodes {
            prop_assert!(host.path().join(&node[1..]).is_file(), "{}", node);
        }
    }
}
