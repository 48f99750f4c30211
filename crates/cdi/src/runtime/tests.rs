//! Tests with config files of container runtimes.

use config::Config;
use rstest::rstest;

use super::*;

/// Evidence on a host with these files.
fn known(files: &[(&str, &str)], runtime: RuntimeSupport) -> SupportEvidence {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    let cdi = Cdi {
        runtime,
        ..Config::default().cdi
    };
    find_runtime_support(&cdi, root.path())
}

const ETC: &str = "etc/containerd/config.toml";
const MORE: &str = "etc/containerd/conf.d/10-cdi.toml";
const LAST: &str = "etc/containerd/conf.d/20-cdi.toml";
const K3S: &str = "var/lib/rancher/k3s/agent/etc/containerd/config.toml";
const CRIO: &str = "etc/crio/crio.conf";
const CRIO_MORE: &str = "etc/crio/crio.conf.d/9.conf";

/// CRI table of a config of version 2, with these lines.
macro_rules! v2 {
    ($lines:literal) => {
        concat!("[plugins.\"io.containerd.grpc.v1.cri\"]\n", $lines, "\n")
    };
}
/// CRI table of a config of version 3, with these lines.
macro_rules! v3 {
    ($lines:literal) => {
        concat!("[plugins.\"io.containerd.cri.v1.runtime\"]\n", $lines, "\n")
    };
}

const IMPORTS_2: &str = "version = 2\nimports = [\"conf.d/*.toml\"]\n";
const IMPORTS_3: &str = "version = 3\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n";
const ON_2: &str = concat!("version = 2\n", v2!("enable_cdi = true"));
const OFF_2: &str = concat!("version = 2\n", v2!("enable_cdi = false"));
const OTHER_2: &str = concat!("version = 2\n", v2!("sandbox_image = \"x\""));
const OFF_3: &str = concat!("version = 3\n", v3!("enable_cdi = false"));
const OTHER_3: &str = concat!("version = 3\n", v3!("enable_selinux = true"));

