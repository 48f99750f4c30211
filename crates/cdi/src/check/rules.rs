//! CDI's rules, from the top of a spec down to the fields of its edits.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    kind, version,
    walk::{At, Rule},
};
use crate::is_device;

/// Times at which OCI hooks run.
const HOOKS: [&str; 6] = [
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
];
/// Types of device nodes: block, character, unbuffered character, and pipe, as in the OCI runtime spec.
const NODES: [&str; 4] = ["b", "c", "u", "p"];

const SPEC: [(&str, Rule); 5] = [
    ("cdiVersion", text),
    ("kind", kinds),
    ("annotations", |at| at.texts()),
    ("devices", devices),
    ("containerEdits", edits),
];
const DEVICE: [(&str, Rule); 3] = [
    ("name", name),
    ("annotations", |at| at.texts()),
    ("containerEdits", edits),
];
const EDITS: [(&str, Rule); 7] = [
    ("env", |at| at.list(variable)),
    ("deviceNodes", |at| at.list(node)),
    ("netDevices", |at| at.list(net)),
    ("hooks", |at| at.list(hook)),
    ("mounts", |at| at.list(mount)),
    ("intelRdt", anything),
    ("additionalGids", |at| at.list(u32)),
];
const NODE: [(&str, Rule); 9] = [
    ("path", path),
    ("hostPath", path),
    ("type", node_type),
    ("major", u32),
    ("minor", u32),
    ("fileMode", u32),
    ("permissions", permissions),
    ("uid", u32),
    ("gid", u32),
];
const NET: [(&str, Rule); 2] = [("hostInterfaceName", filled), ("name", filled)];
const MOUNT: [(&str, Rule); 4] = [
    ("hostPath", path),
    ("containerPath", path),
    ("type", text),
    ("options", |at| at.list(text)),
];
const HOOK: [(&str, Rule); 5] = [
    ("hookName", hook_name),
    ("path", path),
    ("args", |at| at.list(text)),
    ("env", |at| at.list(variable)),
    ("timeout", u32),
];

pub(super) fn spec(at: &mut At<'_>) {
    at.map(&SPEC, &["cdiVersion", "kind", "devices"]);
    version(at, at.value());
}

fn devices(at: &mut At<'_>) {
    at.list(device);
    let Value::Array(items) = at.value() else {
        return;
    };
    if items.is_empty() {
        at.error("", "there is no device in it".to_owned());
    }
    let mut seen = BTreeSet::new();
    for name in items.iter().filter_map(|item| item.get("name")?.as_str()) {
        if !seen.insert(name) {
            at.error("", format!("two devices have the name `{name}`"));
        }
    }
}

fn device(at: &mut At<'_>) {
    at.map(&DEVICE, &["name", "containerEdits"]);
    // CDI rejects a device without edits (pkg/cdi/device.go, `validate`).
    let empty = |edits: &Value| match edits {
        Value::Object(edits) => edits.values().all(is_nothing),
        _ => false,
    };
    if at.value().get("containerEdits").is_some_and(empty) {
        at.error("containerEdits", "nothing is in it".to_owned());
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

fn edits(at: &mut At<'_>) {
    at.map(&EDITS, &[]);
}

fn node(at: &mut At<'_>) {
    at.map(&NODE, &["path"]);
}

fn net(at: &mut At<'_>) {
    at.map(&NET, &["hostInterfaceName", "name"]);
}

fn mount(at: &mut At<'_>) {
    at.map(&MOUNT, &["hostPath", "containerPath"]);
}

fn hook(at: &mut At<'_>) {
    at.map(&HOOK, &["hookName", "path"]);
}

fn kinds(at: &mut At<'_>) {
    if let Some(problem) = at.text().and_then(kind) {
        at.error("", problem);
    }
}

fn name(at: &mut At<'_>) {
    let wrong = at.text().filter(|name| !is_device(name));
    if let Some(name) = wrong {
        at.error(
            "",
            format!(
                "`{name}` is no name for a device: letters, digits and `_-.:`, with a letter or a \
                 digit at both ends"
            ),
        );
    }
}

fn variable(at: &mut At<'_>) {
    let name = |text: &str| text.split_once('=').map(|(name, _)| name.is_empty());
    let wrong = at.text().filter(|text| name(text) != Some(false));
    if let Some(text) = wrong {
        at.error("", format!("`{text}` is no variable: write NAME=value"));
    }
}

fn hook_name(at: &mut At<'_>) {
    one_of(at, &HOOKS);
}

fn node_type(at: &mut At<'_>) {
    one_of(at, &NODES);
}

fn one_of(at: &mut At<'_>, words: &[&str]) {
    let wrong = at.text().filter(|text| !words.contains(text));
    if let Some(text) = wrong {
        at.error("", format!("`{text}` is not one of {}", words.join(", ")));
    }
}

fn permissions(at: &mut At<'_>) {
    let strange = |text: &&str| !text.bytes().all(|b| b"rwm".contains(&b));
    if let Some(text) = at.text().filter(strange) {
        at.error("", format!("`{text}` has something else than r, w and m"));
    }
}

fn path(at: &mut At<'_>) {
    match at.text() {
        Some("") => at.error("", "it is empty".to_owned()),
        Some(path) if !path.starts_with('/') => {
            at.warning("", format!("`{path}` does not begin with /"));
        }
        _ => {}
    }
}

fn filled(at: &mut At<'_>) {
    if at.text() == Some("") {
        at.error("", "it is empty".to_owned());
    }
}

fn text(at: &mut At<'_>) {
    at.text();
}

fn u32(at: &mut At<'_>) {
    at.number(u64::from(u32::MAX));
}

fn anything(_: &mut At<'_>) {}
