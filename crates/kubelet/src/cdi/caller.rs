//! Whether the kubelet passes CDI names on: by what its calls say of it, or by the word of the config.
//!
//! A kubelet before 1.29 drops the names of an answer without a word, and so does one of 1.29 or 1.30
//! whose feature gate is off. From 1.31 on the gate cannot be turned off. Calls do not carry the
//! kubelet's version, but that of its gRPC library, and Kubernetes pins it: 1.56 at most before 1.29,
//! 1.58 in 1.29 and 1.30, 1.65 and newer since 1.31. k3s has its own pins: 1.58 already with 1.28.

use cdi::Evidence;
use config::{Cdi, RuntimeSupport};

/// How kubelets call themselves, followed by the version of the library.
const LIBRARY: &str = "grpc-go/";
/// The first version that only kubelets have that pass names on.
const SURE: (u32, u32) = (1, 65);
/// The first version that kubelets of 1.29 could have.
const MAYBE: (u32, u32) = (1, 57);
/// The most of a name that is repeated.
const MOST: usize = 80;

/// What is known of the kubelet whose calls carry `agent`.
pub(super) fn kubelet(cdi: &Cdi, agent: Option<&str>) -> Evidence {
    match (cdi.runtime, agent) {
        (RuntimeSupport::Supported, _) => Evidence::new(true, "the config says `supported`"),
        (RuntimeSupport::Unsupported, _) => Evidence::new(false, "the config says `unsupported`"),
        (RuntimeSupport::Auto, None) => Evidence::new(false, "no kubelet has called yet"),
        (RuntimeSupport::Auto, Some(agent)) => by_agent(agent),
    }
}

fn by_agent(agent: &str) -> Evidence {
    let Some(version) = version(agent) else {
        let name: String = agent.chars().take(MOST).collect();
        return Evidence::new(
            false,
            format!(
                "the kubelet calls as `{name}`, which does not tell how old it is; if it is 1.29 or \
                 newer, set cdi.runtime: supported"
            ),
        );
    };
    let library = format!("the kubelet calls with gRPC {}.{}", version.0, version.1);
    if version >= SURE {
        Evidence::new(
            true,
            format!("{library}, as those since 1.31 do, which pass CDI names on"),
        )
    } else if version >= MAYBE {
        Evidence::new(
            false,
            format!(
                "{library}, as 1.29 and 1.30 do, and k3s of 1.28, which drops CDI names; if it is \
                 1.29 or newer, set cdi.runtime: supported"
            ),
        )
    } else {
        Evidence::new(
            false,
            format!("{library}, as those before 1.29 do, which drop CDI names"),
        )
    }
}

/// Major and minor of the library.
fn version(agent: &str) -> Option<(u32, u32)> {
    let mut words = agent.split(' ');
    let version = words.find_map(|word| word.strip_prefix(LIBRARY))?;
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn known(runtime: RuntimeSupport, agent: Option<&str>) -> Evidence {
        let cdi = Cdi {
            runtime,
            ..config::Config::default().cdi
        };
        kubelet(&cdi, agent)
    }

    #[rstest]
    #[case::v1_26("grpc-go/1.49.0", false, "before 1.29")]
    #[case::v1_28_0("grpc-go/1.54.0", false, "before 1.29")]
    #[case::v1_28_15("grpc-go/1.56.3", false, "before 1.29")]
    #[case::v1_29_or_k3s_1_28("grpc-go/1.58.3", false, "if it is 1.29 or newer")]
    #[case::v1_31("grpc-go/1.65.0", true, "since 1.31")]
    #[case::v1_33("grpc-go/1.68.1", true, "since 1.31")]
    #[case::v1_36("grpc-go/1.79.3", true, "since 1.31")]
    #[case::much_later("grpc-go/2.0.0-dev", true, "since 1.31")]
    #[case::wrapped("kubelet/x grpc-go/1.79.3", true, "since 1.31")]
    #[case::other("grpc-c++/1.80.0", false, "`grpc-c++/1.80.0`")]
    #[case::no_number("grpc-go/new", false, "`grpc-go/new`")]
    #[case::nothing("", false, "``")]
    fn the_library_tells_how_old_a_kubelet_is(
        #[case] agent: &str,
        #[case] supported: bool,
        #[case] reason: &str,
    ) {
        let found = known(RuntimeSupport::Auto, Some(agent));
        assert_eq!(found.supported, supported, "{found:?}");
        assert!(found.reason.contains(reason), "{found:?}");
    }

    #[test]
    fn a_kubelet_that_has_not_called_is_not_known() {
        assert!(!known(RuntimeSupport::Auto, None).supported);
    }

    #[test]
    fn the_config_settles_it() {
        let old = Some("grpc-go/1.49.0");
        assert!(known(RuntimeSupport::Supported, old).supported);
        let new = Some("grpc-go/1.79.3");
        assert!(!known(RuntimeSupport::Unsupported, new).supported);
    }
}
