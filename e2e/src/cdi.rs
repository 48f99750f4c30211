//! CDI specs as a container runtime reads them, and checks of a container against them. Nothing
//! here is the agent's code: the files are read independently.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{
    place,
    report::{self, Report},
};

/// CDI kind of the specs that the agent writes for GPUs.
const KIND: &str = "k8s.device-plugin.nvidia.com/gpu";
/// Mount options that the kernel has a flag for.
const FLAGS: [&str; 4] = ["ro", "nosuid", "nodev", "noexec"];

/// A spec file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    #[serde(rename = "cdiVersion")]
    _version: String,
    kind: String,
    devices: Vec<Device>,
    #[serde(default)]
    container_edits: Edits,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Device {
    name: String,
    container_edits: Edits,
}

/// Edits of a container. An unknown key is an error, so that no edit goes unchecked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Edits {
    env: Vec<String>,
    device_nodes: Vec<Node>,
    mounts: Vec<Mount>,
    hooks: Vec<Hook>,
    additional_gids: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Node {
    path: String,
    host_path: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    major: Option<u32>,
    minor: Option<u32>,
    file_mode: Option<u32>,
    permissions: Option<String>,
    uid: Option<u32>,
    gid: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Mount {
    host_path: String,
    container_path: String,
    options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Hook {
    hook_name: String,
    path: String,
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
}

/// CDI name of a GPU or of a part of one.
pub fn name(device: &str) -> String {
    format!("{KIND}={device}")
}

/// Path of the spec file for GPUs.
pub fn file() -> String {
    format!("{}/{}.json", place::CDI, KIND.replace('/', "-"))
}

/// Edits that the node's specs have for these devices, in the order in which a runtime applies
/// them.
///
/// # Errors
/// If a file cannot be parsed, or no file has a device.
pub fn edits(devices: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Edits> {
    let mut specs = Vec::new();
    for entry in fs_err::read_dir(place::CDI)? {
        let path = entry?.path();
        let text = fs_err::read_to_string(&path)?;
        let spec: Spec = serde_json::from_str(&text)
            .with_context(|| format!("{} is no spec as known here", path.display()))?;
        specs.push(spec);
    }
    let names: Vec<String> = devices.into_iter().map(|id| name(id.as_ref())).collect();
    collect(&specs, &names)
}

fn collect(specs: &[Spec], names: &[String]) -> Result<Edits> {
    let mut all = Edits::default();
    let mut begun = BTreeSet::new();
    for name in names {
        let found = specs.iter().find_map(|spec| {
            let device = name.strip_prefix(&spec.kind)?.strip_prefix('=')?;
            let device = spec.devices.iter().find(|own| own.name == device)?;
            Some((spec, device))
        });
        let (spec, device) = found.with_context(|| format!("no spec has {name}"))?;
        if begun.insert(&spec.kind) {
            all.add(&spec.container_edits);
        }
        all.add(&device.container_edits);
    }
    Ok(all)
}

// === impl Edits ===

impl Edits {
    /// Checks that a container has these edits in addition to `plain`, the report of a container
    /// without devices, and no others.
    ///
    /// # Errors
    /// With the differences.
    pub fn check(&self, report: &Report, plain: &Report) -> Result<()> {
        same("variables", &self.env(plain), &report.env)?;
        same("device nodes", &self.nodes(plain)?, &report.dev)?;
        let groups = self.additional_gids.iter().chain(&plain.groups);
        let groups: BTreeSet<u32> = groups.copied().collect();
        let seen = &report.groups;
        ensure!(*seen == groups, "it is in groups {seen:?}, not {groups:?}");
        let points = self.mounts.iter().map(|mount| &mount.container_path);
        let points = points.chain(plain.mounts.keys()).map(|point| (point, ()));
        let seen = report.mounts.keys().map(|point| (point, ()));
        same("mounts", &points.collect(), &seen.collect())?;
        self.mounts.iter().try_for_each(|mount| mount.check(report))
    }

    /// Calls of the hooks, in order, in the form in which [`place::HOOK`] logs them.
    ///
    /// # Errors
    /// If a hook is not a hook of that program.
    pub fn calls(&self) -> Result<Vec<String>> {
        let call = |hook: &Hook| {
            let when = &hook.hook_name;
            ensure!(when == "createContainer", "a hook runs at {when}");
            ensure!(hook.path == place::HOOK, "a hook is {}", hook.path);
            let words = hook.env.iter().chain(hook.args.iter().skip(1));
            let words: Vec<&str> = words.map(String::as_str).collect();
            Ok(words.join(" "))
        };
        self.hooks.iter().map(call).collect()
    }

    /// True if the edits have mounts, hooks and variables, without which a test of them would prove
    /// nothing, and the numbers of the nodes.
    pub fn is_full(&self) -> bool {
        let lists = [self.mounts.len(), self.hooks.len(), self.env.len()];
        let numbered = |node: &Node| node.major.is_some() && node.minor.is_some();
        lists.into_iter().all(|length| length > 1) && self.device_nodes.iter().all(numbered)
    }

    fn add(&mut self, other: &Self) {
        self.env.extend_from_slice(&other.env);
        self.device_nodes.extend_from_slice(&other.device_nodes);
        self.mounts.extend_from_slice(&other.mounts);
        self.hooks.extend_from_slice(&other.hooks);
        self.additional_gids
            .extend_from_slice(&other.additional_gids);
    }

    /// Environment variables; a later one wins.
    fn env(&self, plain: &Report) -> BTreeMap<String, String> {
        let own = self.env.iter().map(|entry| {
            let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
            (name.to_owned(), value.to_owned())
        });
        plain.env.clone().into_iter().chain(own).collect()
    }

    /// All device nodes.
    fn nodes(&self, plain: &Report) -> Result<BTreeMap<String, report::Node>> {
        let mut all = plain.dev.clone();
        for node in &self.device_nodes {
            all.insert(node.path.clone(), node.inside()?);
        }
        Ok(all)
    }
}

// === impl Node ===

impl Node {
    /// Node that a runtime creates. Absent keys are taken from the host, except for the owner,
    /// which is that of the process. Keys that are given must match the device.
    fn inside(&self) -> Result<report::Node> {
        let host = self.host_path.as_deref().unwrap_or(&self.path);
        let meta = fs_err::metadata(host)?;
        let numbers = (
            rustix::fs::major(meta.rdev()),
            rustix::fs::minor(meta.rdev()),
        );
        let said = (
            self.major.unwrap_or(numbers.0),
            self.minor.unwrap_or(numbers.1),
        );
        ensure!(said == numbers, "{host} has {numbers:?}, not {said:?}");
        let kind = match meta.file_type().is_block_device() {
            true => "b",
            false => "c",
        };
        let said = self.kind.as_deref().unwrap_or(kind);
        ensure!(said == kind, "{host} is of type {kind}, not {said}");
        let rights = self.permissions.as_deref().unwrap_or("rwm");
        Ok(report::Node {
            kind: kind.to_owned(),
            numbers,
            mode: self.file_mode.unwrap_or(meta.mode() & 0o7777),
            owner: (self.uid.unwrap_or(0), self.gid.unwrap_or(0)),
            rights: rights.replace('m', ""),
        })
    }
}

// === impl Mount ===

impl Mount {
    /// Checks that the container has this mount.
    fn check(&self, report: &Report) -> Result<()> {
        let point = &self.container_path;
        let seen = report.mounts.get(point);
        let seen = seen.with_context(|| format!("{point} is no mount"))?;
        // The node's root is a folder of the machine.
        ensure!(
            seen.from.ends_with(&self.host_path),
            "{point} is {}, not {}",
            seen.from,
            self.host_path
        );
        for flag in FLAGS {
            let wanted = self.options.iter().any(|option| option == flag);
            let there = seen.options.contains(flag);
            // The machine may have some of the options for all of its files.
            let is_right = wanted == there || (there && flag != "ro");
            ensure!(is_right, "{point} is {:?}: {flag}", seen.options);
        }
        let private = self.options.iter().any(|option| option == "rprivate");
        ensure!(!(private && seen.spreads), "{point} is not private");
        Ok(())
    }
}

/// Fails with the entries that only one of the two maps has.
fn same<K, V>(what: &str, wanted: &BTreeMap<K, V>, seen: &BTreeMap<K, V>) -> Result<()>
where
    K: Ord + Debug,
    V: PartialEq + Debug,
{
    let missing: Vec<_> = wanted
        .iter()
        .filter(|(k, v)| seen.get(k) != Some(v))
        .collect();
    let more: Vec<_> = seen
        .iter()
        .filter(|(k, v)| wanted.get(k) != Some(v))
        .collect();
    ensure!(
        missing.is_empty() && more.is_empty(),
        "{what}: {missing:?} should be there, {more:?} should not"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Vec<Spec> {
        let text = r#"{
            "cdiVersion": "0.5.0",
            "kind": "k8s.device-plugin.nvidia.com/gpu",
            "devices": [
                {"name": "a", "containerEdits": {"deviceNodes": [{"path": "/dev/zero", "gid": 9, "permissions": "rm"}],
                    "additionalGids": [9]}},
                {"name": "b", "containerEdits": {"env": ["X=2"]}}
            ],
            "containerEdits": {
                "env": ["X=1"],
                "mounts": [{"hostPath": "/h/l", "containerPath": "/l", "options": ["ro", "rprivate"]}]
            }
        }"#;
        vec![serde_json::from_str(text).unwrap()]
    }

    fn zero() -> report::Node {
        report::Node {
            kind: "c".to_owned(),
            numbers: (1, 5),
            mode: 0o666,
            owner: (0, 9),
            rights: "r".to_owned(),
        }
    }

    fn given() -> Report {
        let mount = report::Mount {
            from: "/node/root/h/l".to_owned(),
            options: ["ro", "nodev"].map(str::to_owned).into(),
            spreads: false,
        };
        Report {
            env: BTreeMap::from([("X".to_owned(), "2".to_owned())]),
            mounts: BTreeMap::from([("/l".to_owned(), mount)]),
            dev: BTreeMap::from([("/dev/zero".to_owned(), zero())]),
            groups: BTreeSet::from([9]),
            ..Report::default()
        }
    }

    fn both() -> Edits {
        collect(&spec(), &[name("a"), name("b")]).unwrap()
    }

    #[test]
    fn what_all_devices_have_comes_once_and_first() {
        assert_eq!(both().env, ["X=1", "X=2"]);
        assert_eq!(both().mounts.len(), 1);
        assert!(collect(&spec(), &[name("c")]).is_err());
    }

    #[test]
    fn a_container_with_all_of_it_agrees() {
        both().check(&given(), &Report::default()).unwrap();
    }

    #[test]
    fn a_container_with_more_or_less_disagrees() {
        let differs = |change: fn(&mut Report)| {
            let mut report = given();
            change(&mut report);
            both().check(&report, &Report::default()).unwrap_err()
        };
        differs(|report| report.env.clear());
        differs(|report| report.env.extend([("Y".to_owned(), String::new())]));
        differs(|report| report.dev.clear());
        differs(|report| report.dev.extend([("/dev/full".to_owned(), zero())]));
        for change in [
            (|node| node.kind = "b".to_owned()) as fn(&mut report::Node),
            |node| node.numbers.1 = 6,
            |node| node.mode = 0o600,
            |node| node.owner.0 = 1,
            |node| node.owner.1 = 0,
            |node| node.rights = "rw".to_owned(),
        ] {
            let mut report = given();
            report.dev.values_mut().for_each(change);
            assert!(both().check(&report, &Report::default()).is_err());
        }
        differs(|report| report.groups.clear());
        differs(|report| report.groups.extend([1]));
        differs(|report| report.mounts.clear());
        differs(|report| {
            drop(
                report
                    .mounts
                    .insert("/m".to_owned(), report::Mount::default()),
            )
        });
        differs(|report| report.mounts.values_mut().for_each(|m| m.spreads = true));
        differs(|report| report.mounts.values_mut().for_each(|m| m.options.clear()));
        differs(|report| report.mounts.values_mut().for_each(|m| m.from.push('x')));
    }
}
