//! Folders that were made to do harm.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use super::*;

fn problem(found: &DriverFiles, part: &str) -> bool {
    found.problems.iter().any(|problem| problem.contains(part))
}

#[test]
fn links_never_lead_out_of_the_root() {
    let outside = Host::new();
    outside.libraries(62, "lib", &["libcuda.so.580.95.05"]);
    let host = Host::new();
    let up = format!("{}lib", "../".repeat(40));
    let absolute = outside.path().join("lib").display().to_string();
    host.libraries(62, "lib", &["libnvidia-ml.so.580.95.05"])
        .links(&[
            ("usr/lib64", &up),
            ("usr/lib", &absolute),
            (
                "lib/libcuda.so.580.95.05",
                &format!("{absolute}/libcuda.so.580.95.05"),
            ),
        ]);
    let found = host.find();
    assert_eq!(paths(&found), ["/lib/libnvidia-ml.so.580.95.05"]);
}

#[test]
fn loops_end() {
    let host = Host::new();
    host.libraries(62, "usr/lib64", &["libcuda.so.580.95.05"])
        .links(&[
            ("usr/lib", "lib"),
            ("lib", "/usr/../lib"),
            ("usr/lib64/libnvidia-ml.so.580.95.05", "libnvidia-ml.so.1"),
            ("usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.580.95.05"),
            ("usr/lib64/vdpau", "."),
            ("usr/bin/nvidia-smi", "nvidia-smi"),
        ]);
    let found = host.find();
    assert_eq!(paths(&found), ["/usr/lib64/libcuda.so.580.95.05"]);
    assert!(problem(
        &found,
        "cannot look up /usr/bin/nvidia-smi: its links do not end"
    ));
    assert!(problem(&found, "/usr/lib64/libnvidia-ml.so.580.95.05"));
}

#[test]
fn what_is_no_file_is_left_out_and_nobody_waits_for_it() {
    let host = Host::new();
    host.special("usr/lib64/libcuda.so.580.95.05", FileType::Fifo)
        .special("usr/lib64/libnvidia-cfg.so.580.95.05", FileType::Socket)
        .file("usr/lib64/libnvidia-ml.so.580.95.05/x", "a folder")
        .file("usr/lib64/libnvidia-tls.so.580.95.05", "a text")
        .file("usr/lib64/libnvidia-gpucomp.so.580.95.05", "")
        .special("etc/ld.so.cache", FileType::Fifo)
        .special("usr/bin/nvidia-smi", FileType::Fifo)
        .file("usr/bin/nvidia-debugdump", "not to be run")
        .file("run/nvidia-persistenced/socket", "a file")
        .file("etc/OpenCL/vendors/nvidia.icd/x", "a folder");
    let found = host.find();
    assert_eq!(paths(&found), [""; 0]);
    for part in [
        "libcuda.so.580.95.05 is left out: it is no regular file",
        "libnvidia-cfg.so.580.95.05 is left out: it is no regular file",
        "libnvidia-ml.so.580.95.05 is left out: it is no regular file",
        "libnvidia-tls.so.580.95.05 is left out: it is no library",
        "libnvidia-gpucomp.so.580.95.05 is left out: it is no library",
        "ld.so.cache is left out",
        "nvidia-smi is left out: it is no program",
        "nvidia-debugdump is left out: it is no program",
        "nvidia-persistenced/socket is left out: it is no socket",
        "nvidia.icd is left out: it is no regular file",
    ] {
        assert!(problem(&found, part), "{part}: {:#?}", found.problems);
    }
}

#[test]
fn odd_names_are_left_out_and_shown_on_one_line() {
    let host = Host::new();
    host.libraries(
        62,
        "usr/lib64",
        &["libcuda.so.580.95.05", "lib a.so.580.95.05"],
    );
    for name in [
        &b"lib\nx.so.580.95.05"[..],
        b"lib\xff.so.580.95.05",
        b"\n",
        b"\xff",
    ] {
        fs_err::write(
            host.path().join("usr/lib64").join(OsStr::from_bytes(name)),
            elf(62),
        )
        .unwrap();
    }
    let odd = host.place("usr/lib64/libnvidia-ml.so.580.95.05");
    fs_err::os::unix::fs::symlink(OsStr::from_bytes(b"lib\xff.so.580.95.05"), odd).unwrap();
    let found = host.find();
    let expected = [
        "/usr/lib64/lib a.so.580.95.05",
        "/usr/lib64/libcuda.so.580.95.05",
    ];
    assert_eq!(paths(&found), expected);
    assert_eq!(found.problems.len(), 3, "{:#?}", found.problems);
    assert!(found.problems.iter().all(|line| !line.contains('\n')));
}

#[test]
fn an_unreadable_library_is_left_out_with_a_reason() {
    let host = Host::new();
    host.libraries(
        62,
        "usr/lib64",
        &["libcuda.so.580.95.05", "libnvidia-ml.so.580.95.05"],
    );
    let closed = host.place("usr/lib64/libcuda.so.580.95.05");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs_err::set_permissions(&closed, mode).unwrap();
    let found = host.find();
    // Root can read the file in spite of its mode.
    let denied = fs_err::File::open(&closed).is_err();
    assert_eq!(found.files.len(), if denied { 1 } else { 2 });
    assert_eq!(
        problem(&found, "it cannot be read: permission denied"),
        denied
    );
}

#[test]
fn a_huge_folder_is_read_in_part_and_a_huge_driver_reported_in_part() {
    let host = Host::new();
    let long = "x".repeat(200);
    let folder = host.place("usr/lib64/x");
    let folder = folder.parent().unwrap();
    let one = folder.join("one");
    fs_err::write(&one, elf(62)).unwrap();
    for n in 0..=root::MOST_NAMES {
        let name = match n % 10 {
            0 => format!("{n}{long}.so.{VERSION}"),
            _ => format!("{n}"),
        };
        fs_err::hard_link(&one, folder.join(name))
            .or_else(|_| fs_err::write(folder.join(n.to_string()), ""))
            .unwrap();
    }
    let found = host.find();
    assert!(
        problem(&found, "has more than 65536 names"),
        "{:#?}",
        found.problems
    );
    assert!(problem(&found, "more driver files than are reported"));
    let text = serde_json::to_string(&found).unwrap();
    assert!(!found.files.is_empty() && text.len() < probe::protocol::LINE_LIMIT / 2);
}
