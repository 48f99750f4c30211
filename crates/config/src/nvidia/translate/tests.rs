//! Translation of NVIDIA's flags, variables and file into our config.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::{
    BackendOverrides, Distinct, Method, NvidiaOverrides,
    nvidia::{Invocation, parse_v1},
};

pub(in crate::nvidia) fn translate(
    args: &[&str],
    env: &[(&str, &str)],
    text: &str,
) -> Result<Resolved, Error> {
    let find = |name: &str| {
        let found = env.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let Invocation::Run(flags) = GivenFlags::parse_args(args, &find)? else {
        panic!("not a run: {args:?}");
    };
    let file = parse_v1("config.yaml", text)?;
    let resolved = translate_file(&flags, &file, Overrides::default(), &ValueOrigin::of_flag)?;
    says_the_same(&resolved);
    Ok(resolved)
}

/// Checks that a translation, written as an `ostler.yaml`, results in the same config. The
/// exceptions are values that NVIDIA's plugin takes: a warning here, an error in `ostler.yaml`.
fn says_the_same(resolved: &Resolved) {
    let yaml = resolved.to_yaml();
    match crate::parse_native("ostler.yaml", &yaml) {
        Ok(again) => assert_eq!(again.config, resolved.config, "{yaml}"),
        Err(error) => {
            let taken = ["devRoot", "mpsRoot", "annotationPrefix", "replicas"];
            for problem in error.problems() {
                let known = taken.iter().any(|key| problem.key.ends_with(key));
                assert!(known, "{problem}\n{yaml}");
            }
            assert_ne!(resolved.warnings, [], "{error}");
        }
    }
}

fn value(resolved: &Resolved, key: &str) -> String {
    let rows = resolved.list_values();
    let row = rows.iter().find(|row| row.key == key);
    let row = row.unwrap_or_else(|| panic!("no {key}"));
    format!("{} by {}", row.show_value(), row.origin)
}

#[test]
fn nothing_said_is_the_plugins_defaults_with_our_differences() {
    let resolved = translate(&[], &[], "").unwrap();
    insta::assert_snapshot!(resolved.to_yaml());
}

const FILE: &str = "\
version: v1
flags:
  migStrategy: single
  nvidiaDriverRoot: /file
  mpsRoot: /mps-of-file
  plugin:
    deviceIDStrategy: index
";

const NAMED: &str = "\
resources: {gpus: [{pattern: '*T4*', name: t4}]}
sharing:
  timeSlicing:
    resources:
      - {name: gpu, replicas: 4, devices: [0, '1'], rename: shared}
      - {name: t4, replicas: 2, devices: 1}
";

#[rstest]
// The flag wins over the variable, the variable over the file, the file over the default.
#[case(&["--mig-strategy=none"], &[("MIG_STRATEGY", "mixed")], FILE, "backends.nvidia.mig", "none by flag --mig-strategy")]
#[case(&[], &[("MIG_STRATEGY", "mixed")], FILE, "backends.nvidia.mig", "mixed by variable MIG_STRATEGY")]
#[case(&[], &[], FILE, "backends.nvidia.mig", "single by config.yaml:3")]
#[case(&[], &[], "", "backends.nvidia.mig", "none by default")]
#[case(&[], &[], FILE, "backends.nvidia.cdi.driverRoot", "/file by config.yaml:4")]
// The default of the dev root is the driver root, also if it is set to an empty text.
#[case(&[], &[], FILE, "pools[0].handover.nvidia.devRoot", "/file by config.yaml:4")]
#[case(&["--driver-root=/a"], &[], FILE, "pools[0].handover.nvidia.devRoot", "/a by flag --driver-root")]
#[case(&["--dev-root=/b"], &[], FILE, "pools[0].handover.nvidia.devRoot", "/b by flag --dev-root")]
#[case(&["--dev-root="], &[], FILE, "pools[0].handover.nvidia.devRoot", "/file by config.yaml:4")]
#[case(&[], &[("NVIDIA_DEV_ROOT", "")], "", "pools[0].handover.nvidia.devRoot", "/ by default")]
// A variable that is set and empty counts for texts and bools, but not for numbers.
#[case(&[], &[("MPS_ROOT", "")], FILE, "pools[0].handover.nvidia.mpsRoot", "- by variable MPS_ROOT")]
#[case(&[], &[("GDS_ENABLED", "")], "flags: {gdsEnabled: true}", "pools[0].handover.nvidia.gds", "false by variable GDS_ENABLED")]
#[case(&[], &[("IMEX_CHANNEL_IDS", "")], "imex: {channelIDs: [0]}", "pools[0].handover.nvidia.imex", "[0] by config.yaml:1")]
#[case(&[], &[("IMEX_REQUIRED", "true")], "", "backends.nvidia.imexRequired", "true by variable IMEX_REQUIRED")]
// Only an explicit true exits. Only an explicit false passes no device nodes.
#[case(&[], &[], "", "backends.nvidia.failOnInitError", "false by default")]
#[case(&["--fail-on-init-error"], &[], "", "backends.nvidia.failOnInitError", "true by flag --fail-on-init-error")]
#[case(&[], &[("FAIL_ON_INIT_ERROR", "true")], "", "backends.nvidia.failOnInitError", "true by variable FAIL_ON_INIT_ERROR")]
#[case(&[], &[], "flags: {failOnInitError: true}", "backends.nvidia.failOnInitError", "true by config.yaml:1")]
#[case(&["--fail-on-init-error=false"], &[], "flags: {failOnInitError: true}", "backends.nvidia.failOnInitError",
    "false by flag --fail-on-init-error")]
