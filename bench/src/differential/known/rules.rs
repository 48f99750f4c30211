//! What each documented difference looks like.

use super::{Difference, Rule};
use crate::differential::case::Case;

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
        id: "last-words",
        holds: |_, d| at(d, &["outcome", "reason"]) && d.upstream.is_some() && d.ours.is_some(),
    },
    Rule {
        id: "nodes-once",
        holds: |_, d| at(d, &["*", "allocate", "*", "node", "*"]) && is_repeated(d),
    },
    Rule {
        id: "mig-single",
        holds: |case, d| case.single() && case.node.cut && outlives(d),
    },
    Rule {
        id: "mps-mig",
        holds: |case, d| in_file(case, &["mps:"]) && case.node.cut && outlives(d),
    },
    Rule {
        id: "names-and-devices",
        holds: |case, d| {
            let used = in_file(case, &["pattern:", "rename:", "devices: ["]);
            used && matches(d.at.part(0), "nvidia.com/*")
        },
    },
    Rule {
        id: "cdi-driver-files",
        holds: |case, d| case.names_cdi() && outlives(d),
    },
    Rule {
        id: "imex-required",
        holds: |case, d| case.mentions("imex-required", "required") && outlives(d),
    },
    Rule {
        id: "odd-partitions",
        holds: |_, d| at(d, &["nvidia.com/mig-*c.*"]) && d.upstream.is_none(),
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

/// Whether it is because NVIDIA's program ended where Ostler goes on.
fn outlives(difference: &Difference) -> bool {
    let ended = at(difference, &["outcome"]) && difference.upstream.as_deref() == Some("dies");
    let last = at(difference, &["outcome", "reason"]) || at(difference, &["nvidia.com/*"]);
    ended || (last && (difference.upstream.is_none() != difference.ours.is_none()))
}

/// Whether NVIDIA's program gives the same node several times.
fn is_repeated(difference: &Difference) -> bool {
    let (Some(upstream), Some(ours)) = (&difference.upstream, &difference.ours) else {
        return false;
    };
    let rest = upstream.strip_prefix(ours.as_str());
    rest.is_some_and(|rest| rest.ends_with(" times"))
}

/// Whether the config file has one of these words.
fn in_file(case: &Case, words: &[&str]) -> bool {
    let config = case.config.as_deref().unwrap_or_default();
    words.iter().any(|word| config.contains(word))
}

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
