//! Command lines as urfave/cli v2 reads them.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn parse(args: &[&str], env: &[(&str, &str)]) -> Result<Invocation, FlagError> {
    let find = |name: &str| {
        let found = env.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    GivenFlags::parse_args(args, &find)
}

fn flags(args: &[&str], env: &[(&str, &str)]) -> GivenFlags {
    match parse(args, env) {
        Ok(Invocation::Run(flags)) => flags,
        other => panic!("{other:?}"),
    }
}

fn show(flags: &GivenFlags, name: &str) -> String {
    let Some(given) = flags.given.get(name) else {
        return "-".to_owned();
    };
    let value = match &given.value {
        FlagValue::Text(text) => format!("`{text}`"),
        FlagValue::Bool(value) => value.to_string(),
        FlagValue::Texts(texts) => format!("{texts:?}"),
        FlagValue::Ints(ints) => format!("{ints:?}"),
    };
    format!("{value} by {}", given.origin)
}

#[rstest]
#[case(&["--mig-strategy", "single"], &[], "mig-strategy", "`single` by flag --mig-strategy")]
#[case(&["--mig-strategy=single"], &[], "mig-strategy", "`single` by flag --mig-strategy")]
#[case(&["-mig-strategy=single"], &[], "mig-strategy", "`single` by flag --mig-strategy")]
#[case(&["-mig-strategy", "single"], &[], "mig-strategy", "`single` by flag --mig-strategy")]
#[case(&["--mig-strategy="], &[], "mig-strategy", "`` by flag --mig-strategy")]
#[case(&["--mig-strategy", "--gds-enabled"], &[], "mig-strategy", "`--gds-enabled` by flag --mig-strategy")]
#[case(&["--mig-strategy=a=b"], &[], "mig-strategy", "`a=b` by flag --mig-strategy")]
#[case(&["--mig-strategy=a", "--mig-strategy=b"], &[], "mig-strategy", "`b` by flag --mig-strategy")]
#[case(&[], &[], "mig-strategy", "-")]
#[case(&[], &[("MIG_STRATEGY", "single")], "mig-strategy", "`single` by variable MIG_STRATEGY")]
#[case(&["--mig-strategy=none"], &[("MIG_STRATEGY", "single")], "mig-strategy", "`none` by flag --mig-strategy")]
#[case(&[], &[("MIG_STRATEGY", "")], "mig-strategy", "`` by variable MIG_STRATEGY")]
#[case(&["--nvidia-driver-root=/r"], &[], "driver-root", "`/r` by flag --nvidia-driver-root")]
#[case(&["--driver-root=/r"], &[], "driver-root", "`/r` by flag --driver-root")]
#[case(&["--nvidia-dev-root=/r"], &[], "dev-root", "`/r` by flag --nvidia-dev-root")]
#[case(&["--nvidia-ctk-path=/r"], &[], "nvidia-cdi-hook-path", "`/r` by flag --nvidia-ctk-path")]
#[case(&["--container-driver-root=/r"], &[], "driver-root-ctr-path", "`/r` by flag --container-driver-root")]
#[case(&[], &[("NVIDIA_CDI_HOOK_PATH", "/a"), ("NVIDIA_CTK_PATH", "/b")], "nvidia-cdi-hook-path",
    "`/a` by variable NVIDIA_CDI_HOOK_PATH")]
#[case(&[], &[("NVIDIA_CTK_PATH", "/b")], "nvidia-cdi-hook-path", "`/b` by variable NVIDIA_CTK_PATH")]
#[case(&[], &[("NVIDIA_CDI_HOOK_PATH", ""), ("NVIDIA_CTK_PATH", "/b")], "nvidia-cdi-hook-path",
    "`` by variable NVIDIA_CDI_HOOK_PATH")]