#[case(&[], &[], "", "pools[0].handover.deviceNodes", "true by default")]
#[case(&[], &[("PASS_DEVICE_SPECS", "false")], "", "pools[0].handover.deviceNodes", "false by variable PASS_DEVICE_SPECS")]
#[case(&[], &[], "flags: {plugin: {passDeviceSpecs: false}}", "pools[0].handover.deviceNodes", "false by config.yaml:1")]
#[case(&["--pass-device-specs"], &[], "", "pools[0].handover.deviceNodes", "true by flag --pass-device-specs")]
// The kubelet's folder is that of its socket. With an empty text nothing is registered.
#[case(&["--kubelet-socket=/k/kubelet.sock"], &[], "", "kubelet.dir", "/k by flag --kubelet-socket")]
#[case(&["--kubelet-socket=/k/kubelet.sock"], &[], "", "kubelet.register", "true by flag --kubelet-socket")]
#[case(&[], &[("KUBELET_SOCKET", "")], "", "kubelet.register", "false by variable KUBELET_SOCKET")]
#[case(&[], &[("KUBELET_SOCKET", "")], "", "kubelet.dir", "/var/lib/kubelet/device-plugins by default")]
// The other flags.
#[case(&["--device-list-strategy=cdi-cri,envvar"], &[], "", "pools[0].handover.lists",
    "[envvar, cdi-cri] by flag --device-list-strategy")]
