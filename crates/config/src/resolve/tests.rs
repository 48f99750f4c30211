//! Precedence of flags, file and defaults.

use super::*;
use crate::{NvidiaOverrides, ValueOrigin};

fn resolved(overrides: Overrides, text: &str) -> Resolved {
    let mut resolved = crate::parse_native("ostler.yaml", text).unwrap();
    resolved.lay_over(overrides, &ValueOrigin::of_flag).unwrap();
    resolved
}

#[test]
fn nothing_said_is_all_defaults() {
    let config = resolved(Overrides::default(), "").config;
    assert_eq!(config, Config::default());
    insta::assert_debug_snapshot!(config);
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let overrides = Overrides {
        host_root: Some("/flag".into()),
        ..Overrides::default()
    };
    let found = resolved(
        overrides,
        "hostRoot: /file\nbackends: {nvidia: {driverPath: /file}}\n",
    );
    assert_eq!(found.config.host_root, PathBuf::from("/flag"));
    assert_eq!(
        found.config.backends.nvidia.probe.driver_path,
        Some("/file".into())
    );
    assert_eq!(
        found.config.control_socket,
        PathBuf::from(Config::CONTROL_SOCKET)
    );
    assert_eq!(
        found.origins.find_origin("hostRoot"),
        ValueOrigin::of_flag("host-root")
    );
    let at = found.origins.find_origin("backends.nvidia.driverPath");
    assert_eq!(at.to_string(), "ostler.yaml:2");
    assert_eq!(
        found.origins.find_origin("controlSocket"),
        ValueOrigin::Default
    );
}

#[test]
fn every_flag_reaches_its_value() {
    let path = |name: &str| Some(PathBuf::from(name));
    let overrides = Overrides {
        kubelet_dir: path("/1"),
        pod_resources_socket: path("/2"),
        host_root: path("/3"),
        control_socket: path("/6"),
        cdi_dir: path("/8"),
        backends: BackendOverrides {
            nvidia: NvidiaOverrides {
                driver_path: path("/4"),
                nvml_library: path("/5"),
                mps_path: path("/7"),
            },
        },
    };
    let found = resolved(overrides, "");
    let config = &found.config;
    let values = [
        Some(config.kubelet.dir.clone()),
        Some(config.kubelet.pod_resources_socket.clone()),
        Some(config.host_root.clone()),
        config.backends.nvidia.probe.driver_path.clone(),
        config.backends.nvidia.probe.nvml_library.clone(),
        Some(config.control_socket.clone()),
        config.backends.nvidia.probe.mps_path.clone(),
        Some(config.cdi.dir.clone()),
    ];
    let expected: Vec<_> = (1..=8)
        .map(|n| Some(PathBuf::from(format!("/{n}"))))
        .collect();
    assert_eq!(values[..], expected[..]);
    let said = found
        .list_values()
        .into_iter()
        .filter(|row| row.origin != ValueOrigin::Default);
    assert_eq!(said.count(), 8);
}

#[test]
fn a_folder_of_a_flag_in_which_no_socket_fits_is_refused_and_the_flag_named() {
    let overrides = Overrides {
        kubelet_dir: Some("/x".repeat(50).into()),
        ..Overrides::default()
    };
    let error = native(None, overrides, &|_| {
        ValueOrigin::of_variable("OSTLER_KUBELET_DIR")
    })
    .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("variable OSTLER_KUBELET_DIR: kubelet.dir: the path has 100 bytes"),
        "{text}"
    );
}

#[test]
fn a_path_of_a_flag_that_is_no_text_is_refused() {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};
    let overrides = Overrides {
        host_root: Some(OsString::from_vec(vec![b'/', 0xff]).into()),
        ..Overrides::default()
    };
    let error = native(None, overrides, &ValueOrigin::of_flag).unwrap_err();
    let text = error.to_string();
    let expected = "flag --host-root: hostRoot: the path is not a text in UTF-8";
    assert!(text.starts_with(expected), "{text}");
}
