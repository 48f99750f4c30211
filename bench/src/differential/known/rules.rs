//! What each documented difference looks like.

use super::{Difference, Rule};
use crate::differential::case::Ours;

/// What the resources of MIG devices begin with.
const MIG: &str = "nvidia.com/mig-";

/// An option that v0.19.3 does not have, as flag and in the file.
const POLICY: (&str, &str) = (
    "shared-devices-allocation-policy",
    "sharedDevicesAllocationPolicy",
);

/// What v0.19.3 does not honour for MPS.
const MANY: &str = "failRequestsGreaterThanOne: false";

/// The rules; the first that holds and is documented explains a difference.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "socket-name",
        holds: |_, d| at(d, &["*", "socket"]),
    },
    Rule {
        id: "device-nodes",
        holds: |_, d| at(d, &["*", "allocate", "*", "node", "*"]) && d.upstream.is_none(),
    },
    Rule {
        id: "refusal-words",
        holds: |_, d| words(d) && d.upstream.is_some() && d.ours.is_some(),
    },
    Rule {
        id: "too-few",
        holds: |_, d| at(d, &["*", "prefer", "more than there are", "*"]),
    },
    Rule {
        id: "mig-strategy",
        holds: |case, d| {
            let offered = |name: &str| name == "nvidia.com/gpu" || name.starts_with(MIG);
            let native = case.ours == Ours::Native && !case.partitions();
            native && case.node.cut && offered(d.at.part(0))
        },
    },
    Rule {
        id: "odd-partitions",
        holds: |_, d| at(d, &["nvidia.com/mig-*c.*"]) && d.upstream.is_none(),
    },
    Rule {
        id: "wsl",
        holds: |case, d| case.node.wsl && d.at.part(0) == "nvidia.com/gpu",
    },
    Rule {
        id: "v-patterns",
        holds: |case, d| case.node.alike.contains(d.at.part(0)),
    },
    Rule {
        id: "v-policy",
        holds: |case, _| {
            let (flag, key) = POLICY;
            case.mentions(flag, key)
        },
    },
    Rule {
        id: "v-hooks",
        holds: |case, _| case.mentions("cdi-disable-hooks", "cdiDisableHooks"),
    },
    Rule {
        id: "v-mps-requests",
        holds: |case, d| {
            let config = case.config.as_deref().unwrap_or_default();
            let many = config.contains("mps:") && config.contains(MANY);
            many && d.at.part(1) == "allocate"
        },
    },
];

/// Whether this is the code or the message of a refusal.
fn words(difference: &Difference) -> bool {
    let call = |name| {
        at(difference, &["*", name, "*", "code"]) || at(difference, &["*", name, "*", "message"])
    };
    call("allocate") || call("prefer")
}

/// Whether a difference stands at such a place; `*` in a part is any text.
fn at(difference: &Difference, pattern: &[&str]) -> bool {
    let parts = difference.at.parts();
    let fits = |(part, pattern): (&String, &&str)| matches(part, pattern);
    parts.len() == pattern.len() && parts.iter().zip(pattern).all(fits)
}

fn matches(text: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return text == pattern;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.any(|at| matches(&text[at..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("socket", "socket", true)]
    #[case("socket", "*", true)]
    #[case("", "*", true)]
    #[case("nvidia.com/mig-1c.3g.20gb", "nvidia.com/mig-*c.*", true)]
    #[case("nvidia.com/mig-3g.20gb", "nvidia.com/mig-*c.*", false)]
    #[case("sockets", "socket", false)]
    fn a_star_is_any_text(#[case] text: &str, #[case] pattern: &str, #[case] fits: bool) {
        assert_eq!(matches(text, pattern), fits);
    }
}