#[case(&[], &[], "flags: {plugin: {deviceListStrategy: []}}", "pools[0].handover.lists", "[] by config.yaml:1")]
#[case(&[], &[], FILE, "pools[0].handover.ids", "index by config.yaml:7")]
#[case(&["--gdrcopy-enabled", "--mofed-enabled"], &[], "", "pools[0].handover.nvidia.mofed", "true by flag --mofed-enabled")]
#[case(&["--cdi-annotation-prefix=x/"], &[], "", "pools[0].handover.nvidia.annotationPrefix", "x/ by flag --cdi-annotation-prefix")]
#[case(&["--nvidia-ctk-path=/h"], &[], "", "backends.nvidia.cdi.hookPath", "/h by flag --nvidia-ctk-path")]
// A path that is set and empty counts as not set.
#[case(&[], &[("NVIDIA_CTK_PATH", "")], "", "backends.nvidia.cdi.hookPath", "/usr/bin/nvidia-ctk by default")]
#[case(&["--driver-root="], &[], "", "backends.nvidia.cdi.driverRoot", "/ by default")]
#[case(&["--driver-root="], &[], "", "pools[0].handover.nvidia.devRoot", "/ by default")]
#[case(&["--cdi-disable-hooks=a, b"], &[], "", "backends.nvidia.cdi.disableHooks", "[a, b] by flag --cdi-disable-hooks")]
#[case(&[], &[("CDI_FEATURE_FLAGS", "")], "", "backends.nvidia.cdi.featureFlags", "[] by variable CDI_FEATURE_FLAGS")]
#[case(&[], &[], "", "backends.nvidia.driverPath", "/driver-root by default")]
#[case(&["--driver-root-ctr-path=/"], &[], "", "backends.nvidia.driverPath", "- by default")]
#[case(&["--device-discovery-strategy=tegra"], &[], "", "backends.nvidia.discovery",
    "tegra by flag --device-discovery-strategy")]
#[case(&[], &[("DP_DISABLE_HEALTHCHECKS", "79, x,48,,")], "", "backends.nvidia.xids.ignore",
    "[79, 48] by variable DP_DISABLE_HEALTHCHECKS")]
#[case(&[], &[("DP_DISABLE_HEALTHCHECKS", "1,XIDS")], "", "backends.nvidia.xids.ignore", "all by variable DP_DISABLE_HEALTHCHECKS")]
#[case(&[], &[("DP_ENABLE_HEALTHCHECKS", "All")], "", "backends.nvidia.xids.heed", "all by variable DP_ENABLE_HEALTHCHECKS")]
fn a_value_comes_from_where_it_should(
    #[case] args: &[&str],
    #[case] env: &[(&str, &str)],
    #[case] file: &str,
    #[case] key: &str,
    #[case] expected: &str,
) {
    let resolved = translate(args, env, file).unwrap();
    assert_eq!(value(&resolved, key), expected);
}

#[rstest]
#[case(&["--mig-strategy=some"], &[], "", "flag --mig-strategy: `some` is not one of none, single, mixed")]
#[case(&[], &[("DEVICE_LIST_STRATEGY", "")], "", "variable DEVICE_LIST_STRATEGY: `` is not one of envvar")]
#[case(&["--device-list-strategy=cdi-cir"], &[], "", "flag --device-list-strategy: `cdi-cir`")]
#[case(&["--device-id-strategy=pci"], &[], "", "flag --device-id-strategy: `pci` is not one of uuid, index")]
#[case(&["--shared-devices-allocation-policy=x"], &[], "", "flag --shared-devices-allocation-policy: `x`")]
#[case(&["--device-discovery-strategy=x"], &[], "", "flag --device-discovery-strategy: `x`")]
#[case(&["--imex-channel-ids=1"], &[], "", "flag --imex-channel-ids: IMEX channels [1] cannot be had")]
#[case(&[], &[], "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}", "config.yaml:1:16: sharing.mps: MPS needs")]
#[case(&["--mps-root=/m", "--mig-strategy=mixed"], &[], "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}",
    "config.yaml:1:16: sharing.mps: MIG devices cannot be shared")]
#[case(&["--kubelet-socket=/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/kubelet.sock"], &[], "",
    "flag --kubelet-socket: kubelet.dir: the path has 70 bytes")]
