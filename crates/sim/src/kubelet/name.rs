//! Names of extended resources, as the kubelet checks them.

/// Longest domain, counted with the `requests.` that quotas put before the name.
const PREFIX_LIMIT: usize = 253;
const NAME_LIMIT: usize = 63;

/// True if a device plugin may register this name: it has a domain, the domain is not Kubernetes'
/// own, and the name stays valid with the `requests.` of a quota before it.
pub(super) fn is_extended_resource(name: &str) -> bool {
    if name.contains("kubernetes.io/") || name.starts_with("requests.") {
        return false;
    }
    name.split_once('/')
        .is_some_and(|(domain, name)| is_subdomain(domain) && is_name(name))
}

fn is_subdomain(domain: &str) -> bool {
    // A quota names the resource `requests.<name>`, so that form must be a valid name, too.
    "requests.".len() + domain.len() <= PREFIX_LIMIT
        && domain.split('.').all(|label| {
            is_bounded(label, |c| c.is_ascii_lowercase() || c.is_ascii_digit())
                && label
                    .bytes()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        })
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_LIMIT
        && is_bounded(name, |c| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

fn is_bounded(text: &str, allowed: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&allowed) && bytes.last().is_some_and(&allowed)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nvidia.com/gpu", true)]
    #[case("nvidia.com/mig-1g.5gb", true)]
    #[case("example.com/A_b.c", true)]
    #[case("gpu", false)]
    #[case("", false)]
    #[case("/gpu", false)]
    #[case("nvidia.com/", false)]
    #[case("nvidia.com/gpu/0", false)]
    #[case("Nvidia.com/gpu", false)]
    #[case("nvidia..com/gpu", false)]
    #[case("nvidia.com/-gpu", false)]
    #[case("nvidia.com/gpu ", false)]
    #[case("kubernetes.io/gpu", false)]
    #[case("node.kubernetes.io/gpu", false)]
    #[case("requests.nvidia.com/gpu", false)]
    fn takes_only_extended_resource_names(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_extended_resource(name), expected, "{name:?}");
    }

    #[test]
    fn limits_the_length_of_both_parts() {
        assert!(is_extended_resource(&format!("a.b/{}", "x".repeat(63))));
        assert!(!is_extended_resource(&format!("a.b/{}", "x".repeat(64))));
        assert!(is_extended_resource(&format!("{}/x", "a".repeat(244))));
        assert!(!is_extended_resource(&format!("{}/x", "a".repeat(245))));
    }
}