#[rstest]
#[case::nothing(&[], false, "cdi.runtime")]
#[case::on(&[(ETC, ON_2)], true, "enable_cdi = true")]
#[case::off(&[(ETC, OFF_3)], false, "enable_cdi = false")]
#[case::commented_out(&[(ETC, concat!("version = 2\n", v2!("# enable_cdi = true")))], false, "does not say")]
#[case::in_another_table(&[(ETC, "version = 2\nenable_cdi = true\n[plugins.x]\nenable_cdi = true\n")], false, "does not say")]
#[case::below_its_table(&[(ETC, "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\nenable_cdi = true\n")], false, "does not say")]
#[case::in_the_table_of_another_version(&[(ETC, concat!("version = 2\n", v3!("enable_cdi = true")))], false, "does not say")]
#[case::version_in_another_table(&[(ETC, "[x]\nversion = 3\n")], false, "does not say")]
#[case::two(&[(ETC, "version = 3\n")], true, "containerd 2")]
#[case::one(&[(ETC, "version = 2\n")], false, "does not say")]
#[case::no_version(&[(ETC, "root = \"/x\"\n")], false, "does not say")]
#[case::not_imported(&[(ETC, "version = 2\n"), (MORE, ON_2)], false, "does not say")]
#[case::imported(&[(ETC, IMPORTS_2), (MORE, ON_2)], true, "enable_cdi = true")]
#[case::import_overrides(&[(ETC, concat!("version = 2\nimports = [\"conf.d/*\"]\n", v2!("enable_cdi = true"))), (MORE, OFF_2)], false, "= false")]
#[case::last_import_counts(&[(ETC, IMPORTS_2), (MORE, OFF_2), (LAST, ON_2)], true, "= true")]
#[case::a_table_replaces_a_table_of_one(&[(ETC, IMPORTS_2), (MORE, ON_2), (LAST, OTHER_2)], false, "does not say")]
#[case::a_table_is_merged_by_two(&[(ETC, IMPORTS_3), (MORE, OFF_3), (LAST, OTHER_3)], false, "= false")]
#[case::an_older_import(&[(ETC, IMPORTS_3), (MORE, OFF_2)], false, "= false")]
#[case::an_import_imports(&[(ETC, IMPORTS_2), (MORE, "imports = [\"../more.toml\"]\n"), ("etc/containerd/more.toml", ON_2)], true, "= true")]
#[case::imports_itself(&[(ETC, "version = 3\nimports = [\"config.toml\"]\n")], true, "containerd 2")]
#[case::import_is_missing(&[(ETC, "version = 3\nimports = [\"no.toml\"]\n")], false, "no.toml, which is not there")]
#[case::nothing_to_import(&[(ETC, IMPORTS_3)], true, "containerd 2")]
#[case::pattern_of_folders(&[(ETC, "version = 3\nimports = [\"*/x.toml\"]\n")], false, "does not follow")]
#[case::no_toml(&[(ETC, "version = 3\nversion\n")], false, "is not understood in line 2")]
#[case::no_bool(&[(ETC, concat!("version = 2\n", v2!("enable_cdi = \"true\"")))], false, "is not understood in line 3")]
#[case::broken_import(&[(ETC, IMPORTS_3), (MORE, "[")], false, "10-cdi.toml is not understood")]
#[case::k3s(&[(K3S, "version = 3\n")], true, "k3s")]
#[case::our_folder(&[(ETC, concat!("version = 3\n", v3!("cdi_spec_dirs = [\"/etc/cdi\", \"/run/cdi/\"]")))], true, "containerd 2")]
#[case::other_folder(&[(ETC, concat!("version = 2\n", v2!("enable_cdi = true\ncdi_spec_dirs = [\n \"/etc/cdi\", # no\n]")))], false, "cdi_spec_dirs")]
#[case::crio(&[(CRIO, "[crio]\n")], true, "CRI-O")]
#[case::crio_off(&[(CRIO, "[crio.runtime]\nenable_cdi = false\n")], false, "enable_cdi = false")]
#[case::crio_elsewhere(&[(CRIO, "enable_cdi = false\n[crio.image]\nenable_cdi = false\n")], true, "CRI-O")]
#[case::crio_folder(&[(CRIO_MORE, "[crio.runtime]\ncdi_spec_dirs = [\"/etc/cdi\"]\n")], false, "cdi_spec_dirs")]
#[case::crio_folder_overrides(&[(CRIO, "[crio.runtime]\nenable_cdi = false\n"), (CRIO_MORE, "[crio.runtime]\nenable_cdi = true\n")], true, "CRI-O")]
#[case::crio_broken(&[(CRIO, "[crio]\n"), (CRIO_MORE, "=")], false, "9.conf is not understood")]
#[case::two_runtimes(&[(ETC, "version = 2\n"), (CRIO, "[crio]\n")], false, "does not say")]
fn a_runtime_is_known_by_its_config(
    #[case] files: &[(&str, &str)],
    #[case] supported: bool,
    #[case] words: &str,
) {
    let evidence = known(files, RuntimeSupport::Auto);
    assert_eq!(evidence.supported, supported, "{}", evidence.reason);
    assert!(evidence.reason.contains(words), "{}", evidence.reason);
}

#[test]
fn the_word_of_the_config_counts_more() {
    let off = [(ETC, OFF_2)];
    assert!(known(&off, RuntimeSupport::Supported).supported);
    let on = [(ETC, ON_2)];
    assert!(!known(&on, RuntimeSupport::Unsupported).supported);
}

#[test]
fn the_folder_is_compared_as_the_runtime_names_it() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join(ETC);
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    fs_err::write(
        &file,
        concat!("version = 3\n", v3!("cdi_spec_dirs = [\"/var/run/cdi\"]")),
    )
    .unwrap();
    let cdi = Cdi {
        dir: root.path().join("var/run/cdi"),
        runtime: RuntimeSupport::Auto,
    };
    let evidence = find_runtime_support(&cdi, root.path());
    assert!(evidence.supported, "{}", evidence.reason);
}

#[test]
fn a_file_that_is_too_long_is_no_evidence() {
    let text = format!("version = 3\n{}", " ".repeat(5 << 20));
    let evidence = known(&[(ETC, &text)], RuntimeSupport::Auto);
    assert!(
        !evidence.supported && evidence.reason.contains("4 MiB"),
        "{evidence:?}"
    );
}
