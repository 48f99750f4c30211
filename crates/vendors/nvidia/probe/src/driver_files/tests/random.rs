//! Random folders: each reported file exists, is below the root, is reported once, and is not a
//! link.

use proptest::prelude::*;

use super::*;

/// Parts of random paths: some that are searched, and some that lead elsewhere.
const PARTS: [&str; 14] = [
    "usr",
    "lib",
    "lib64",
    "bin",
    "etc",
    "run",
    "vdpau",
    "..",
    ".",
    "nvidia-smi",
    "libcuda.so.1",
    "libcuda.so.580.95.05",
    "libnvidia-ml.so.580.95.05",
    "ld.so.cache",
];

/// Sonames of random libraries.
const NAMES: [&str; 6] = [
    "libcuda.so.1",
    "libcuda.so",
    "libc.so.6",
    "../x.so.1",
    "a\nb.so",
    "",
];

#[derive(Clone, Debug)]
enum Thing {
    Library(&'static str),
    Folder,
    Fifo,
    Link(String),
}

fn path() -> impl Strategy<Value = String> {
    let parts = proptest::collection::vec(proptest::sample::select(&PARTS[..]), 1..5);
    (parts, any::<bool>()).prop_map(|(parts, absolute)| {
        let start = if absolute { "/" } else { "" };
        format!("{start}{}", parts.join("/"))
    })
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        3 => proptest::sample::select(&NAMES[..]).prop_map(Thing::Library),
        1 => Just(Thing::Folder),
        1 => Just(Thing::Fifo),
        3 => path().prop_map(Thing::Link),
    ]
}

/// Makes a file if that is possible; a path that leads out of the folder is not made.
fn make(host: &Host, path: &str, thing: &Thing) {
    if path.split('/').any(|part| part == "..") {
        return;
    }
    let place = host.path().join(path.trim_start_matches('/'));
    let inside = |path: &Path| {
        let real = path.canonicalize();
        real.is_ok_and(|real| real.starts_with(host.path().canonicalize().unwrap()))
    };
    let Some(folder) = place.parent() else { return };
    let mut known = folder.ancestors();
    if !known.find(|path| path.exists()).is_some_and(inside) {
        return;
    }
    if fs_err::create_dir_all(folder).is_err() || !inside(folder) {
        return;
    }
    let _ = match thing {
        Thing::Library(name) => {
            fs_err::write(folder.join("new"), elf::tests::make_library(62, name))
                .and_then(|()| fs_err::rename(folder.join("new"), &place))
        }
        Thing::Folder => fs_err::create_dir(&place),
        Thing::Fifo => mknodat(CWD, &place, FileType::Fifo, Mode::RWXU, 0).map_err(Into::into),
        Thing::Link(target) => fs_err::os::unix::fs::symlink(target, &place),
    };
}

/// Checks the properties that hold for every folder.
pub(super) fn check(host: &Host, found: &DriverFiles) {
    let root = host.path().canonicalize().unwrap();
    for file in &found.files {
        let real = root.join(file.path.trim_start_matches('/'));
        assert!(file.path.starts_with('/') && !file.path.contains("/."));
        assert!(!real.symlink_metadata().unwrap().is_symlink(), "{file:?}");
        assert_eq!(real.canonicalize().unwrap(), real, "{file:?}");
        if let Some(soname) = &file.soname {
            assert!(soname.starts_with("libcuda.so"), "{file:?}");
        }
        for link in &file.links {
            let place = root.join(link.path.trim_start_matches('/'));
            assert_eq!(fs_err::read_link(place).unwrap(), Path::new(&link.target));
        }
    }
    assert!(found.files.is_sorted_by_key(|file| &file.path));
    let mut places: Vec<_> = found
        .files
        .iter()
        .map(|file| (&file.path, &file.container_path))
        .collect();
    places.dedup();
    assert_eq!(places.len(), found.files.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_reported_is_there(
        things in proptest::collection::vec((path(), thing()), 0..24),
        cache in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let host = Host::new();
        for (path, thing) in &things {
            make(&host, path, thing);
        }
        let _ = fs_err::create_dir(host.path().join("etc"));
        if host.path().join("etc").symlink_metadata().unwrap().is_dir() {
            let mut bytes = b"glibc-ld.so.cache1.1".to_vec();
            bytes.extend(cache);
            let _ = fs_err::remove_file(host.path().join("etc/ld.so.cache"));
            let _ = fs_err::write(host.path().join("etc/ld.so.cache"), bytes);
        }
        check(&host, &host.find());
    }
}
