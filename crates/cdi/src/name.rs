//! CDI names: the texts that CDI allows, and the annotation with names for the container runtime.

/// Annotation that passes CDI names to a container runtime, as
/// `cdi.k8s.io/nvidia-device-plugin_UUID: nvidia.com/gpu=0,nvidia.com/gpu=1`.
#[derive(Clone, Copy, Debug)]
pub struct Annotation<'a> {
    /// Prefix of the key, with the slash. Runtimes read the prefix `cdi.k8s.io/` only.
    pub prefix: &'a str,
    /// Text between the prefix and the part that makes the key unique.
    pub plugin: &'a str,
    /// Resource that the names were requested of.
    pub resource: &'a str,
}

// === impl Annotation ===

impl Annotation<'_> {
    /// Makes the key and the value for the names. The last part of the key is a UUID made from the resource
    /// and the names, so that the same grant has the same key.
    pub fn key_and_value(&self, names: &[String]) -> (String, String) {
        // The kubelet merges the annotations of all resources of a container, and keeps the first value of a
        // key (pkg/kubelet/cm/devicemanager/pod_devices.go, `deviceRunContainerOptions`). So two resources
        // must not have the same key. NVIDIA's plugin uses a random UUID.
        let value = names.join(",");
        let unique = format_uuid(digest_texts(&[self.resource, &value]));
        let Self { prefix, plugin, .. } = self;
        (format!("{prefix}{plugin}{unique}"), value)
    }
}

/// True if CDI allows `name` for a device: letters, digits and `_-.:`, with a letter or a digit at both ends.
pub fn is_device(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"_-.:".contains(&b);
    let ends = [name.bytes().next(), name.bytes().next_back()];
    let ends = ends.iter().flatten().filter(|b| b.is_ascii_alphanumeric());
    ends.count() == 2 && name.bytes().all(inner)
}

/// True if CDI allows `name` for a vendor or a class: letters, digits and `_-.`, a letter first and a letter
/// or a digit last.
pub fn is_part(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && is_device(name) && !name.contains(':')
}

/// Splits `vendor/class`; `None` unless CDI allows both parts.
///
/// ```
/// assert_eq!(cdi::split_kind("nvidia.com/gpu"), Some(("nvidia.com", "gpu")));
/// assert_eq!(cdi::split_kind("nvidia.com/0"), None);
/// ```
pub fn split_kind(kind: &str) -> Option<(&str, &str)> {
    kind.split_once('/')
        .filter(|(vendor, class)| is_part(vendor) && is_part(class))
}

// The keys made from this hash must be the same in every release, and no attacker gains from a collision. So
// a hash without secrets and without a dependency is enough.
/// FNV-1a hash with 128 bits of the texts, each followed by a zero byte.
fn digest_texts(texts: &[&str]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(BASIS, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    })
}

/// Makes a UUID of version 8, the version for custom hashes (RFC 9562, 5.8).
fn format_uuid(digest: u128) -> String {
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0b11 << 62;
    let bits = digest & !VERSION & !VARIANT | (8 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn annotation(resource: &str, names: &[String]) -> (String, String) {
        let annotation = Annotation {
            prefix: "cdi.k8s.io/",
            plugin: "nvidia-device-plugin_",
            resource,
        };
        annotation.key_and_value(names)
    }

    #[test]
    fn the_key_of_a_grant_never_changes() {
        let names = ["gpu=GPU-0", "gds=all"];
        let names = names.map(|name| format!("k8s.device-plugin.nvidia.com/{name}"));
        let (key, value) = annotation("nvidia.com/gpu", &names);
        insta::assert_snapshot!(key, @"cdi.k8s.io/nvidia-device-plugin_aeb116a4-fb33-8587-be9c-3c25ac5f74c0");
        insta::assert_snapshot!(value, @"k8s.device-plugin.nvidia.com/gpu=GPU-0,k8s.device-plugin.nvidia.com/gds=all");
    }

    #[test]
    fn the_digest_is_fnv_1a() {
        // The published value for the one byte `a`.
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let with_end = 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964_u128.wrapping_mul(PRIME);
        assert_eq!(digest_texts(&["a"]), with_end);
    }

    #[test]
    fn device_names_are_what_cdi_allows() {
        for good in ["0", "0:1", "GPU-8f", "all", "a.b_c-d:e", "A"] {
            assert!(is_device(good), "{good}");
        }
        for bad in [
            "",
            "-",
            "-a",
            "a-",
            "a/0",
            "MIG-GPU-x/1/0",
            "a b",
            "ä",
            ":0",
        ] {
            assert!(!is_device(bad), "{bad}");
        }
    }

    #[test]
    fn vendors_and_classes_are_what_cdi_allows() {
        for good in ["gpu", "k8s.device-plugin.nvidia.com", "imex-channel", "a"] {
            assert!(is_part(good), "{good}");
        }
        for bad in ["", "0gpu", "g:pu", "gpu-", ".gpu", "g/pu"] {
            assert!(!is_part(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_key_is_what_kubernetes_and_cdi_accept(resource in ".*", id in ".*") {
            let (key, _) = annotation(&resource, &[id]);
            let name = key.strip_prefix("cdi.k8s.io/").unwrap();
            prop_assert!(name.len() <= 63);
            let (plugin, unique) = name.split_once('_').unwrap();
            prop_assert_eq!(plugin, "nvidia-device-plugin");
            let lengths: Vec<usize> = unique.split('-').map(str::len).collect();
            prop_assert_eq!(lengths, [8, 4, 4, 4, 12]);
            prop_assert!(unique.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()));
            prop_assert_eq!(unique.as_bytes()[14], b'8');
            prop_assert!(b"89ab".contains(&unique.as_bytes()[19]));
        }

        #[test]
        fn other_resources_and_other_names_have_other_keys(
            a in ("[a-z]{1,4}", "[a-z]{1,4}"),
            b in ("[a-z]{1,4}", "[a-z]{1,4}"),
        ) {
            let key = |(resource, id): &(String, String)| annotation(resource, std::slice::from_ref(id)).0;
            prop_assert_eq!(key(&a) == key(&b), a == b);
        }
    }
}
