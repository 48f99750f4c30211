//! Tests with files of several kubelet releases.

use rstest::rstest;
use tempfile::TempDir;

use super::*;

/// `dra_manager_state` as 1.36 writes it without a claim.
pub(in crate::cdi) const NEW: &str = r#"{"Data":"{\"kind\":\"DRACheckpoint\",\"apiVersion\":\"checkpoint.dra.kubelet.k8s.io/v1\",\"ClaimInfoStateList\":[]}","Checksum":1}"#;
/// `dra_manager_state` as 1.28 wrote it.
const OLD: &str = r#"{"version":"v1","entries":[],"checksum":1}"#;

fn host(files: &[(&str, &str)]) -> TempDir {
    let host = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = host.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    host
}

fn known(host: &Path, runtime: RuntimeSupport) -> SupportEvidence {
    let cdi = Cdi {
        runtime,
        ..Cdi::default()
    };
    find_kubelet_support(&cdi, &host.join("kubelet/device-plugins"), host)
}

#[rstest]
#[case::nothing(&[], false, "cdi.runtime: supported")]
#[case::claims(&[("kubelet/dra_manager_state", NEW)], true, "1.31 or newer")]
#[case::old_claims(&[("kubelet/dra_manager_state", OLD)], false, "not in the form")]
#[case::other_claims(&[("kubelet/dra_manager_state", r#"{"Data":"{}"}"#)], false, "not in the form")]
#[case::no_json(&[("kubelet/dra_manager_state", "")], false, "not in the form")]
#[case::pods(&[("kubelet/allocated_pods_state", "{}")], true, "1.33 or newer")]
#[case::pods_beside_old_claims(&[("kubelet/dra_manager_state", OLD), ("kubelet/allocated_pods_state", "{}")], true, "1.33")]
#[case::no_pods(&[("kubelet/allocated_pods_state", "")], false, "no file that a kubelet wrote")]
#[case::pods_of_before(&[("kubelet/pod_status_manager_state", "{}")], false, "cdi.runtime: supported")]
#[case::a_folder(&[("kubelet/dra_manager_state/x", "")], false, "no regular file")]
#[case::its_devices(&[("kubelet/device-plugins/kubelet_internal_checkpoint", "{}")], false, "cdi.runtime")]
fn a_kubelet_is_known_by_files_that_only_newer_ones_write(
    #[case] files: &[(&str, &str)],
    #[case] supported: bool,
    #[case] words: &str,
) {
    let found = known(host(files).path(), RuntimeSupport::Auto);
    assert_eq!(found.supported, supported, "{}", found.reason);
    assert!(found.reason.contains(words), "{}", found.reason);
}

#[test]
fn the_word_of_the_config_counts_more() {
    let bare = host(&[]);
    assert!(known(bare.path(), RuntimeSupport::Supported).supported);
    let new = host(&[("kubelet/dra_manager_state", NEW)]);
    assert!(!known(new.path(), RuntimeSupport::Unsupported).supported);
}

#[test]
fn the_folder_is_looked_for_below_the_hosts_root_too() {
    let host = host(&[("no/such/kubelet/dra_manager_state", NEW)]);
    let dir = Path::new("/no/such/kubelet/device-plugins");
    let found = find_kubelet_support(&Cdi::default(), dir, host.path());
    assert!(found.supported, "{}", found.reason);
}

#[test]
fn a_file_that_is_too_long_is_no_evidence() {
    let long = format!("{NEW}{}", " ".repeat(5 << 20));
    let found = known(
        host(&[("kubelet/dra_manager_state", &long)]).path(),
        RuntimeSupport::Auto,
    );
    assert!(
        !found.supported && found.reason.contains("4 MiB"),
        "{found:?}"
    );
}
