//! Environment variables and mounts that a pool adds to those of the vendor's rules.

use std::{fmt, path::PathBuf, str::FromStr};

use model::{AttributeName, Device};
use schemars::JsonSchema;
use serde::Serialize;

use crate::source::{
    FileItem, FromNode, ReadNotes, Section, SectionReader, parsed_text, read_section,
};

/// File or folder of the host that is mounted into containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExtraMount {
    /// Path on the host, a template.
    pub host_path: ValueTemplate,
    /// Path in the container, a template. Default: the path on the host.
    pub container_path: Option<ValueTemplate>,
    /// Makes the mount read-only.
    pub read_only: bool,
}

/// Text with placeholders that are filled in for each device: `{id}`, `{index}`, `{pci}`, `{numa}`,
/// `{vendor}`, or the name of any attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ValueTemplate(String);

/// Reason why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// A brace without its partner.
    #[error("`{0}` has a brace without its other one")]
    Brace(String),
    /// Text between braces that cannot be the name of an attribute.
    #[error("`{{{0}}}` cannot be the name of an attribute")]
    Name(String),
}

/// Part of a template: a text, or the name of a placeholder.
enum TemplatePart<'t> {
    Text(&'t str),
    Place(&'t str),
}

// === impl ExtraMount ===

impl Section for ExtraMount {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        let help = "write a path, e.g. `/opt/company/{id}`";
        at.set_by("hostPath", &mut self.host_path, parsed_text(help));
        at.set_by("containerPath", &mut self.container_path, |item, notes| {
            parsed_text(help)(item, notes).map(Some)
        });
        at.set_option("readOnly", &mut self.read_only);
        if !self.host_path.0.starts_with('/') {
            at.note_option_error("hostPath", "the path does not begin with `/`", help);
        }
        let container = self.container_path.as_ref();
        if container.is_some_and(|path| !path.0.starts_with('/')) {
            at.note_option_error("containerPath", "the path does not begin with `/`", help);
        }
    }
}

impl FromNode for ExtraMount {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        let mut mount = Self::default();
        read_section(item, notes, &mut mount).then_some(mount)
    }
}

impl ExtraMount {
    /// Returns the paths on the host and in the container for a device.
    ///
    /// # Errors
    /// Name of the first fact that the device does not have, or that cannot be a part of a path.
    pub fn fill_paths(&self, device: &Device) -> Result<(PathBuf, PathBuf), String> {
        // Facts come from a probe, which can be a program of the user's with fewer rights than the
        // agent. With a `/` or `..` in a fact it could have any folder of the host mounted.
        let host = self.host_path.fill_by(device, is_name)?;
        let container = self.container_path.as_ref();
        let container = container.map(|path| path.fill_by(device, is_name));
        let container = container.unwrap_or_else(|| Ok(host.clone()))?;
        Ok((host.into(), container.into()))
    }
}

// === impl ValueTemplate ===

impl FromNode for ValueTemplate {
    fn from_node(item: &FileItem<'_>, notes: &mut ReadNotes) -> Option<Self> {
        parsed_text("write a text, e.g. `{id}` or `{index}`")(item, notes)
    }
}

impl ValueTemplate {
    /// Fills in the facts of a device.
    ///
    /// # Errors
    /// Name of the first fact that the device does not have.
    pub fn fill_facts(&self, device: &Device) -> Result<String, String> {
        self.fill_by(device, |_| true)
    }

    /// Fills in the facts of a device. A fact that is not `usable` counts as missing.
    fn fill_by(&self, device: &Device, usable: fn(&str) -> bool) -> Result<String, String> {
        // `from_str` refuses a text with an invalid part.
        let parts = split_template(&self.0).filter_map(Result::ok);
        let filled = parts.map(|part| match part {
            TemplatePart::Text(text) => Ok(text.to_owned()),
            TemplatePart::Place(name) => {
                let fact = fact(device, name).filter(|text| usable(text));
                fact.ok_or_else(|| name.to_owned())
            }
        });
        filled.collect()
    }
}

impl FromStr for ValueTemplate {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        for part in split_template(text) {
            if let TemplatePart::Place(name) = part?
                && AttributeName::try_from(name.to_owned()).is_err()
            {
                return Err(InvalidTemplate::Name(name.to_owned()));
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ValueTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true if the text can be the name of a file, or a part of such a name.
fn is_name(text: &str) -> bool {
    !text.contains('/') && !matches!(text, "" | "." | "..")
}

/// Splits a template into its parts, in order.
fn split_template(text: &str) -> impl Iterator<Item = Result<TemplatePart<'_>, InvalidTemplate>> {
    let broken = || Some(Err(InvalidTemplate::Brace(text.to_owned())));
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(inner) = rest.strip_prefix('{') else {
            let end = rest.find(['{', '}']).unwrap_or(rest.len());
            let (plain, after) = rest.split_at(end);
            if plain.is_empty() {
                rest = "";
                return broken();
            }
            rest = after;
            return Some(Ok(TemplatePart::Text(plain)));
        };
        match inner.split_once('}') {
            Some((name, after)) => {
                rest = after;
                Some(Ok(TemplatePart::Place(name)))
            }
            None => {
                rest = "";
                broken()
            }
        }
    })
}

/// Returns a fact of a device by its name, as a text. `None` if the device does not have the fact,
/// or if the text has control characters.
fn fact(device: &Device, name: &str) -> Option<String> {
    let text = match name {
        "id" => Some(device.id.to_string()),
        "index" => device.index.map(|index| index.to_string()),
        "pci" => device.pci.map(|pci| pci.to_string()),
        "numa" => device.numa.map(|node| node.to_string()),
        "vendor" => Some(device.vendor.clone()),
        name => {
            let name = AttributeName::try_from(name.to_owned()).ok()?;
            device.attributes.get(&name).map(ToString::to_string)
        }
    };
    // A NUL ends a path or variable, and a line break ends a line of many tools' input.
    text.filter(|text| !text.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::sample_card;
    use rstest::rstest;

    #[rstest]
    #[case("card-{index}", Ok("card-3"))]
    #[case("{id}:{pci}:{vendor}", Ok("GPU-3:0000:03:00.0:nvidia"))]
    #[case("{cudaComputeCapability}", Ok("8.0"))]
    #[case("plain", Ok("plain"))]
    #[case("", Ok(""))]
    #[case("a {colour} b", Err("colour"))]
    fn places_are_filled_in_with_facts(#[case] text: &str, #[case] filled: Result<&str, &str>) {
        let template: ValueTemplate = text.parse().unwrap();
        let found = template.fill_facts(&sample_card(3));
        let expected = filled.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("{id")]
    #[case("id}")]
    #[case("a } b")]
    #[case("{}")]
    #[case("{a b}")]
    fn other_texts_are_no_templates(#[case] text: &str) {
        assert!(text.parse::<ValueTemplate>().is_err());
    }

    #[test]
    fn a_fact_does_not_lead_out_of_a_folder() {
        let mount = ExtraMount {
            host_path: "/opt/{id}".parse().unwrap(),
            ..ExtraMount::default()
        };
        let mut device = sample_card(0);
        for id in ["../etc", "kubelet/pki", "..", ".", ""] {
            device.id = model::DeviceId::new(id);
            assert_eq!(mount.fill_paths(&device), Err("id".to_owned()), "{id}");
        }
        let (host, container) = mount.fill_paths(&sample_card(0)).unwrap();
        assert_eq!(
            (host.as_path(), container),
            ("/opt/GPU-0".as_ref(), host.clone())
        );
    }
}