fn what_the_plugin_refuses_is_refused(
    #[case] args: &[&str],
    #[case] env: &[(&str, &str)],
    #[case] file: &str,
    #[case] expected: &str,
) {
    let error = translate(args, env, file).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[rstest]
#[case("[]", true)]
#[case("[0]", true)]
#[case("[1]", false)]
#[case("[0, 1]", false)]
#[case("[0, 0]", false)]
#[case("[-1]", false)]
#[case("[1, 2, 3]", false)]
fn imex_channels_are_none_or_the_first(#[case] ids: &str, #[case] valid: bool) {
    let resolved = translate(&[], &[], &format!("imex: {{channelIDs: {ids}}}"));
    assert_eq!(resolved.is_ok(), valid);
    if let Ok(resolved) = resolved {
        let imex = &resolved.config.pools.pools[0].handover.nvidia.imex;
        assert_eq!(format!("{imex:?}"), ids);
    }
}

#[rstest]
#[case("mps", "", true)]
#[case("mps", "failRequestsGreaterThanOne: false,", false)]
#[case("mps", "failRequestsGreaterThanOne: true,", true)]
#[case("timeSlicing", "", false)]
#[case("timeSlicing", "failRequestsGreaterThanOne: true,", true)]
fn with_mps_a_container_has_one_unit_unless_the_file_says_otherwise(
    #[case] section: &str,
    #[case] said: &str,
    #[case] expected: bool,
) {
    let text =
        format!("sharing: {{{section}: {{{said} resources: [{{name: gpu, replicas: 3}}]}}}}");
    let resolved = translate(&["--mps-root=/m"], &[], &text).unwrap();
    let sharing = &resolved.config.pools.pools[0].sharing;
    assert_eq!(sharing.one_per_request, expected);
    assert_eq!(sharing.replicas, 3);
}

#[rstest]
#[case("distributed", Policy::Spread, Distinct::Prefer)]
#[case("packed", Policy::Packed, Distinct::Off)]
fn the_policy_is_that_of_shared_pools(
    #[case] word: &str,
    #[case] policy: Policy,
    #[case] distinct: Distinct,
) {
    let text = "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}}";
    let flag = format!("--shared-devices-allocation-policy={word}");
    let pools = translate(&[&flag, "--mig-strategy=mixed"], &[], text)
        .unwrap()
        .config
        .pools
        .pools;
    assert_eq!(pools[0].placement.policy, policy);
    assert_eq!(pools[0].sharing.distinct, distinct);
    assert_eq!(pools[0].sharing.method, Method::TimeSlicing);
    assert_eq!(pools[1].placement, crate::Placement::default());
}

#[test]
fn a_socket_of_another_name_is_a_warning() {
    let resolved = translate(&["--kubelet-socket=/k/other.sock"], &[], "").unwrap();
    assert!(
        resolved.warnings[0]
            .to_string()
            .starts_with("flag --kubelet-socket: warning:")
    );
    assert_eq!(resolved.config.kubelet.dir, PathBuf::from("/k"));
}

#[test]
fn our_own_variables_win() {
    let overrides = Overrides {
        control_socket: Some("/c".into()),
        backends: BackendOverrides {
            nvidia: NvidiaOverrides {
                driver_path: Some("/d".into()),
                ..NvidiaOverrides::default()
            },
        },
        ..Overrides::default()
    };
    let from = |_: &str| ValueOrigin::of_variable("OURS");
    let resolved =
        translate_file(&GivenFlags::default(), &V1File::default(), overrides, &from).unwrap();
    assert_eq!(value(&resolved, "controlSocket"), "/c by variable OURS");
    assert_eq!(
        value(&resolved, "backends.nvidia.driverPath"),
        "/d by variable OURS"
    );
}

#[test]
fn the_file_that_a_flag_names_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    fs_err::write(
        &path,
        r#"{"version": "v1", "flags": {"migStrategy": "mixed"}}"#,
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let Ok(Invocation::Run(flags)) = GivenFlags::parse_args(&["--config-file", path], &|_| None)
    else {
        panic!("not a run");
    };
    let resolved = translate_flags(&flags, Overrides::default(), &ValueOrigin::of_flag).unwrap();
    assert_eq!(resolved.config.backends.nvidia.mig, Mig::Mixed);
    fs_err::write(path, "version: v2").unwrap();
    let error = translate_flags(&flags, Overrides::default(), &ValueOrigin::of_flag).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("{path}:1:10: version:")),
        "{error}"
    );
}

