//! Reader of `ostler.yaml`.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{Config, Distinct, Method, Policy, schema};

fn config(text: &str) -> Config {
    parse_native("ostler.yaml", text).unwrap().config
}

#[test]
fn an_empty_file_is_all_defaults() {
    assert_eq!(config(""), Config::default());
    assert_eq!(config("# nothing yet\n\n"), Config::default());
    assert_eq!(config("probe:\npools:\nkubelet: {}\n"), Config::default());
}

/// File that sets every key.
pub(crate) const EVERY_KEY: &str = "
kubelet: {dir: /a, podResourcesSocket: /b, register: false}
hostRoot: /c
controlSocket: /f
probe: {period: 3s, callLimit: 4s, driverCallLimit: 5s, retryPause: 6s}
backends:
  crypto: {enabled: false, exec: [/probe, -v], allow: /dev/crypto*, settings: {mode: fast}}
  nvidia:
    enabled: false
    failOnInitError: true
    driverPath: /d
    nvmlLibrary: /e
    loaderFallback: true
    devPath: /g
    mpsPath: /h
    discovery: tegra
    fabricJoin: 18s
    mig: single
    imexRequired: true
    cdi: {driverRoot: /i, hookPath: /j, featureFlags: x, disableHooks: [y, z]}
    xids:
      base: nvidia
      actions: {94: permanent, 13: ignore}
      unknown: application
      ignore: all
      heed: [79, 13]
health:
  unansweredGrace: 7s
  goneGrace: 8s
  unknown: unhealthy
  onMonitorLoss: drain
  monitorLossGrace: 9s
  holdDown: 10s
  holdDownLimit: 11s
  holdDownMemory: 12s
  passes: 13
  residueHold: 14s
  working: 15s
  performing: off
  trend: 16s
  deep: 17s
  deepCommand: [diagnose, -r, '1']
  deepLimit: 19s
  eventWarning: 20s
  weights:
    {working: warn, performing: out, trend: off, deep: out, causes: {Ecc: off, Link: out},
     conditions: {ras.umc: off}}
  thresholds:
    eccUncorrected: 1
    temperatureMargin: 2
    busyPercent: 3
    linkErrors: 4
    eccCorrectedPerHour: off
    repairedRowsPerHour: 5
    pcieReplaysPerHour: 6
    meanWatts: 7
    meanTime: 19s
  stateFile: /state
cdi: {dir: /cdi, runtime: supported}
include: {vendor: nvidia}
exclude:
  - {model: ['NVIDIA T*', 'Quadro*'], uuid: GPU-1, index: 3, pci: '0000:3b:00.0'}
  - {minMemory: 40Gi, maxMemory: 80G, profile: 1g.*, kind: partition, display: true, attributes: {architecture: hopper, gpuInstance: [1, 2]}}
handover: {lists: [cdi-cri, envvar, envvar], ids: index, env: {CARD: '{index}'}, mounts: [{hostPath: /n, containerPath: '/o/{id}', readOnly: true}], nvidia: {mpsRoot: /k, imex: 0}}
pools:
  - {name: q, resource: a.io/q, preStart: reset, preStartCommand: reset it, preStartLimit: 3s}
  - name: p
    select: {index: ['0', '1:0']}
    reserved: [{index: 1}]
    limit: 2
    resource: nvidia.com/{model}
    sharing: {method: mps, replicas: 4, onePerRequest: true, distinct: require}
    placement: {policy: weighted, weights: {link: 2, numa: 1, load: 3, temperature: 4, power: 5}}
    handover:
      deviceNodes: false
      nvidia:
        devRoot: /l
        annotationPrefix: m/
        capabilities: compute
        gds: true
        gdrcopy: true
        mofed: true
";

#[test]
fn reads_every_key() {
    insta::assert_debug_snapshot!(config(EVERY_KEY));
}

#[test]
fn verdicts_are_kept_beside_the_kubelets_socket_unless_it_is_said_otherwise() {
    let file = |text| config(text).health.state_file;
    assert_eq!(
        file("kubelet: {dir: /k}"),
        Some("/k/ostler-state.json".into())
    );
    assert_eq!(file("health: {stateFile: /s}"), Some("/s".into()));
    assert_eq!(file("health: {stateFile: off}"), None);
}

#[test]
fn the_longest_hold_down_is_at_least_the_first() {
    let limit = |text| config(text).health.hold_down_limit.as_secs();
    assert_eq!(limit("health: {holdDown: 1m}"), 900);
    assert_eq!(limit("health: {holdDown: 1h}"), 3600);
}

