//! Reader of the v1 file.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn read(text: &str) -> V1File {
    let file = parse_v1("x", text).unwrap();
    assert_eq!(file.warnings, [], "{text}");
    file
}

#[test]
fn an_empty_file_is_all_defaults() {
    for text in [
        "",
        "# nothing\n",
        "{}",
        "version:\n",
        "version: v1\n",
        "version: \"\"\n",
    ] {
        let file = read(text);
        assert_eq!(file.flags, FlagsSection::default(), "{text:?}");
        assert_eq!((file.time_slicing, file.mps), (None, None), "{text:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("config.yaml");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    assert_eq!(load_v1(&link).unwrap().flags, FlagsSection::default());
}

#[test]
fn every_key_is_read_in_any_case() {
    let text = "
version: v1
flags:
  migStrategy: mixed
  failOnInitError: yes
  mpsRoot: /m
  nvidiaDriverRoot: /r
  nvidiaDevRoot: /d
  gdrcopyEnabled: true
  gdsEnabled: on
  mofedEnabled: false
  useNodeFeatureAPI: true
  deviceDiscoveryStrategy: nvml
  plugin:
    passDeviceSpecs: off
    deviceListStrategy: [envvar, cdi-cri]
    deviceIDStrategy: index
    cdiAnnotationPrefix: p/
    nvidiaCTKPath: /c
    containerDriverRoot: /i
    sharedDevicesAllocationPolicy: packed
  gfd: {oneshot: true, noTimestamp: true, sleepInterval: 30s, outputFile: /o, machineTypeFile: /t}
resources:
  gpus: [{pattern: '*A100*', name: a100}]
  mig: [{pattern: '1g.*', name: small}]
sharing:
  mps: {resources: [{name: gpu, replicas: 4}]}
imex: {channelIDs: [0], required: true}
";
    let file = read(text);
    assert!(!format!("{:?}", file.flags).contains("None"), "{file:#?}");
    assert_eq!((file.gpus.len(), file.mig.len()), (1, 1));
    assert!(file.mps.is_some() && file.imex.required.is_some());
    let loud: Vec<String> = text.lines().map(uppercase).collect();
    let loud = read(&loud.join("\n"));
    assert_eq!(loud.flags, file.flags);
    assert_eq!(loud.mps, file.mps);
}

/// Writes a line with its first key in capitals.
fn uppercase(line: &str) -> String {
    match line.split_once(':') {
        Some((key, value)) => format!("{}:{value}", key.to_uppercase()),
        None => line.to_owned(),
    }
}

#[rstest]
#[case("{}", None, None)]
#[case(r#"{"gfd": {"sleepInterval": 0}}"#, Some(0), None)]
#[case(r#"{"gfd": {"sleepInterval": 5}}"#, Some(5), None)]
#[case(r#"{"gfd": {"sleepInterval": "0"}}"#, Some(0), None)]
#[case(r#"{"gfd": {"sleepInterval": "5ns"}}"#, Some(5), None)]
#[case(r#"{"gfd": {"sleepInterval": "5s"}}"#, Some(5_000_000_000), None)]
#[case(
    r#"{"gfd": {"sleepInterval": "1h30m"}}"#,
    Some(5_400_000_000_000),
    None
)]
#[case(r#"{"gfd": {"sleepInterval": "infinite"}}"#, Some(i64::MAX), None)]
#[case(r#"{"gfd": {"sleepInterval": null}}"#, None, None)]
#[case(r#"{"plugin": {"deviceListStrategy": "envvar"}}"#, None, Some(&["envvar"][..]))]
#[case(r#"{"plugin": {"deviceListStrategy": ["envvar", "cdi-cri"]}}"#, None,
    Some(&["envvar", "cdi-cri"][..]))]
#[case(r#"{"plugin": {"deviceListStrategy": "envvar,cdi-cri"}}"#, None, Some(&["envvar,cdi-cri"][..]))]
#[case(r#"{"plugin": {"deviceListStrategy": []}}"#, None, Some(&[][..]))]
fn flags_have_lengths_of_time_and_lists(
    #[case] json: &str,
    #[case] nanos: Option<i64>,
    #[case] strategies: Option<&[&str]>,
) {
    let flags = read(&format!(r#"{{"flags": {json}}}"#)).flags;
    let found = flags.gfd.sleep_interval.map(|said| said.value.nanos());
    assert_eq!(found, nanos);
    let found = flags.plugin.device_list_strategy.map(|said| said.value);
    let expected = strategies.map(|list| list.iter().map(|&s| s.to_owned()).collect::<Vec<_>>());
    assert_eq!(found, expected);
}

#[rstest]
#[case(r#""5""#)]
#[case(r#""5x""#)]
#[case(r#""""#)]
#[case("[5]")]
#[case("true")]
fn other_lengths_of_time_are_refused(#[case] json: &str) {
    let text = format!(r#"{{"flags": {{"gfd": {{"sleepInterval": {json}}}}}}}"#);
    assert!(parse_v1("x", &text).is_err());
}

#[rstest]
#[case(0, "0s")]
#[case(5, "5ns")]
#[case(1_500, "1.5µs")]
#[case(2_000_000, "2ms")]
#[case(1_500_000_000, "1.5s")]
#[case(60_000_000_000, "1m0s")]
#[case(3_630_000_000_000, "1h0m30s")]
#[case(-5_000_000_000, "-5s")]
#[case(i64::MAX, "infinite")]
fn a_length_of_time_is_written_as_go_writes_it(#[case] nanos: i64, #[case] text: &str) {
    let interval = SleepInterval::from_nanos(nanos);
    assert_eq!(interval.to_string(), text);
    assert_eq!(text.parse(), Ok(interval));
}

#[rstest]
#[case("version: v1\n", true)]
#[case("flags: {}\n", true)]
#[case("sharing: {timeSlicing: {}}\n", true)]
#[case("version: v1\nflags: {\n", true)]
#[case("", false)]
#[case("pools: []\n", false)]
#[case("- a\n", false)]
fn a_v1_file_is_told_from_ours(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(is_v1(text), expected);
}

proptest! {
    #[test]
    fn never_panics(text in ".*") {
        let _ = parse_v1("x", &text);
        let _ = is_v1(&text);
        let _ = text.parse::<SleepInterval>();
    }

    #[test]
    fn never_panics_near_what_is_right(
        key in "sharing: \\{timeSlicing|flags|resources|imex|version",
        value in "[-a-z0-9:{}\\[\\], \n\"*&.]{0,60}",
    ) {
        if let Err(error) = parse_v1("x", &format!("{key}: {value}")) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn every_length_of_time_is_read_back(seconds in -100_000_000i64..100_000_000) {
        let interval = SleepInterval::from_nanos(seconds * 1_000_000_000);
        prop_assert_eq!(interval.to_string().parse(), Ok(interval));
    }
}
