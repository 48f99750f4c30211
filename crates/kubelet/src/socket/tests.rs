use std::{collections::BTreeSet, os::unix::net::UnixListener};

use proptest::prelude::*;

use super::*;

fn resource(name: &str) -> ResourceName {
    name.parse().unwrap()
}

#[test]
fn names_tell_the_resource_the_process_and_the_attempt() {
    let names = SocketNames::new(Path::new("/var/lib/kubelet/device-plugins"));
    let name = names.nth(&resource("nvidia.com/gpu"), 3).unwrap();
    let nonce = &names.nonce;
    assert_eq!(name, format!("ostler-nvidia.com_gpu-{nonce}-3.sock"));
}

#[test]
fn two_starts_never_share_a_name() {
    let dir = Path::new("/x");
    let names: BTreeSet<String> = (0..100).map(|_| SocketNames::new(dir).nonce).collect();
    assert_eq!(names.len(), 100);
}

#[test]
fn a_folder_without_room_is_named_with_length_limit_and_remedy() {
    let dir = format!("/{}", "x".repeat(90));
    let names = SocketNames::new(Path::new(&dir));
    let error = names.nth(&resource("nvidia.com/gpu"), 0).unwrap_err();
    let error = error.to_string();
    for part in [dir.as_str(), "123 bytes", "at most 107", "shorter path"] {
        assert!(error.contains(part), "{error} lacks {part}");
    }
}

/// Every resource has a name up to the config's limit. One byte more is too long for every name.
#[test]
fn the_limit_of_the_folder_is_where_names_end_to_fit() {
    let long = resource(&format!(
        "{}.example.com/{}",
        "a".repeat(60),
        "b".repeat(63)
    ));
    let limit = config::Config::KUBELET_DIR_LIMIT;
    for (length, fits) in [(limit, true), (limit + 1, false)] {
        let dir = format!("/{}", "x".repeat(length - 1));
        let name = SocketNames::new(Path::new(&dir)).nth(&long, 9_999_999_999);
        assert_eq!(name.is_ok(), fits, "{name:?}");
    }
}

proptest! {
    #[test]
    fn every_name_fits_and_no_two_resources_share_one(length in 1usize..120, n in 0u64..1_000_000) {
        let dir = PathBuf::from(format!("/{}", "d".repeat(length)));
        let names = SocketNames::new(&dir);
        let long = format!("{}.example.com", "a".repeat(60));
        let made: Vec<_> = ["x", "y", "some-quite-long-name-for-a-resource", "gpu.shared"]
            .iter()
            .flat_map(|base| [format!("{long}/{base}"), format!("a.b/{base}")])
            .map(|name| names.nth(&resource(&name), n))
            .collect();
        let fits = made[0].is_ok();
        prop_assert!(fits || length > 69);
        prop_assert!(made.iter().all(|name| name.is_ok() == fits || length > 69));
        let made: Vec<String> = made.into_iter().flatten().collect();
        prop_assert!(made.iter().all(|name| dir.join(name).as_os_str().len() <= PATH_LIMIT));
        prop_assert!(made.iter().all(|name| !name.contains('/')));
        let distinct: BTreeSet<&String> = made.iter().collect();
        prop_assert_eq!(distinct.len(), made.len());
    }
}

#[tokio::test]
async fn sweeping_removes_dead_sockets_of_our_kind_only() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let names = SocketNames::new(dir.path());
    let own = at(&names.nth(&resource("nvidia.com/gpu"), 0).unwrap());
    let (dead, foreign) = (at("ostler-a-1-1.sock"), at("nvidia-gpu.sock"));
    for path in [&dead, &foreign, &own] {
        drop(UnixListener::bind(path).unwrap());
    }
    let live = at("ostler-b-1-1.sock");
    let _listener = UnixListener::bind(&live).unwrap();
    let file = at("ostler-c-1-1.sock");
    fs_err::write(&file, "").unwrap();

    names.remove_dead_sockets().await;

    assert!(!dead.exists());
    for path in [foreign, own, live, file] {
        assert!(path.exists(), "{} is gone", path.display());
    }
}

#[tokio::test]
async fn sweeping_a_missing_folder_is_no_trouble() {
    SocketNames::new(Path::new("/does/not/exist"))
        .remove_dead_sockets()
        .await;
}
