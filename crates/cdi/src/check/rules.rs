//! CDI's rules, from the top of a spec down to the fields of its edits.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    check_version, explain_kind,
    walk::{SpecCursor, SpecRule},
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

const SPEC: [(&str, SpecRule); 5] = [
    ("cdiVersion", check_text),
    ("kind", check_kind),
    ("annotations", |at| at.expect_text_map()),
    ("devices", check_devices),
    ("containerEdits", check_edits),
];
const DEVICE: [(&str, SpecRule); 3] = [
    ("name", check_device_name),
    ("annotations", |at| at.expect_text_map()),
    ("containerEdits", check_edits),
];
const EDITS: [(&str, SpecRule); 7] = [
    ("env", |at| at.expect_list(check_variable)),
    ("deviceNodes", |at| at.expect_list(check_node)),
    ("netDevices", |at| at.expect_list(net)),
    ("hooks", |at| at.expect_list(check_hook)),
    ("mounts", |at| at.expect_list(check_mount)),
    ("intelRdt", anything),
    ("additionalGids", |at| at.expect_list(u32)),
];
const NODE: [(&str, SpecRule); 9] = [
    ("path", check_path),
    ("hostPath", check_path),
    ("type", node_type),
    ("major", u32),
    ("minor", u32),
    ("fileMode", u32),
    ("permissions", permissions),
    ("uid", u32),
    ("gid", u32),
];
const NET: [(&str, SpecRule); 2] = [("hostInterfaceName", filled), ("name", filled)];
const MOUNT: [(&str, SpecRule); 4] = [
    ("hostPath", check_path),
    ("containerPath", check_path),
    ("type", check_text),
    ("options", |at| at.expect_list(check_text)),
];
const HOOK: [(&str, SpecRule); 5] = [
    ("hookName", hook_name),
    ("path", check_path),
    ("args", |at| at.expect_list(check_text)),
    ("env", |at| at.expect_list(check_variable)),
    ("timeout", u32),
];

pub(super) fn check_root(at: &mut SpecCursor<'_>) {
    at.expect_map(&SPEC, &["cdiVersion", "kind", "devices"]);
    check_version(at, at.current_value());
}

fn check_devices(at: &mut SpecCursor<'_>) {
    at.expect_list(check_device);
    let Value::Array(items) = at.current_value() else {
        return;
    };
    if items.is_empty() {
        at.report_error("", "there is no device in it".to_owned());
    }
    let mut seen = BTreeSet::new();
    for name in items.iter().filter_map(|item| item.get("name")?.as_str()) {
        if !seen.insert(name) {
            at.report_error("", format!("two devices have the name `{name}`"));
        }
    }
}

fn check_device(at: &mut SpecCursor<'_>) {
    at.expect_map(&DEVICE, &["name", "containerEdits"]);
    // CDI rejects a device without edits (pkg/cdi/device.go, `validate`).
    let empty = |edits: &Value| match edits {
        Value::Object(edits) => edits.values().all(is_nothing),
        _ => false,
    };
    if at.current_value().get("containerEdits").is_some_and(empty) {
        at.report_error("containerEdits", "nothing is in it".to_owned());
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

fn check_edits(at: &mut SpecCursor<'_>) {
    at.expect_map(&EDITS, &[]);
}

fn check_node(at: &mut SpecCursor<'_>) {
    at.expect_map(&NODE, &["path"]);
}

fn net(at: &mut SpecCursor<'_>) {
    at.expect_map(&NET, &["hostInterfaceName", "name"]);
}

fn check_mount(at: &mut SpecCursor<'_>) {
    at.expect_map(&MOUNT, &["hostPath", "containerPath"]);
}

fn check_hook(at: &mut SpecCursor<'_>) {
    at.expect_map(&HOOK, &["hookName", "path"]);
}

fn check_kind(at: &mut SpecCursor<'_>) {
    if let Some(problem) = at.expect_text().and_then(explain_kind) {
        at.report_error("", problem);
    }
}

fn check_device_name(at: &mut SpecCursor<'_>) {
    let wrong = at.expect_text().filter(|name| !is_device(name));
    if let Some(name) = wrong {
        at.report_error(
            "",
            format!(
                "`{name}` is no name for a device: letters, digits and `_-.:`, with a letter or a \
                 digit at both ends"
            ),
        );
    }
}

fn check_variable(at: &mut SpecCursor<'_>) {
    let name = |text: &str| text.split_once('=').map(|(name, _)| name.is_empty());
    let wrong = at.expect_text().filter(|text| name(text) != Some(false));
    if let Some(text) = wrong {
        at.report_error("", format!("`{text}` is no variable: write NAME=value"));
    }
}

fn hook_name(at: &mut SpecCursor<'_>) {
    one_of(at, &HOOKS);
}

fn node_type(at: &mut SpecCursor<'_>) {
    one_of(at, &NODES);
}

fn one_of(at: &mut SpecCursor<'_>, words: &[&str]) {
    let wrong = at.expect_text().filter(|text| !words.contains(text));
    if let Some(text) = wrong {
        at.report_error("", format!("`{text}` is not one of {}", words.join(", ")));
    }
}

fn permissions(at: &mut SpecCursor<'_>) {
    let strange = |text: &&str| !text.bytes().all(|b| b"rwm".contains(&b));
    if let Some(text) = at.expect_text().filter(strange) {
        at.report_error("", format!("`{text}` has something else than r, w and m"));
    }
}

fn check_path(at: &mut SpecCursor<'_>) {
    match at.expect_text() {
        Some("") => at.report_error("", "it is empty".to_owned()),
        Some(path) if !path.starts_with('/') => {
            at.report_warning("", format!("`{path}` does not begin with /"));
        }
        _ => {}
    }
}

fn filled(at: &mut SpecCursor<'_>) {
    if at.expect_text() == Some("") {
        at.report_error("", "it is empty".to_owned());
    }
}

fn check_text(at: &mut SpecCursor<'_>) {
    at.expect_text();
}

fn u32(at: &mut SpecCursor<'_>) {
    at.expect_number(u64::from(u32::MAX));
}

fn anything(_: &mut SpecCursor<'_>) {}