/// Generates flags in every form that the translation tells apart.
fn flag() -> impl Strategy<Value = String> {
    let text = |flag: &'static str, values: &'static [&'static str]| {
        prop::sample::select(values).prop_map(move |value| format!("--{flag}={value}"))
    };
    let texts = "driver-root|dev-root|nvidia-cdi-hook-path|driver-root-ctr-path|mps-root|\
                 kubelet-socket|cdi-annotation-prefix|cdi-feature-flags|cdi-disable-hooks";
    prop_oneof![
        (texts, "/?\\PC{0,20}").prop_map(|(flag, value)| format!("--{flag}={value}")),
        text("mig-strategy", &["none", "single", "mixed"]),
        text("fail-on-init-error", &["true", "false"]),
        text("driver-root", &["", "/", "/a b", "/é: #"]),
        text("dev-root", &["", "/", "off", "/dev {x}"]),
        text("pass-device-specs", &["true", "false"]),
        text(
            "device-list-strategy",
            &["envvar", "cdi-cri,envvar", "volume-mounts"]
        ),
        text("device-id-strategy", &["uuid", "index"]),
        text("cdi-annotation-prefix", &["cdi.k8s.io/", "a.io/b", "true/"]),
        text("nvidia-cdi-hook-path", &["", "/h", "1"]),
        text("driver-root-ctr-path", &["", "/", "/driver", "~"]),
        text("mps-root", &["", "/m"]),
        text(
            "shared-devices-allocation-policy",
            &["distributed", "packed"]
        ),
        text("device-discovery-strategy", &["auto", "nvml", "tegra"]),
        text("imex-channel-ids", &["0"]),
        text(
            "kubelet-socket",
            &["", "kubelet.sock", "/k/kubelet.sock", "/k/other"]
        ),
        text("cdi-feature-flags", &["", "a,no", "null"]),
        text("cdi-disable-hooks", &["all", "a, b"]),
    ]
}

/// Generates sections of the file.
fn section() -> impl Strategy<Value = String> {
    let resource = (
        prop::sample::select(&["gpu", "t4", "mig-1g.5gb"][..]),
        2..6000u32,
        prop::sample::select(&["all", "3", "5000", "[0, '1:0']"][..]),
        prop::sample::select(&["", ", rename: other", ", rename: gpu.shared"][..]),
    );
    let resource = resource.prop_map(|(name, replicas, devices, rename)| {
        format!("{{name: {name}, replicas: {replicas}, devices: {devices}{rename}}}")
    });
    let resources = prop::collection::vec(resource, 1..3);
    let method = prop::sample::select(&["timeSlicing", "mps"][..]);
    let sharing = (method, resources).prop_map(|(method, resources)| {
        format!(
            "sharing: {{{method}: {{resources: [{}]}}}}",
            resources.join(", ")
        )
    });
    let names = "resources: {gpus: [{pattern: '*T4*', name: t4}], mig: [{pattern: '*', name: m}]}";
    prop_oneof![Just(String::new()), Just(names.to_owned()), sharing]
}

proptest! {
    #[test]
    fn a_translation_is_an_ostler_yaml_that_says_the_same(
        flags in prop::collection::vec(flag(), 0..6),
        xids in prop::sample::select(&["", "all", "13,79", "xids,x"][..]),
        sections in prop::collection::vec(section(), 0..3),
    ) {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let env = [("DP_DISABLE_HEALTHCHECKS", xids)];
        let _ = translate(&flags, &env, &sections.join("\n"));
    }
}

#[rstest]
#[case("")]
#[case(FILE)]
#[case(NAMED)]
fn of_a_file_it_does_for_every_mig_strategy(
    #[values("none", "single", "mixed")] mig: &str,
    #[case] text: &str,
) {
    translate(&[&format!("--mig-strategy={mig}")], &[], text).unwrap();
}