#[test]
fn short_forms_mean_the_same_as_maps() {
    let pool = |rest: &str| {
        let text = format!("pools:\n  - name: a\n    resource: a.io/b\n    {rest}\n");
        config(&text).pools.pools.remove(0)
    };
    assert_eq!(
        pool("placement: packed"),
        pool("placement: {policy: packed}")
    );
    assert_eq!(pool("sharing: none"), pool("sharing: {method: none}"));
    let shared = pool("sharing: {replicas: 4}").sharing;
    assert_eq!((shared.method, shared.replicas), (Method::TimeSlicing, 4));
    assert_eq!(shared.distinct, Distinct::Prefer);
    let weighted = pool("placement: {weights: {link: 1}}").placement;
    assert_eq!(weighted.policy, Policy::Weighted);
    assert_eq!(pool("select: {index: 0}"), pool("select: [{index: ['0']}]"));
}

#[test]
fn the_handover_of_the_file_holds_for_every_pool_that_does_not_say_otherwise() {
    let text = "handover: {ids: index, nvidia: {gds: true}}\npools:\n  - {name: a, select: {index: 0}, \
                resource: a.io/a}\n  - {name: b, resource: a.io/b, handover: {nvidia: {gds: false}}}\n";
    let pools = config(text).pools.pools;
    assert_eq!(
        pools
            .iter()
            .map(|p| p.handover.nvidia.gds)
            .collect::<Vec<_>>(),
        [true, false]
    );
    assert!(
        pools
            .iter()
            .all(|p| p.handover.ids == crate::IdStrategy::Index)
    );
    let defaults = config("handover: {nvidia: {gds: true}}\n").pools.pools;
    assert!(defaults.iter().all(|p| p.handover.nvidia.gds));
}

#[test]
fn the_pools_of_a_file_without_any_follow_the_mig_strategy() {
    let names = |mig: &str| {
        let pools = config(&format!("backends: {{nvidia: {{mig: {mig}}}}}"))
            .pools
            .pools;
        pools
            .iter()
            .map(|p| p.resource.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names("mixed"),
        ["nvidia.com/gpu", "nvidia.com/mig-{profile}"]
    );
    assert_eq!(names("single"), ["nvidia.com/gpu", "nvidia.com/gpu"]);
}

#[test]
fn two_pools_may_have_one_name_if_all_else_is_alike() {
    let alike = "pools:\n  - {name: a, select: {index: 0}, resource: a.io/b, handover: {nvidia: {gds: false}}}\n  \
                 - {name: b, resource: a.io/b}\n";
    assert_eq!(config(alike).pools.pools.len(), 2);
    assert!(
        parse_native(
            "x",
            &format!("handover: {{nvidia: {{gds: true}}}}\n{alike}")
        )
        .is_err()
    );
}

#[test]
fn an_alias_and_json_are_read_too() {
    let yaml = "exclude: [&card {index: 0}]\ninclude: [*card]\n";
    let pools = config(yaml).pools;
    assert_eq!(pools.include, pools.exclude);
    assert_eq!(
        config(r#"{"probe": {"period": "3s"}}"#),
        config("probe: {period: 3s}")
    );
}

#[test]
fn what_is_no_plain_file_no_text_or_too_large_is_refused() {
    let error = load_native(Path::new("/dev/zero")).unwrap_err().to_string();
    assert_eq!(error, "/dev/zero is not a plain file");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ostler.yaml");
    fs_err::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
    let error = load_native(&path).unwrap_err().to_string();
    assert!(error.contains("more than 1048576 bytes"), "{error}");
    fs_err::write(&path, [b'a', 0xff]).unwrap();
    let error = load_native(&path).unwrap_err().to_string();
    assert!(error.contains("ostler.yaml is not a text"), "{error}");
    assert_eq!(
        load_native(Path::new("/dev/null")).unwrap(),
        Resolved::default()
    );
}

#[test]
fn an_absent_file_is_named() {
    let error = load_native(Path::new("/nowhere/ostler.yaml")).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("/nowhere/ostler.yaml"), "{source}");
}

/// Returns the keys that the reader knows in the map at `path`, from its error for an unknown key.
fn known(path: &str, list: bool) -> BTreeSet<String> {
    let mut text = "{\"0123456789012345\": 1}".to_owned();
    if list {
        text = format!("[{text}]");
    }
    for key in path.split('/').rev().filter(|key| !key.is_empty()) {
        text = match key.strip_suffix("[]") {
            Some(key) => format!("{{\"{key}\": [{text}]}}"),
            None => format!("{{\"{key}\": {text}}}"),
        };
    }
    let error = parse_native("x", &text).unwrap_err();
    let helps = error.problems().iter().map(|problem| &problem.help);
    let prefix = "the keys here are: ";
    let help = helps
        .filter_map(|help| help.strip_prefix(prefix))
        .next()
        .unwrap();
    help.split(", ").map(str::to_owned).collect()
}

/// Map of the file with fixed keys.
#[derive(Debug)]
struct Known {
    /// Path of the map, in the form that `known` takes.
    path: String,
    /// Name of the map's type among the definitions of the schema.
    name: String,
    keys: BTreeSet<String>,
}

/// Returns every map with fixed keys in a schema.
fn sections(schema: &Value, at: &Value, path: &str, name: &str) -> Vec<Known> {
    let inside = |at: &Value| sections(schema, at, path, name);
    if let Some(name) = at["$ref"].as_str().and_then(|r| r.rsplit('/').next()) {
        return sections(schema, &schema["$defs"][name], path, name);
    }
    let mut found = Vec::new();
    for choice in ["anyOf", "oneOf"] {
        let all = at[choice].as_array().into_iter().flatten();
        found.extend(all.flat_map(inside));
    }
    // Any other list may be written as its single item, so its items were found already.
    if at["type"] == "array" && path == "pools" {
        found.extend(sections(schema, &at["items"], &format!("{path}[]"), name));
    }
    // `EVERY_KEY` has a map of that name wherever the user chooses the names.
    let rest = &at["additionalProperties"];
    if rest.is_object() {
        let path = format!("{path}/crypto");
        found.extend(sections(schema, rest, &path, name));
    }
    if let Some(properties) = at["properties"].as_object() {
        if !rest.is_object() {
            found.push(Known {
                path: path.to_owned(),
                name: name.to_owned(),
                keys: properties.keys().cloned().collect(),
            });
        }
        for (key, at) in properties {
            let path = format!("{path}/{key}");
            found.extend(sections(schema, at, path.trim_start_matches('/'), name));
        }
    }
    found
}

/// Returns the keys that the maps at a path have in the output of `explain`.
fn shown(value: &Value, path: &str) -> BTreeSet<String> {
    if let Value::Array(list) = value {
        return list.iter().flat_map(|one| shown(one, path)).collect();
    }
    match path.split_once('/') {
        Some((key, rest)) => shown(&value[key.trim_end_matches("[]")], rest),
        None if path.is_empty() => value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, _)| k.clone())
            .collect(),
        None => shown(&value[path.trim_end_matches("[]")], ""),
    }
}

