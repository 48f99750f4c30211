//! Section `backends.<name>`: a backend whose probe is a program of the user's, `exec`.

use std::collections::BTreeMap;

use model::NodePattern;
use schemars::JsonSchema;
use serde::Serialize;

use super::Startup;
use crate::source::{Section, SectionReader, list_of, map_by, parsed_text, read_command};

/// Settings of a backend whose probe is a program of the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExecBackend {
    /// Settings of the backend's start.
    #[serde(flatten)]
    pub startup: Startup,
    /// Command of the probe: a list of a program and its arguments, or a text for `/bin/sh -c`.
    pub exec: Vec<String>,
    /// Device nodes that the probe may name: patterns under `/dev/`. A device with any other node
    /// is not offered.
    pub allow: Vec<NodePattern>,
    /// Settings that the probe is given: a map from names to texts.
    pub settings: BTreeMap<String, String>,
}

/// Longest name of a backend, in bytes.
const NAME_LIMIT: usize = 32;

// === impl ExecBackend ===

impl Section for ExecBackend {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        self.startup.read_options(at);
        at.set_by("exec", &mut self.exec, read_command);
        let help = "write a path, e.g. `allow: [/dev/crypto*]`";
        at.set_by("allow", &mut self.allow, list_of(parsed_text(help)));
        let any_name = |name: &str| Ok(name.to_owned());
        at.set_by("settings", &mut self.settings, map_by(any_name));
        // An invalid command has an error already.
        let is_wrong = at.has_key("exec") && at.option_place("exec").is_none();
        if self.exec.is_empty() && !is_wrong {
            let help = "name the program of its probe, e.g. `exec: [/opt/company/probe]`";
            at.note_option_error("exec", "`exec` is missing", help);
        }
    }
}

impl ExecBackend {
    /// Returns true if the probe may name the device node.
    pub fn allows(&self, node: &str) -> bool {
        self.allow.iter().any(|pattern| pattern.matches_path(node))
    }
}

/// Checks the name of a backend. An error is a message and its remedy.
pub(super) fn check_name(name: &str) -> Result<String, (String, String)> {
    let is_letter = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
    if (1..=NAME_LIMIT).contains(&name.len()) && name.bytes().all(is_letter) {
        return Ok(name.to_owned());
    }
    let message = format!("`{name}` is not the name of a backend");
    let help = format!("write at most {NAME_LIMIT} lower-case letters, digits and `-`");
    Err((message, help))
}