#[case(&[], &[("CONTAINER_DRIVER_ROOT", "/b")], "driver-root-ctr-path", "`/b` by variable CONTAINER_DRIVER_ROOT")]
#[case(&["--pass-device-specs"], &[], "pass-device-specs", "true by flag --pass-device-specs")]
#[case(&["--pass-device-specs=false"], &[], "pass-device-specs", "false by flag --pass-device-specs")]
#[case(&["-pass-device-specs=T"], &[], "pass-device-specs", "true by flag --pass-device-specs")]
#[case(&["--pass-device-specs=0"], &[], "pass-device-specs", "false by flag --pass-device-specs")]
#[case(&[], &[("PASS_DEVICE_SPECS", "True")], "pass-device-specs", "true by variable PASS_DEVICE_SPECS")]
#[case(&[], &[("PASS_DEVICE_SPECS", "f")], "pass-device-specs", "false by variable PASS_DEVICE_SPECS")]
#[case(&[], &[("PASS_DEVICE_SPECS", "")], "pass-device-specs", "false by variable PASS_DEVICE_SPECS")]
#[case(&["--device-list-strategy=envvar,cdi-cri"], &[], "device-list-strategy",
    r#"["envvar", "cdi-cri"] by flag --device-list-strategy"#)]
#[case(&["--device-list-strategy", " envvar , cdi-cri "], &[], "device-list-strategy",
    r#"["envvar", "cdi-cri"] by flag --device-list-strategy"#)]
#[case(&["--device-list-strategy=envvar", "--device-list-strategy=cdi-cri"], &[], "device-list-strategy",
    r#"["envvar", "cdi-cri"] by flag --device-list-strategy"#)]
#[case(&["--device-list-strategy=cdi-cri"], &[("DEVICE_LIST_STRATEGY", "envvar")], "device-list-strategy",
    r#"["cdi-cri"] by flag --device-list-strategy"#)]
#[case(&[], &[("DEVICE_LIST_STRATEGY", "envvar,volume-mounts")], "device-list-strategy",
    r#"["envvar", "volume-mounts"] by variable DEVICE_LIST_STRATEGY"#)]
#[case(&[], &[("DEVICE_LIST_STRATEGY", "")], "device-list-strategy", r#"[""] by variable DEVICE_LIST_STRATEGY"#)]
#[case(&["--imex-channel-ids=0"], &[], "imex-channel-ids", "[0] by flag --imex-channel-ids")]
#[case(&["--imex-channel-ids=0, 1", "--imex-channel-ids", "0x10"], &[], "imex-channel-ids",
    "[0, 1, 16] by flag --imex-channel-ids")]
#[case(&[], &[("IMEX_CHANNEL_IDS", "-1,+2,010,0b11,0o7")], "imex-channel-ids",
    "[-1, 2, 8, 3, 7] by variable IMEX_CHANNEL_IDS")]
#[case(&[], &[("IMEX_CHANNEL_IDS", "")], "imex-channel-ids", "-")]
#[case(&["--imex-channel-ids=5"], &[("IMEX_CHANNEL_IDS", "0")], "imex-channel-ids", "[5] by flag --imex-channel-ids")]
#[case(&["--kubelet-socket="], &[], "kubelet-socket", "`` by flag --kubelet-socket")]
#[case(&["--gds-enabled", "--", "--mig-strategy=single"], &[], "mig-strategy", "-")]
#[case(&["--pass-device-specs", "false", "--mig-strategy=single"], &[], "mig-strategy", "-")]
#[case(&["-", "--mig-strategy=single"], &[], "mig-strategy", "-")]
fn flags_and_variables_are_read_as_go_reads_them(
    #[case] args: &[&str],
    #[case] env: &[(&str, &str)],
    #[case] name: &str,
    #[case] expected: &str,
) {
    assert_eq!(show(&flags(args, env), name), expected);
}