/// Finds an option that is declared for only one or two of reader, schema and `explain`.
#[test]
fn schema_reader_and_explain_have_the_same_keys() {
    let schema = schema();
    let sections = sections(&schema, &schema, "", "Config");
    let explained = config(EVERY_KEY).to_value();
    let mut keys = BTreeMap::<&str, BTreeSet<String>>::new();
    for section in &sections {
        let read = known(&section.path, false);
        assert_eq!(
            section.keys, read,
            "schema and reader at `{}`",
            section.path
        );
        let keys = keys.entry(&section.name).or_default();
        keys.extend(shown(&explained, &section.path));
    }
    for section in &sections {
        let shown = &keys[section.name.as_str()];
        assert_eq!(
            &section.keys, shown,
            "schema and explain of {}",
            section.name
        );
    }
    let names: Vec<&str> = keys.keys().copied().collect();
    assert_eq!(
        names,
        [
            "Cdi",
            "Config",
            "ExecBackend",
            "ExtraMount",
            "Handover",
            "Health",
            "Kubelet",
            "NvidiaBackend",
            "NvidiaCdi",
            "NvidiaHandover",
            "Placement",
            "Pool",
            "Probe",
            "Selector",
            "Sharing",
            "Thresholds",
            "TierWeights",
            "Weights",
            "Xids",
        ]
    );
}

#[test]
fn a_property_of_the_schema_has_a_description() {
    fn check(path: &str, value: &Value) {
        if let Some(properties) = value.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                assert!(property.get("description").is_some(), "{path}/{name}");
            }
        }
        if let Some(map) = value.as_object() {
            for (name, value) in map {
                check(&format!("{path}/{name}"), value);
            }
        }
    }
    check("", &schema());
}

proptest! {
    #[test]
    fn never_panics(text in ".*") {
        let _ = parse_native("x", &text);
    }

    #[test]
    fn never_panics_near_what_is_right(
        key in "pools|include|backends|probe|handover|kubelet",
        value in "[-a-z0-9:{}\\[\\], \n\"*&]{0,60}",
    ) {
        if let Err(error) = parse_native("x", &format!("{key}: {value}")) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
