//! Patterns of device nodes that a probe may name.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::Serialize;

/// Pattern of device nodes: a path under `/dev/` in which `*` stands for any characters but `/`.
///
/// ```
/// let pattern: model::NodePattern = "/dev/dri/render*".parse().unwrap();
/// assert!(pattern.matches_path("/dev/dri/renderD128"));
/// assert!(!pattern.matches_path("/dev/dri/render/../../mem"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct NodePattern(String);

/// Text that is not a pattern of device nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path under /dev/ without `.` and `..`")]
pub struct InvalidNodePattern(String);

// === impl NodePattern ===

impl NodePattern {
    /// Returns true if the path matches the pattern. A path with `.`, `..` or an empty part never
    /// does.
    pub fn matches_path(&self, path: &str) -> bool {
        // The path comes from the probe, which may be a program of the user's. `*` must not match
        // `..`.
        is_node_path(path) && match_bytes(self.0.as_bytes(), path.as_bytes())
    }
}

impl FromStr for NodePattern {
    type Err = InvalidNodePattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_node_path(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidNodePattern(text.to_owned()))
        }
    }
}

impl fmt::Display for NodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true for a path under `/dev/` without empty, `.` and `..` parts.
fn is_node_path(path: &str) -> bool {
    let mut parts = path.strip_prefix("/dev/").unwrap_or_default().split('/');
    parts.all(|part| !matches!(part, "" | "." | ".."))
}

fn match_bytes(pattern: &[u8], path: &[u8]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((b'*', rest)) => {
            let reach = path.iter().position(|b| *b == b'/').unwrap_or(path.len());
            (0..=reach).any(|end| match_bytes(rest, &path[end..]))
        }
        Some((letter, rest)) => {
            let first = path.split_first();
            first.is_some_and(|(first, path)| first == letter && match_bytes(rest, path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/dev/crypto0", "/dev/crypto0", true)]
    #[case("/dev/crypto*", "/dev/crypto0", true)]
    #[case("/dev/crypto*", "/dev/crypto", true)]
    #[case("/dev/crypto*", "/dev/crypto0/mem", false)]
    #[case("/dev/crypto*", "/dev/crypto0/../mem", false)]
    #[case("/dev/*/render*", "/dev/dri/renderD128", true)]
    #[case("/dev/*/render*", "/dev/renderD128", false)]
    #[case("/dev/*", "/dev/mem", true)]
    #[case("/dev/*", "/dev/./mem", false)]
    #[case("/dev/*", "/dev/", false)]
    #[case("/dev/*", "/etc/shadow", false)]
    fn a_star_stands_for_a_part_of_a_name(
        #[case] pattern: &str,
        #[case] path: &str,
        #[case] is_meant: bool,
    ) {
        let pattern: NodePattern = pattern.parse().unwrap();
        assert_eq!(pattern.matches_path(path), is_meant);
    }

    #[rstest]
    #[case("")]
    #[case("/dev")]
    #[case("/dev/")]
    #[case("dev/crypto0")]
    #[case("/dev/../etc")]
    #[case("/sys/x")]
    fn a_pattern_is_a_path_under_dev(#[case] text: &str) {
        assert!(text.parse::<NodePattern>().is_err());
    }
}