#[rstest]
#[case(&["--no-such"], &[], "flag --no-such is not known; --help lists all flags")]
#[case(&["--mig-stratgy=x"], &[], "flag --mig-stratgy is not known; did you mean --mig-strategy?")]
#[case(&["--mig-strategy"], &[], "flag --mig-strategy needs a value: write --mig-strategy=VALUE")]
#[case(&["---mig-strategy"], &[], "`---mig-strategy` is not a flag; write --name, --name=value or --name value")]
#[case(&["--=x"], &[], "`--=x` is not a flag; write --name, --name=value or --name value")]
#[case(&["--gds-enabled=maybe"], &[], "flag --gds-enabled: `maybe` is not a bool; write true or false")]
#[case(&["--gds-enabled="], &[], "flag --gds-enabled: `` is not a bool; write true or false")]
#[case(&[], &[("GDS_ENABLED", "yes")], "variable GDS_ENABLED: `yes` is not a bool; write true or false")]
#[case(&["--imex-channel-ids=zero"], &[], "flag --imex-channel-ids: `zero` is not a whole number")]
#[case(&["--imex-channel-ids="], &[], "flag --imex-channel-ids: `` is not a whole number")]
#[case(&[], &[("IMEX_CHANNEL_IDS", "0,,1")], "variable IMEX_CHANNEL_IDS: `` is not a whole number")]
#[case(&[], &[("IMEX_CHANNEL_IDS", "08")], "variable IMEX_CHANNEL_IDS: `08` is not a whole number")]
#[case(&["--driver-root=/a", "--nvidia-driver-root=/b"], &[],
    "flags --driver-root and --nvidia-driver-root are one and the same; give one of them")]
#[case(&["--help=perhaps"], &[], "flag --help: `perhaps` is not a bool; write true or false")]
fn a_wrong_command_line_names_the_flag_or_the_variable(
    #[case] args: &[&str],
    #[case] env: &[(&str, &str)],
    #[case] expected: &str,
) {
    assert_eq!(parse(args, env).unwrap_err().to_string(), expected);
}

#[rstest]
#[case(&["--help"], Invocation::Help)]
#[case(&["-h"], Invocation::Help)]
#[case(&["-help"], Invocation::Help)]
#[case(&["help"], Invocation::Help)]
#[case(&["h"], Invocation::Help)]
#[case(&["--version"], Invocation::Version)]
#[case(&["-v"], Invocation::Version)]
#[case(&["--version", "--help"], Invocation::Help)]
#[case(&["--help=false", "-v"], Invocation::Version)]
#[case(&["--mig-strategy=single", "--help"], Invocation::Help)]
fn help_and_version_are_asked_for(#[case] args: &[&str], #[case] expected: Invocation) {
    assert_eq!(parse(args, &[]), Ok(expected));
}

#[test]
fn what_is_not_read_of_the_command_line_is_a_warning() {
    let flags = flags(&["--pass-device-specs", "false", "--gds-enabled"], &[]);
    let warning = flags.warnings[0].to_string();
    assert!(warning.contains("`false` and what follows"), "{warning}");
    assert!(warning.contains("--name=false"), "{warning}");
}

#[test]
fn every_flag_can_be_given_by_flag_alias_and_variable() {
    for spec in FLAGS {
        let value = match spec.kind {
            FlagKind::Bool => "true",
            FlagKind::Ints => "0",
            _ => "x",
        };
        for name in [Some(spec.name), spec.alias].into_iter().flatten() {
            let found = flags(&[&format!("--{name}={value}")], &[]);
            assert_eq!(found.given[spec.name].origin, ValueOrigin::of_flag(name));
        }
        for variable in spec.env {
            let found = flags(&[], &[(variable, value)]);
            assert_eq!(
                found.given[spec.name].origin,
                ValueOrigin::of_variable(*variable)
            );
        }
    }
    assert_eq!(FLAGS.len(), 22);
}

#[test]
fn the_help_lists_every_flag_and_how_we_differ() {
    insta::assert_snapshot!(crate::nvidia::help());
}

proptest! {
    #[test]
    fn never_panics(args in prop::collection::vec("-{0,3}[a-z-]{0,20}=?.{0,10}", 0..6), value in ".*") {
        let _ = GivenFlags::parse_args(&args, &|_| Some(value.clone()));
        let _ = GivenFlags::parse_args(&args, &|_| None);
    }
}
