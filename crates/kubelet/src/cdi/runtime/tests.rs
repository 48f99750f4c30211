//! Config files of runtimes, and what they are evidence of.

use config::Config;
use rstest::rstest;

use super::*;

/// What is known on a host with these files.
fn known(files: &[(&str, &str)], runtime: RuntimeSupport) -> Evidence {
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
    evidence(&cdi, root.path())
}

const ETC: &str = CONTAINERD[0];
const MORE: &str = "etc/containerd/conf.d/10-cdi.toml";

#[rstest]
#[case::nothing(&[], false, "cdi.runtime")]
#[case::on(&[(ETC, "version = 2\n[plugins.x]\n  enable_cdi = true # on\n")], true, "enable_cdi = true")]
#[case::off(&[(ETC, "version = 3\nenable_cdi = false\n")], false, "enable_cdi = false")]
#[case::commented_out(&[(ETC, "version = 2\n# enable_cdi = true\n")], false, "does not say")]
#[case::two(&[(ETC, "version = 3\n")], true, "containerd 2")]
#[case::one(&[(ETC, "version = 2\n")], false, "does not say")]
#[case::no_version(&[(ETC, "root = \"/x\"\n")], false, "does not say")]
#[case::in_the_folder(&[(ETC, "version = 2\n"), (MORE, "\"enable_cdi\" = true\n")], true, "enable_cdi = true")]
#[case::folder_wins(&[(ETC, "enable_cdi = true\n"), (MORE, "enable_cdi = false\n")], false, "= false")]
#[case::k3s(&[(CONTAINERD[1], "version = 3\n")], true, "k3s")]
#[case::our_folder(&[(ETC, "version = 3\ncdi_spec_dirs = [\"/etc/cdi\", \"/run/cdi/\"]\n")], true, "containerd 2")]
#[case::other_folder(&[(ETC, "enable_cdi = true\ncdi_spec_dirs = [\n \"/etc/cdi\",\n]\n")], false, "cdi_spec_dirs")]
#[case::crio(&[(CRIO, "[crio]\n")], true, "CRI-O")]
#[case::crio_folder(&[("etc/crio/crio.conf.d/9.conf", "[crio.runtime]\ncdi_spec_dirs = [\"/etc/cdi\"]\n")], false, "cdi_spec_dirs")]
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
    let off = [(ETC, "enable_cdi = false\n")];
    assert!(known(&off, RuntimeSupport::Supported).supported);
    let on = [(ETC, "enable_cdi = true\n")];
    assert!(!known(&on, RuntimeSupport::Unsupported).supported);
}

#[test]
fn the_folder_is_compared_as_the_runtime_names_it() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join(ETC);
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    fs_err::write(&file, "version = 3\ncdi_spec_dirs = [\"/var/run/cdi\"]\n").unwrap();
    let cdi = Cdi {
        dir: root.path().join("var/run/cdi"),
        runtime: RuntimeSupport::Auto,
    };
    let evidence = evidence(&cdi, root.path());
    assert!(evidence.supported, "{}", evidence.reason);
}
