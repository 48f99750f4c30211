//! Sonames, and companion libraries.

use model::{DriverFile, FileKind};
use rstest::rstest;

use super::*;

fn file<'a>(found: &'a DriverFiles, path: &str) -> &'a DriverFile {
    let mut files = found.files.iter();
    let file = files.find(|file| file.path == path);
    file.unwrap_or_else(|| panic!("no {path}: {:?}", paths(found)))
}

#[rstest]
#[case::its_own("libnvcuvid.so.1", Some("libnvcuvid.so.1"))]
#[case::without_a_number("libnvcuvid.so", Some("libnvcuvid.so"))]
#[case::the_files_own("libnvcuvid.so.580.95.05", None)]
#[case::another_library("libc.so.6", None)]
#[case::a_path("../libnvcuvid.so.1", None)]
#[case::a_longer_stem("libnvcuvid2.so.1", None)]
#[case::two_lines("libnvcuvid.so.1\n2", None)]
#[case::for_a_hook("libnvcuvid.so.1::x", None)]
#[case::none("", None)]
fn a_library_is_believed_what_can_be_its_name(#[case] said: &str, #[case] told: Option<&str>) {
    let host = Host::new();
    let path = "/usr/lib64/libnvcuvid.so.580.95.05";
    host.libraries(62, "usr/lib64", &["libcuda.so.580.95.05"])
        .file(&path[1..], elf::tests::make_library(62, said));
    let found = host.find();
    assert_eq!(file(&found, path).soname.as_deref(), told);
    assert_eq!(found.problems, [""; 0]);
}

#[test]
fn a_library_that_a_link_leads_to_is_named_by_the_link() {
    let host = Host::new();
    host.file("opt/cuda", elf::tests::make_library(62, "libcuda.so.1"))
        .links(&[("usr/lib64/libcuda.so.580.95.05", "/opt/cuda")]);
    let found = host.find();
    assert_eq!(
        file(&found, "/opt/cuda").soname.as_deref(),
        Some("libcuda.so.1")
    );
}

#[test]
fn companions_are_taken_from_the_first_folder_that_has_them_for_the_machine() {
    let host = Host::new();
    host.libraries(62, "usr/lib64", &["libcuda.so.580.95.05", "libGL.so.1.7.0"])
        .libraries(3, "usr/lib", &["libGL.so.1.7.0"])
        .libraries(183, "usr/lib/aarch64-linux-gnu", &["libEGL.so.1.1.0"])
        .libraries(62, "usr/local/lib", &["libEGL.so.1.1.0", "libGL.so.1.0.0"])
        .libraries(
            62,
            "usr/lib64",
            &["libGLU.so.1.3.1", "libGL.so.x", "libGLX_mesa.so.0"],
        )
        .links(&[
            ("usr/lib64/libGL.so.1", "libGL.so.1.7.0"),
            ("usr/lib64/libGL.so", "libGL.so.1"),
        ]);
    let found = host.find();
    let companions = found.files.iter();
    let companions = companions.filter(|file| file.kind == FileKind::Companion);
    let companions: Vec<&str> = companions.map(|file| file.path.as_str()).collect();
    let expected = [
        "/usr/lib64/libGL.so.1.7.0",
        "/usr/local/lib/libEGL.so.1.1.0",
    ];
    assert_eq!(companions, expected);
    assert_eq!(file(&found, expected[0]).links.len(), 2);
    assert_eq!(found.problems, [""; 0]);
}

#[test]
fn a_companion_with_the_drivers_version_is_the_drivers() {
    let host = Host::new();
    host.libraries(
        62,
        "usr/lib64",
        &["libcuda.so.580.95.05", "libnvidia-api.so.580.95.05"],
    )
    .links(&[("usr/lib64/libnvidia-api.so.1", "libnvidia-api.so.580.95.05")]);
    let found = host.find();
    let api = file(&found, "/usr/lib64/libnvidia-api.so.580.95.05");
    assert_eq!((api.kind, api.links.len()), (FileKind::Library, 1));
}
