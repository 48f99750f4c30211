//! Section `handover.nvidia`: the parts of NVIDIA's driver that a container is given.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    schema::OneOrMany,
    source::{Section, SectionReader, list_of, number_within},
};

/// Longest name in an annotation's key, after the slash.
// Kubernetes' limit (k8s.io/apimachinery, pkg/util/validation/validation.go, IsQualifiedName). CDI
// has the same one (container-device-interface, pkg/cdi/annotations.go, AnnotationKey).
const NAME_LIMIT: usize = 63;
/// Length of the part after the prefix: `nvidia-device-plugin_` and a UUID.
const NAME: usize = "nvidia-device-plugin_".len() + 36;
/// Highest number of an IMEX channel.
const LAST_CHANNEL: u32 = 2047;

/// Parts of NVIDIA's driver that a container is given beside its devices. Paths are those on the
/// host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NvidiaHandover {
    /// Folder on the host under which `/dev/nvidia*` are, e.g. `/` or `/run/nvidia/driver`.
    pub dev_root: PathBuf,
    /// Beginning of the CDI annotation's key.
    pub annotation_prefix: String,
    /// Value of `NVIDIA_DRIVER_CAPABILITIES`. Default: the variable is not set.
    pub capabilities: Option<String>,
    /// Gives containers GPUDirect Storage.
    pub gds: bool,
    /// Gives containers GDRCopy.
    pub gdrcopy: bool,
    /// Gives containers RDMA devices (MOFED).
    pub mofed: bool,
    /// Numbers of the IMEX channels.
    #[schemars(with = "OneOrMany<u32>")]
    pub imex: Vec<u32>,
    /// Folder on the host with the MPS daemon's files.
    pub mps_root: Option<PathBuf>,
}

/// Message and its remedy.
type NvidiaFault = (String, String);

// === impl NvidiaHandover ===

impl Section for NvidiaHandover {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("devRoot", &mut self.dev_root);
        at.set_option("annotationPrefix", &mut self.annotation_prefix);
        at.set_option("capabilities", &mut self.capabilities);
        at.set_option("gds", &mut self.gds);
        at.set_option("gdrcopy", &mut self.gdrcopy);
        at.set_option("mofed", &mut self.mofed);
        at.set_by(
            "imex",
            &mut self.imex,
            list_of(number_within(0..=LAST_CHANNEL)),
        );
        at.set_option("mpsRoot", &mut self.mps_root);
        for (name, words) in self.find_faults() {
            if let (Some(_), Some((message, help))) = (at.option_place(name), words) {
                at.note_option_error(name, message, help);
            }
        }
    }
}

impl NvidiaHandover {
    /// Returns the faults of the options whose values no container runtime or kubelet can use.
    fn find_faults(&self) -> [(&'static str, Option<NvidiaFault>); 5] {
        let mps_root = self.mps_root.as_deref();
        let empty = |text: &String| text.trim_matches(' ').is_empty();
        let capabilities = self.capabilities.as_ref().filter(|text| empty(text));
        let nothing = "it is empty: containers would be given no part of the driver";
        let parts = "write `all`, or some of compute, utility, graphics, video, display, ngx and \
                     compat32 with commas; or leave the key out";
        let mut seen = BTreeSet::new();
        let twice = self.imex.iter().find(|channel| !seen.insert(**channel));
        let again = |channel| {
            let message = format!("channel {channel} is there twice");
            (message, "name each channel once".to_owned())
        };
        [
            ("devRoot", relative(&self.dev_root, "/run/nvidia/driver")),
            (
                "mpsRoot",
                mps_root.and_then(|root| relative(root, "/run/nvidia/mps")),
            ),
            (
                "annotationPrefix",
                check_annotation_prefix(&self.annotation_prefix),
            ),
            (
                "capabilities",
                capabilities.map(|_| (nothing.to_owned(), parts.to_owned())),
            ),
            ("imex", twice.map(again)),
        ]
    }
}

impl Default for NvidiaHandover {
    /// Returns a handover of nothing beside the devices.
    fn default() -> Self {
        Self {
            dev_root: PathBuf::from("/"),
            annotation_prefix: "cdi.k8s.io/".to_owned(),
            capabilities: None,
            gds: false,
            gdrcopy: false,
            mofed: false,
            imex: Vec::new(),
            mps_root: None,
        }
    }
}

/// Returns a message and its remedy if the path of a folder on the host is relative.
pub(crate) fn relative(path: &Path, example: &str) -> Option<NvidiaFault> {
    (!path.is_absolute()).then(|| {
        let message = format!(
            "`{}` does not begin with `/`: on the host that is no folder",
            path.display()
        );
        (message, format!("write the whole path, e.g. {example}"))
    })
}

/// Returns a message and its remedy if a text cannot begin the CDI annotation's key.
// Only the form is checked. CDI's own library finds names under `cdi.k8s.io/` alone (Parse in the
// file above), but NVIDIA's plugin has an option for another prefix.
pub(crate) fn check_annotation_prefix(prefix: &str) -> Option<NvidiaFault> {
    let domain = |text: &str| {
        let part = |part: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !part.is_empty()
                && part.chars().all(inner)
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        text.len() <= 253 && text.split('.').all(part)
    };
    let name = |text: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        text.len() + NAME <= NAME_LIMIT
            && text.chars().all(inner)
            && !text.starts_with(['-', '_', '.'])
    };
    let good = prefix
        .split_once('/')
        .is_some_and(|(before, after)| domain(before) && name(after));
    (!good).then(|| {
        let room = NAME_LIMIT - NAME;
        let message = format!("`{prefix}` does not begin the key of an annotation");
        let help = format!(
            "write a domain, a slash and at most {room} more letters; runtimes look for cdi.k8s.io/"
        );
        (message, help)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("cdi.k8s.io/", true)]
    #[case("cdi.k8s.io/my-", true)]
    #[case("cdi.k8s.io/1234567", false)]
    #[case("cdi.k8s.io", false)]
    #[case("", false)]
    #[case("/", false)]
    #[case("CDI.k8s.io/", false)]
    #[case("cdi k8s/", false)]
    #[case("cdi..io/", false)]
    #[case("a/b/", false)]
    #[case("cdi.k8s.io/-", false)]
    fn a_prefix_makes_a_key_that_kubernetes_takes(#[case] text: &str, #[case] good: bool) {
        assert_eq!(check_annotation_prefix(text).is_none(), good);
    }
}
