//! What a container is given: values that no container runtime or kubelet can use.

use std::{collections::BTreeSet, path::Path};

use super::Words;
use crate::{
    file::HandoverFile,
    source::{Notes, Said},
};

/// How long the name in an annotation's key may be.
const NAME_LIMIT: usize = 63;
/// What comes after the prefix: `nvidia-device-plugin_` and a UUID.
const NAME: usize = "nvidia-device-plugin_".len() + 36;

/// Checks a section.
pub(super) fn check(handover: &HandoverFile, key: &str, notes: &mut Notes) {
    let mut wrong = |name: &str, place, (message, help): Words| {
        notes.error(place, &format!("{key}.{name}"), message, help);
    };
    let roots = [
        ("devRoot", &handover.dev_root, "/run/nvidia/driver"),
        ("mpsRoot", &handover.mps_root, "/run/nvidia/mps"),
    ];
    for (name, said, example) in roots {
        if let Some(said) = said
            && let Some(words) = relative(&said.value, example)
        {
            wrong(name, said.place, words);
        }
    }
    if let Some(said) = &handover.annotation_prefix
        && let Some(words) = prefix(&said.value)
    {
        wrong("annotationPrefix", said.place, words);
    }
    if let Some(said) = &handover.capabilities
        && said.value.trim_matches(' ').is_empty()
    {
        let message = "it is empty: containers would be given no part of the driver".to_owned();
        let help = "write `all`, or some of compute, utility, graphics, video, display, ngx and \
                    compat32 with commas; or leave the key out";
        wrong("capabilities", said.place, (message, help.to_owned()));
    }
    if let Some(said) = &handover.imex
        && let Some(twice) = repeated(said)
    {
        let message = format!("channel {twice} is there twice");
        let help = "name each channel once".to_owned();
        wrong("imex", said.place, (message, help));
    }
}

/// What is wrong with a folder on the host.
pub(crate) fn relative(path: &Path, example: &str) -> Option<Words> {
    (!path.is_absolute()).then(|| {
        let message = format!(
            "`{}` does not begin with `/`: on the host that is no folder",
            path.display()
        );
        (message, format!("write the whole path, e.g. {example}"))
    })
}

/// What is wrong with the beginning of the CDI annotation's key.
pub(crate) fn prefix(prefix: &str) -> Option<Words> {
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

/// A channel that is there twice.
fn repeated(said: &Said<Vec<u32>>) -> Option<u32> {
    let mut seen = BTreeSet::new();
    said.value.iter().find(|n| !seen.insert(**n)).copied()
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
        assert_eq!(prefix(text).is_none(), good);
    }
}
