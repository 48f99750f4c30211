//! What each documented difference looks like.

use super::{Difference, Rule};
use crate::differential::case::Case;

/// Flags that v0.19.3 does not have. As variables and in the file it passes them over.
const POLICY: &str = "shared-devices-allocation-policy";
const HOOKS: &str = "cdi-disable-hooks";

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
        id: "numa-node",
        holds: |_, d| {
            let told = |fact: &Option<String>| fact.as_ref().is_some_and(|numa| numa != "[]");
            at(d, &["*", "device", "*", "numa"]) && !told(&d.upstream) && told(&d.ours)
        },
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
        holds: |case, d| is_unknown(case, d, POLICY),
    },
    Rule {
        id: "v-hooks",
        holds: |case, d| is_unknown(case, d, HOOKS),
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

/// Whether it is because NVIDIA's program ended at a flag that it does not know, and Ostler goes on.
fn is_unknown(case: &Case, difference: &Difference, flag: &str) -> bool {
    let Difference { upstream, ours, .. } = difference;
    let (upstream, ours) = (upstream.as_deref(), ours.as_deref());
    let reason = format!("flag provided but not defined: -{flag}");
    let ended = at(difference, &["outcome"]) && (upstream, ours) == (Some("dies"), Some("serves"));
    let said = at(difference, &["outcome", "reason"]);
    let said = said && (upstream, ours) == (Some(reason.as_str()), None);
    let served = at(difference, &["nvidia.com/*"]) && upstream.is_none();
    case.flags(flag) && (ended || said || served)
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
    use std::sync::LazyLock;

    use super::*;
    use crate::differential::fact::Place;
    use rstest::rstest;

    /// Any case: to read them all takes seconds.
    static ANY: LazyLock<Case> = LazyLock::new(|| Case::all().unwrap().remove(0));

    const CUT: &str = "flag provided but not defined: -cdi-disable-hooks";

    /// Only what follows from NVIDIA's end is explained, and only where that flag ended it.
    #[rstest]
    #[case::it_ended(&["outcome"], Some("dies"), Some("serves"), true)]
    #[case::its_words(&["outcome", "reason"], Some(CUT), None, true)]
    #[case::what_we_serve(&["nvidia.com/gpu"], None, Some("there"), true)]
    #[case::we_end_too(&["outcome"], Some("dies"), Some("dies"), false)]
    #[case::we_idle(&["outcome"], Some("dies"), Some("idles"), false)]
    #[case::other_words(&["outcome", "reason"], Some("unknown MIG strategy"), None, false)]
    #[case::only_they_serve(&["nvidia.com/gpu"], Some("there"), None, false)]
    #[case::an_answer(&["nvidia.com/gpu", "allocate", "two", "env", "A"], Some("1"), Some("2"), false)]
    #[case::another_device(&["nvidia.com/gpu", "device", "GPU-1"], None, Some("there"), false)]
    fn a_flag_that_is_not_known_explains_the_end_and_nothing_else(
        #[case] place: &[&str],
        #[case] upstream: Option<&str>,
        #[case] ours: Option<&str>,
        #[case] explained: bool,
    ) {
        let difference = Difference {
            at: Place::new(place),
            upstream: upstream.map(str::to_owned),
            ours: ours.map(str::to_owned),
        };
        let of = |flags: &[&str]| Case {
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            ..ANY.clone()
        };
        let with = of(&["--cdi-disable-hooks=all"]);
        assert_eq!(is_unknown(&with, &difference, HOOKS), explained);
        for other in [of(&[]), of(&["--cdi-feature-flags=a"])] {
            assert!(!is_unknown(&other, &difference, HOOKS));
        }
    }

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
